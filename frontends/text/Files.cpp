#include "frontends/text/Files.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;
using llvm::StringRef;
using llvm::Twine;

namespace stepc::text {
namespace {

std::error_code lastError() { return {errno, std::generic_category()}; }

llvm::Error cannotWrite(StringRef file, std::error_code code) {
  return fileError(file, "cannot write the file: " + reasonOf(code));
}

/// A file descriptor. The destructor closes it if it is still open and is no standard stream.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const std::string &file, int flags, mode_t mode = 0)
      : number(::open(file.c_str(), flags | O_CLOEXEC, mode)) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (number > STDERR_FILENO)
      ::close(number);
  }

  bool isOpen() const { return number >= 0; }
  int get() const { return number; }

  std::error_code write(llvm::ArrayRef<StringRef> pieces) {
    for (StringRef piece : pieces)
      while (!piece.empty()) {
        ssize_t count = ::write(number, piece.data(), piece.size());
        if (count < 0 && errno != EINTR)
          return lastError();
        piece = piece.drop_front(std::max<ssize_t>(count, 0));
      }
    return {};
  }

  /// Closes the descriptor and returns the error: some file systems report a full disk only then.
  std::error_code close() {
    int closed = ::close(std::exchange(number, -1));
    return closed == 0 || errno == EINTR ? std::error_code() : lastError();
  }

private:
  int number;
};

uint64_t sizeOf(llvm::ArrayRef<StringRef> pieces) {
  uint64_t size = 0;
  for (StringRef piece : pieces)
    size += piece.size();
  return size;
}

StringRef folderOf(StringRef file) {
  StringRef folder = path::parent_path(file);
  return folder.empty() ? "." : folder;
}

/// The path of an output that may be written, and the status of the file that exists there.
struct Target {
  std::string file; ///< the path with links followed; for a pipe or a device the path as given
  bool exists = false;
  struct stat status = {};

  bool isStream() const { return exists && !S_ISREG(status.st_mode); }
};

llvm::Expected<Target> targetOf(StringRef given) {
  Target target{given.str()};
  target.exists = ::stat(target.file.c_str(), &target.status) == 0;
  if (!target.exists && errno != ENOENT)
    return cannotWrite(given, lastError());
  // The links of /proc to pipes hold no paths, so the path of a stream is kept as given.
  if (!target.isStream())
    target.file = behindLinks(given);
  if (!target.exists)
    return target;
  if (S_ISDIR(target.status.st_mode))
    return fileError(given, "expected a place for a file, found a directory");
  // A file that nobody may write was protected on purpose, so the superuser does not write it either.
  bool isProtected = !target.isStream() && (target.status.st_mode & 0222) == 0;
  if (isProtected || ::faccessat(AT_FDCWD, target.file.c_str(), W_OK, AT_EACCESS) != 0)
    return fileError(given, "cannot write the file: it is read-only");
  return target;
}

llvm::Error cannotAdd(const Target &target, std::error_code code) {
  return fileError(folderOf(target.file),
                   "expected a folder for the output, which cannot be written: " + reasonOf(code));
}

/// A new file in the target's folder. The destructor removes it unless place() renamed it to the target.
class Neighbour {
public:
  explicit Neighbour(const Target &target) : target(target) {
    llvm::SmallString<128> model(folderOf(target.file));
    path::append(model, ".stepc-%%%%%%%%");
    int number = -1;
    // The old file's mode may hide the bytes from other users. takesAfter() sets that mode later.
    unsigned mode = target.exists ? 0600 : 0666;
    code = fs::createUniqueFile(model, number, file, fs::OF_None, mode);
    if (!code) {
      descriptor.emplace(number);
      llvm::sys::RemoveFileOnSignal(file);
    }
  }
  Neighbour(const Neighbour &) = delete;
  ~Neighbour() {
    if (!descriptor)
      return;
    if (!isPlaced)
      fs::remove(file);
    llvm::sys::DontRemoveFileOnSignal(file);
  }

  std::error_code error() const { return code; }

  /// Gives the new file the owner, group and mode of the old one; returns false if that fails. Also returns
  /// false if the old file has hard links or extended attributes, because the new file would lack them.
  bool takesAfter() {
    const struct stat &old = target.status;
    if (old.st_nlink > 1 || ::listxattr(target.file.c_str(), nullptr, 0) > 0)
      return false;
    struct stat own;
    if (::fstat(descriptor->get(), &own) != 0)
      return false;
    bool isOwned = own.st_uid == old.st_uid && own.st_gid == old.st_gid;
    return (isOwned || ::fchown(descriptor->get(), old.st_uid, old.st_gid) == 0) &&
           ::fchmod(descriptor->get(), old.st_mode & 07777) == 0;
  }

  std::error_code place(llvm::ArrayRef<StringRef> pieces) {
    if (std::error_code code = descriptor->write(pieces))
      return code;
    // The new bytes reach the disk before the rename, so that a crash keeps the old bytes or the new ones.
    if (target.exists && ::fsync(descriptor->get()) != 0 && errno != EINVAL)
      return lastError();
    if (std::error_code code = descriptor->close())
      return code;
    std::error_code code = fs::rename(file, target.file);
    isPlaced = !code;
    return code;
  }

private:
  const Target &target;
  llvm::SmallString<128> file;
  std::optional<Descriptor> descriptor;
  std::error_code code;
  bool isPlaced = false;
};

/// Writes `pieces` over the bytes of the target itself, after it allocated room for them on the disk.
std::error_code overwrite(const Target &target, llvm::ArrayRef<StringRef> pieces) {
  Descriptor descriptor(target.file, O_WRONLY);
  if (!descriptor.isOpen())
    return lastError();
  uint64_t size = sizeOf(pieces);
  if (int wrong = size ? ::posix_fallocate(descriptor.get(), 0, size) : 0) {
    if (::ftruncate(descriptor.get(), target.status.st_size) != 0)
      return lastError();
    return {wrong, std::generic_category()};
  }
  if (std::error_code code = descriptor.write(pieces))
    return code;
  if (::ftruncate(descriptor.get(), size) != 0 || ::fsync(descriptor.get()) != 0)
    return lastError();
  return descriptor.close();
}

/// Whether `code` says that a folder takes no new files. Existing files in the folder may still be writable.
bool isLocked(std::error_code code) {
  return code == std::errc::permission_denied || code == std::errc::operation_not_permitted ||
         code == std::errc::read_only_file_system;
}

} // namespace

llvm::Error fileError(const Twine &place, const Twine &message) {
  return llvm::createFileError(place,
                               llvm::createStringError(llvm::inconvertibleErrorCode(), message));
}

std::string reasonOf(std::error_code code) {
  std::string reason = code.message();
  if (!reason.empty())
    reason[0] = llvm::toLower(reason[0]);
  return reason;
}

std::string sizeText(uint64_t bytes) {
  constexpr uint64_t mebi = 1 << 20;
  return bytes && bytes % mebi == 0 ? std::to_string(bytes / mebi) + " MiB"
                                    : std::to_string(bytes) + " bytes";
}

llvm::Expected<std::string> readFile(StringRef file, StringRef what, uint64_t mostBytes) {
  bool isInput = file == "-";
  StringRef name = isInput ? "<stdin>" : file;
  auto fail = [&] {
    return fileError(name, "expected " + what +
                               ", but the file cannot be read: " + reasonOf(lastError()));
  };
  std::optional<Descriptor> descriptor;
  if (isInput)
    descriptor.emplace(STDIN_FILENO);
  else
    descriptor.emplace(file.str(), O_RDONLY);
  struct stat status;
  if (!descriptor->isOpen() || ::fstat(descriptor->get(), &status) != 0)
    return fail();
  if (S_ISDIR(status.st_mode))
    return fileError(name, "expected " + what + ", found a directory");
  bool hasSize = S_ISREG(status.st_mode);
  std::string most = "expected " + what.str() + " of at most " + sizeText(mostBytes) + ", found ";
  if (hasSize && uint64_t(status.st_size) > mostBytes)
    return fileError(name, most + std::to_string(status.st_size) + " bytes");
  std::string bytes;
  // Room for one byte more than the file's size. Files of /proc have size 0, so the loop doubles the room.
  size_t step = hasSize ? size_t(status.st_size) + 1 : 0;
  for (size_t used = 0;;) {
    bytes.resize(used + std::max<size_t>(step, 1 << 16));
    ssize_t count = ::read(descriptor->get(), bytes.data() + used, bytes.size() - used);
    if (count < 0 && errno != EINTR)
      return fail();
    if (count > 0)
      used += count;
    if (used > mostBytes)
      return fileError(name, most + "more");
    if (count == 0) {
      bytes.resize(used);
      return bytes;
    }
    step = used; // doubles the buffer
  }
}

llvm::Error writeFile(StringRef file, llvm::ArrayRef<StringRef> pieces) {
  llvm::Expected<Target> target = targetOf(file);
  if (!target)
    return target.takeError();
  auto result = [&](std::error_code code) {
    return code ? cannotWrite(file, code) : llvm::Error::success();
  };
  if (target->isStream()) {
    Descriptor descriptor(target->file, O_WRONLY);
    if (!descriptor.isOpen())
      return result(lastError());
    if (std::error_code code = descriptor.write(pieces))
      return result(code);
    return result(descriptor.close());
  }
  {
    Neighbour neighbour(*target);
    if (neighbour.error() && !(target->exists && isLocked(neighbour.error())))
      return cannotAdd(*target, neighbour.error());
    if (!neighbour.error() && (!target->exists || neighbour.takesAfter()))
      return result(neighbour.place(pieces));
  }
  return result(overwrite(*target, pieces));
}

llvm::Error checkPlace(StringRef file) {
  llvm::Expected<Target> target = targetOf(file);
  if (!target)
    return target.takeError();
  if (target->isStream())
    return llvm::Error::success();
  Neighbour neighbour(*target);
  if (neighbour.error() && !(target->exists && isLocked(neighbour.error())))
    return cannotAdd(*target, neighbour.error());
  return llvm::Error::success();
}

llvm::Error writeTemporary(StringRef file, StringRef bytes) {
  Descriptor descriptor(file.str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (!descriptor.isOpen())
    return cannotWrite(file, lastError());
  std::error_code code = descriptor.write(bytes);
  if (!code)
    code = descriptor.close();
  if (!code)
    return llvm::Error::success();
  fs::remove(file);
  return cannotWrite(file, code);
}

std::error_code checkRoom(StringRef folder, uint64_t bytes) {
  llvm::SmallString<128> model(folder), file;
  path::append(model, ".stepc-%%%%%%%%");
  int number = -1;
  if (std::error_code code = fs::createUniqueFile(model, number, file))
    return code;
  Descriptor descriptor(number);
  llvm::scope_exit remove([&] { fs::remove(file); });
  int wrong = bytes ? ::posix_fallocate(number, 0, bytes) : 0;
  return {wrong, std::generic_category()};
}

/// `make(start, made)` makes a file or folder whose path begins with `start`, and stores the path in `made`.
static llvm::Expected<std::string> makeTemporary(
    llvm::function_ref<std::error_code(const Twine &, llvm::SmallVectorImpl<char> &)> make) {
  llvm::SmallString<128> place, made;
  path::system_temp_directory(/*ErasedOnReboot=*/true, place);
  std::error_code code = fs::make_absolute(place);
  if (!code)
    code = make(Twine(place) + "/stepc", made);
  if (code)
    return fileError(place,
                     "expected a folder for temporary files (TMPDIR), which cannot be written: " +
                         reasonOf(code));
  return made.str().str();
}

llvm::Expected<std::string> makeTemporaryFile(StringRef ending) {
  return makeTemporary([&](const Twine &start, llvm::SmallVectorImpl<char> &made) {
    return fs::createUniqueFile(start + "-%%%%%%." + ending, made);
  });
}

llvm::Expected<std::string> makeTemporaryFolder() {
  return makeTemporary([](const Twine &start, llvm::SmallVectorImpl<char> &made) {
    return fs::createUniqueDirectory(start, made);
  });
}

std::string behindLinks(StringRef given) {
  llvm::SmallString<256> file(given);
  // The system, too, follows at most 40 links.
  for (int i = 0; i < 40; ++i) {
    char next[4096];
    ssize_t length = ::readlink(file.c_str(), next, sizeof(next));
    if (length < 0 || size_t(length) == sizeof(next))
      break;
    StringRef link(next, length);
    if (path::is_absolute(link)) {
      file = link;
    } else {
      path::remove_filename(file);
      path::append(file, link);
    }
  }
  return file.str().str();
}

bool isSameFile(StringRef a, StringRef b) {
  fs::file_status statusA, statusB;
  bool hasA = !fs::status(a, statusA), hasB = !fs::status(b, statusB);
  if (hasA != hasB)
    return false;
  if (hasA)
    return fs::is_regular_file(statusA) && fs::equivalent(statusA, statusB);
  // Neither file exists yet. They will be one file if both paths have one name in one folder.
  auto placeOf = [](StringRef given) {
    std::string file = behindLinks(given);
    llvm::SmallString<256> folder, missing(folderOf(file));
    if (fs::real_path(missing, folder)) {
      fs::make_absolute(missing);
      path::remove_dots(missing, /*remove_dot_dot=*/true);
      folder = missing;
    }
    path::append(folder, path::filename(file));
    return folder.str().str();
  };
  return placeOf(a) == placeOf(b);
}

} // namespace stepc::text

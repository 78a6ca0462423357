#include "frontends/manifest/JsonText.h"
#include "frontends/manifest/Safetensors.h"
#include "frontends/text/Files.h"
#include "frontends/text/Text.h"
#include "runtime/text/Plural.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <set>

namespace fs = llvm::sys::fs;
namespace json = llvm::json;
namespace path = llvm::sys::path;

namespace stepc::manifest {

/// Opens the files of one model.
class SafetensorsOpener {
public:
  SafetensorsOpener(SafetensorsFile::Read read, ErrorList &errors) : how(read), errors(errors) {}

  std::optional<SafetensorsFile> open(llvm::ArrayRef<std::string> paths) {
    size_t before = errors.size();
    made.fileName = paths.front();
    for (const std::string &file : paths)
      openFile(file, /*mayBeIndex=*/true);
    if (errors.size() != before)
      return std::nullopt;
    made.finish();
    return std::move(made);
  }

private:
  static constexpr size_t kStart = 64; ///< how many first bytes decide what a file is

  void openFile(const std::string &file, bool mayBeIndex);
  void openIndex(const std::string &file);
  bool readHeader(const std::string &file, fs::file_t handle, uint64_t size, llvm::StringRef start);
  void addShard(const std::string &index, const std::string &shard,
                const std::vector<std::string> &names);
  void checkTensors(size_t first);

  SafetensorsFile::Read how;
  ErrorList &errors;
  SafetensorsFile made;
  std::set<fs::UniqueID> seen;
  llvm::StringMap<size_t>
      known; ///< indices of views by name; SafetensorsFile makes its own index at the end
};

/// Whether a file begins like JSON text. If these bytes are a possible length of a header, it does not.
static bool looksLikeJson(llvm::StringRef start) {
  return text::withoutByteOrderMark(start).ltrim().starts_with("{") &&
         (start.size() < 8 ||
          llvm::support::endian::read64le(start.data()) > kMaxSafetensorsHeader);
}

static std::string reasonOf(llvm::Error error) {
  return text::reasonOf(llvm::errorToErrorCode(std::move(error)));
}

void SafetensorsOpener::openFile(const std::string &file, bool mayBeIndex) {
  llvm::StringRef what =
      mayBeIndex ? "a safetensors file or the index of one" : "a safetensors file";
  auto unreadable = [&](const std::string &reason) {
    errors.add(file, "expected " + what + ", but the file cannot be read: " + reason);
  };
  // The status is checked before the file is opened, because opening a pipe would wait for a writer.
  fs::file_status status;
  if (std::error_code code = fs::status(file, status))
    return unreadable(text::reasonOf(code));
  if (!fs::is_regular_file(status)) {
    std::string found = fs::is_directory(status) ? "a directory" : "a pipe or a device";
    llvm::SmallString<128> index(file);
    path::append(index, "model.safetensors.index.json");
    if (mayBeIndex && fs::exists(index))
      found += ", did you mean '" + index.str().str() + "'?";
    errors.add(file, "expected " + what + ", found " + found);
    return;
  }
  if (!seen.insert(status.getUniqueID()).second) {
    errors.add(file, "expected each file once, found it again");
    return;
  }
  made.fileNames.push_back(file);
  llvm::Expected<fs::file_t> handle = fs::openNativeFileForRead(file);
  if (!handle)
    return unreadable(reasonOf(handle.takeError()));
  llvm::scope_exit close([&] { fs::closeFile(*handle); });
  char bytes[kStart];
  llvm::Expected<size_t> count = fs::readNativeFileSlice(*handle, bytes, 0);
  if (!count)
    return unreadable(reasonOf(count.takeError()));
  llvm::StringRef start(bytes, *count);
  if (mayBeIndex && looksLikeJson(start))
    return openIndex(file);
  size_t first = made.views.size();
  if (readHeader(file, *handle, status.getSize(), start))
    checkTensors(first);
}

bool SafetensorsOpener::readHeader(const std::string &file, fs::file_t handle, uint64_t size,
                                   llvm::StringRef start) {
  std::optional<uint64_t> length = SafetensorsFile::headerLength(start, size, file, errors);
  if (!length)
    return false;
  if (how == SafetensorsFile::Read::Whole) {
    auto buffer = llvm::MemoryBuffer::getOpenFile(handle, file, size,
                                                  /*RequiresNullTerminator=*/false);
    if (!buffer) {
      errors.add(file, "expected a safetensors file, but it cannot be read: " +
                           text::reasonOf(buffer.getError()));
      return false;
    }
    llvm::StringRef all = made.buffers.emplace_back(std::move(*buffer))->getBuffer();
    llvm::StringRef data = all.drop_front(8 + *length);
    return made.add(all.substr(8, *length), data.size(),
                    reinterpret_cast<const uint8_t *>(data.data()), file, errors);
  }
  std::string header(*length, '\0');
  for (size_t used = 0; used < header.size();) {
    llvm::Expected<size_t> count = fs::readNativeFileSlice(
        handle, llvm::MutableArrayRef(header.data() + used, header.size() - used), 8 + used);
    if (!count || *count == 0) {
      errors.add(file, "expected a safetensors file, but its header cannot be read: " +
                           (count ? "it became shorter" : reasonOf(count.takeError())));
      return false;
    }
    used += *count;
  }
  return made.add(header, size - 8 - *length, nullptr, file, errors);
}

/// Reports the tensors, from view `first` on, whose name an earlier tensor has.
void SafetensorsOpener::checkTensors(size_t first) {
  for (size_t i = first; i < made.views.size(); ++i) {
    const TensorView &view = made.views[i];
    auto [earlier, isNew] = known.try_emplace(view.name, i);
    if (!isNew)
      errors.add(view.file,
                 "expected each tensor in one file, found it in '" +
                     made.views[earlier->second].file + "', too",
                 view.name);
  }
}

void SafetensorsOpener::openIndex(const std::string &file) {
  llvm::Expected<std::string> text =
      text::readFile(file, "the index of safetensors files", kMaxSafetensorsHeader);
  if (!text)
    return llvm::handleAllErrors(text.takeError(), [&](const llvm::FileError &error) {
      errors.add(error.getFileName(), error.messageWithoutFileInfo());
    });
  std::optional<ShardMap> shards = readShardIndex(*text, file, errors);
  if (!shards)
    return;
  for (const auto &[shard, names] : *shards)
    addShard(file, shard, names);
}

void SafetensorsOpener::addShard(const std::string &index, const std::string &shard,
                                 const std::vector<std::string> &names) {
  llvm::SmallString<128> file(path::parent_path(index));
  path::append(file, shard);
  fs::file_status status;
  if (std::error_code code = fs::status(file, status))
    return errors.add(index, "expected the shard '" + file.str() + "', which has " +
                                 plural(int64_t(names.size()), "tensor") + " by the index, found " +
                                 (code == std::errc::no_such_file_or_directory
                                      ? "no such file"
                                      : "that it cannot be read: " + text::reasonOf(code)));
  size_t first = made.views.size(), before = errors.size();
  openFile(file.str().str(), /*mayBeIndex=*/false);
  if (errors.size() != before)
    return; // the tensors of a shard with errors are unknown
  std::set<llvm::StringRef> listed(names.begin(), names.end()), found;
  for (const TensorView &view : llvm::ArrayRef(made.views).drop_front(first)) {
    found.insert(view.name);
    if (!listed.count(view.name))
      errors.add(view.file,
                 "expected the tensors that '" + index + "' gives to the shard, found another",
                 view.name);
  }
  for (const std::string &name : names)
    if (!found.count(name))
      errors.add(file, "expected a tensor that '" + index + "' gives to the shard, found none",
                 name);
}

std::optional<SafetensorsFile> SafetensorsFile::open(llvm::ArrayRef<std::string> paths, Read read,
                                                     ErrorList &errors) {
  return SafetensorsOpener(read, errors).open(paths);
}

/// Whether a shard's name leads to the folder of the index or below it. Links may lead anywhere: caches of
/// models consist of them.
static bool staysInFolder(llvm::StringRef shard) {
  // To LLVM "//x" is the name of a machine and not absolute.
  return !shard.starts_with("/") && !path::is_absolute(shard) && path::has_filename(shard) &&
         std::find(path::begin(shard), path::end(shard), "..") == path::end(shard) &&
         path::filename(shard) != ".";
}

std::optional<ShardMap> readShardIndex(llvm::StringRef text, llvm::StringRef file,
                                       ErrorList &errors) {
  ShardMap shards;
  JsonText json(text::withoutByteOrderMark(text), file, errors);
  bool isGood = json.read([&](const json::Value &root) {
    const json::Object *object = root.getAsObject();
    if (!object)
      return json.mismatch("", "the index of safetensors files, an object", root);
    // Other keys, for example "metadata", say nothing about where a tensor is.
    const json::Value *value = object->get("weight_map");
    if (!value)
      return json.error("", "expected a safetensors file or the index of one, which has the key "
                            "'weight_map', found other JSON text");
    const json::Object *map = value->getAsObject();
    if (!map)
      return json.mismatch("/weight_map", "an object of file names by tensor", *value);
    for (const auto &[key, item] : *map) {
      llvm::StringRef name = key;
      std::string at = "/weight_map" + pointerToken(name);
      if (std::string wrong = text::checkName(name, "a tensor's name"); !wrong.empty())
        json.error(at, wrong);
      else if (std::optional<std::string> shard = json.name(item, at, "a file name"))
        shards[*shard].push_back(name.str());
    }
    for (auto &[shard, names] : shards) {
      llvm::sort(names);
      if (!staysInFolder(shard))
        json.error("/weight_map" + pointerToken(names.front()),
                   "expected a file in the folder of the index, found '" + shard + "'");
    }
    if (map->empty())
      json.error("/weight_map", "expected at least one tensor, found none");
  });
  if (!isGood)
    return std::nullopt;
  return shards;
}

} // namespace stepc::manifest

// Files are read up to a bound and written whole or not at all, whatever stands in their way.
#include "frontends/text/Files.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

using namespace stepc;
namespace fs = std::filesystem;

namespace {

std::string message(llvm::Error error) { return error ? llvm::toString(std::move(error)) : ""; }

std::string contentOf(const fs::path &file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// No file may grow beyond that many bytes while it lives, as on a disk that is full.
class FullDisk {
public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = {bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    handler = signal(SIGXFSZ, SIG_IGN);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
  }

private:
  rlimit before;
  sighandler_t handler;
};

/// Somebody without the rights of root.
class Nobody {
public:
  static constexpr uid_t kNumber = 65534;
  Nobody() : isRoot(geteuid() == 0) {
    if (isRoot)
      EXPECT_EQ(seteuid(kNumber), 0);
  }
  ~Nobody() {
    if (isRoot)
      EXPECT_EQ(seteuid(0), 0);
  }

private:
  bool isRoot;
};

class Files : public testing::Test {
protected:
  void SetUp() override {
    std::string model = testing::TempDir() + "stepc-files-XXXXXX";
    folder = mkdtemp(model.data());
    std::ofstream(at("a")) << "old";
  }
  void TearDown() override {
    fs::permissions(folder, fs::perms::owner_all);
    fs::remove_all(folder);
  }

  fs::path at(const std::string &name) const { return folder / name; }
  std::string write(const fs::path &file, llvm::StringRef text) {
    return message(text::writeFile(file.string(), {text.take_front(1), text.drop_front(1)}));
  }
  /// All that stands in the folder.
  std::string names() const {
    std::vector<std::string> found;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    std::string text;
    for (const std::string &name : found)
      text += name + " ";
    return text;
  }
  struct stat statusOf(const std::string &name) const {
    struct stat status;
    EXPECT_EQ(stat(at(name).c_str(), &status), 0);
    return status;
  }

  fs::path folder;
};

TEST_F(Files, ANewFileHasTheModeOfTheProcess) {
  mode_t mask = umask(027);
  EXPECT_EQ(write(at("new"), "text"), "");
  umask(mask);
  EXPECT_EQ(contentOf(at("new")), "text");
  EXPECT_EQ(statusOf("new").st_mode & 07777, 0640u);
  EXPECT_EQ(names(), "a new ");
}

TEST_F(Files, AReplacedFileKeepsItsModeAndOwner) {
  chmod(at("a").c_str(), 0754);
  if (geteuid() == 0)
    EXPECT_EQ(chown(at("a").c_str(), 12, 34), 0);
  struct stat before = statusOf("a");
  EXPECT_EQ(write(at("a"), "new"), "");
  struct stat after = statusOf("a");
  EXPECT_EQ(contentOf(at("a")), "new");
  EXPECT_EQ(before.st_mode, after.st_mode);
  EXPECT_EQ(before.st_uid, after.st_uid);
  EXPECT_EQ(before.st_gid, after.st_gid);
  // In one step, by another file that takes its place.
  EXPECT_NE(before.st_ino, after.st_ino);
  EXPECT_EQ(names(), "a ");
}

TEST_F(Files, LinksStay) {
  fs::create_directory(at("sub"));
  fs::create_symlink("../a", at("sub") / "link");
  fs::create_symlink("sub/link", at("to-link"));
  EXPECT_EQ(write(at("to-link"), "by link"), "");
  EXPECT_EQ(fs::read_symlink(at("to-link")), "sub/link");
  EXPECT_EQ(fs::read_symlink(at("sub") / "link"), "../a");
  EXPECT_EQ(contentOf(at("a")), "by link");
  // One that leads nowhere yet.
  fs::create_symlink("there", at("dangling"));
  EXPECT_EQ(write(at("dangling"), "made"), "");
  EXPECT_EQ(contentOf(at("there")), "made");
  // A file of two names.
  fs::create_hard_link(at("a"), at("b"));
  EXPECT_EQ(write(at("b"), "both, and longer"), "");
  EXPECT_EQ(contentOf(at("a")), "both, and longer");
  EXPECT_EQ(write(at("b"), "x"), "");
  EXPECT_EQ(contentOf(at("a")), "x");
  EXPECT_EQ(write(at("b"), ""), "");
  EXPECT_EQ(contentOf(at("a")), "");
  EXPECT_EQ(names(), "a b dangling sub there to-link ");
}

TEST_F(Files, AttributesStay) {
  if (setxattr(at("a").c_str(), "user.note", "mine", 4, 0) != 0)
    GTEST_SKIP() << "the file system has no extended attributes";
  EXPECT_EQ(write(at("a"), "new"), "");
  char note[8] = "";
  EXPECT_EQ(getxattr(at("a").c_str(), "user.note", note, sizeof note), 4);
  EXPECT_EQ(contentOf(at("a")), "new");
}

TEST_F(Files, ReadOnlyFilesAreRefused) {
  chmod(at("a").c_str(), 0444);
  std::string wrong = "'" + at("a").string() + "': cannot write the file: it is read-only";
  EXPECT_EQ(message(text::checkPlace(at("a").string())), wrong);
  EXPECT_EQ(write(at("a"), "new"), wrong);
  EXPECT_EQ(contentOf(at("a")), "old");
  EXPECT_EQ(write(folder, "new"),
            "'" + folder.string() + "': expected a place for a file, found a directory");
  EXPECT_EQ(message(text::checkPlace(at(std::string(300, 'x')).string())),
            "'" + at(std::string(300, 'x')).string() +
                "': cannot write the file: file name too long");
}

TEST_F(Files, FilesOfALockedFolderAreOverwritten) {
  if (geteuid() == 0) {
    EXPECT_EQ(chown(folder.c_str(), Nobody::kNumber, Nobody::kNumber), 0);
    EXPECT_EQ(chown(at("a").c_str(), Nobody::kNumber, Nobody::kNumber), 0);
  }
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  {
    Nobody nobody;
    EXPECT_EQ(message(text::checkPlace(at("a").string())), "");
    EXPECT_EQ(write(at("a"), "new, longer"), "");
    EXPECT_EQ(contentOf(at("a")), "new, longer");
    std::string wrong = "'" + folder.string() +
                        "': expected a folder for the output, which cannot be written: permission "
                        "denied";
    EXPECT_EQ(message(text::checkPlace(at("b").string())), wrong);
    EXPECT_EQ(write(at("b"), "new"), wrong);
  }
  EXPECT_EQ(names(), "a ");
}

TEST_F(Files, AFullDiskLeavesTheOldFile) {
  std::string text(1 << 16, 'x');
  std::string wrong = "cannot write the file: file too large";
  fs::create_hard_link(at("a"), at("b"));
  std::ofstream(at("c")) << "old";
  FullDisk disk(1 << 12);
  EXPECT_EQ(write(at("b"), text), "'" + at("b").string() + "': " + wrong); // in its place
  EXPECT_EQ(contentOf(at("b")), "old");
  EXPECT_EQ(write(at("c"), text), "'" + at("c").string() + "': " + wrong); // by another
  EXPECT_EQ(contentOf(at("c")), "old");
  EXPECT_EQ(write(at("d"), text), "'" + at("d").string() + "': " + wrong); // a new one
  EXPECT_EQ(message(text::writeTemporary(at("e").string(), text)),
            "'" + at("e").string() + "': " + wrong);
  EXPECT_EQ(text::checkRoom(folder.string(), 1 << 16), std::errc::file_too_large);
  EXPECT_FALSE(text::checkRoom(folder.string(), 1 << 10));
  EXPECT_EQ(names(), "a b c ");
}

TEST_F(Files, DevicesAreWrittenDirectly) {
  EXPECT_EQ(write("/dev/null", "text"), "");
  EXPECT_EQ(write("/dev/full", "text"),
            "'/dev/full': cannot write the file: no space left on device");
  struct stat status;
  EXPECT_EQ(stat("/dev/full", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST_F(Files, ReadingHasABound) {
  auto read = [](const std::string &file, uint64_t most) {
    llvm::Expected<std::string> bytes = text::readFile(file, "a list", most);
    return bytes ? *bytes : llvm::toString(bytes.takeError());
  };
  EXPECT_EQ(read(at("a").string(), 3), "old");
  EXPECT_EQ(read(at("a").string(), 2),
            "'" + at("a").string() + "': expected a list of at most 2 bytes, found 3 bytes");
  EXPECT_EQ(read("/dev/zero", 1 << 20),
            "'/dev/zero': expected a list of at most 1 MiB, found more");
  EXPECT_EQ(read(folder.string(), 9),
            "'" + folder.string() + "': expected a list, found a directory");
  EXPECT_EQ(read(at("none").string(), 9), "'" + at("none").string() +
                                              "': expected a list, but the file cannot be read: no "
                                              "such file or directory");
  // The size that the system tells is 0.
  EXPECT_EQ(read("/proc/self/comm", 1 << 20), contentOf("/proc/self/comm"));
  fs::resize_file(at("a"), uint64_t(600) << 20); // sparse: it is not read
  EXPECT_EQ(read(at("a").string(), uint64_t(256) << 20),
            "'" + at("a").string() +
                "': expected a list of at most 256 MiB, found 629145600 bytes");
}

TEST_F(Files, OneFileHasManyNames) {
  fs::create_directory(at("sub"));
  fs::create_symlink("a", at("link"));
  fs::create_hard_link(at("a"), at("b"));
  fs::create_symlink("none", at("dangling"));
  auto same = [&](const std::string &a, const std::string &b) {
    EXPECT_EQ(text::isSameFile(at(a).string(), at(b).string()),
              text::isSameFile(at(b).string(), at(a).string()));
    return text::isSameFile(at(a).string(), at(b).string());
  };
  EXPECT_TRUE(same("a", "./a"));
  EXPECT_TRUE(same("a", "sub/../a"));
  EXPECT_TRUE(same("a", "link"));
  EXPECT_TRUE(same("a", "b"));
  EXPECT_FALSE(same("a", "sub"));
  EXPECT_FALSE(same("a", "none"));
  EXPECT_TRUE(same("none", "sub/../none"));
  EXPECT_TRUE(same("none", "dangling"));
  EXPECT_TRUE(same("nowhere/none", "./nowhere/none"));
  EXPECT_FALSE(same("none", "other"));
  EXPECT_FALSE(same("sub/none", "none"));
  EXPECT_FALSE(text::isSameFile("/dev/null", "/dev/null"));
}

} // namespace

//===- Files.cpp - Output files that appear whole or not at all ------------===//

#include "tools/stepc/Files.h"

#include "frontends/text/Files.h"
#include "tools/stepc/Options.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <unistd.h>

using namespace stepc::driver;
using namespace stepc;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;
using llvm::StringRef;

OutputFolders::~OutputFolders() {
  // Folders that are not empty stay.
  for (const std::string &folder : llvm::reverse(made))
    fs::remove(folder);
}

std::error_code OutputFolders::make(StringRef folder) {
  for (StringRef part = folder; !part.empty() && !fs::exists(part); part = path::parent_path(part))
    made.insert(made.begin(), part.str());
  return fs::create_directories(folder, /*IgnoreExisting=*/true, fs::all_all);
}

/// A signal ends in leaveOnSignal, after LLVM has removed the files, so that the hidden folder is empty. A
/// command writes one set of files, so one name is enough.
static char hiddenFolder[4096];
static void leaveOnSignal() {
  rmdir(hiddenFolder);
  _exit(130);
}

OutputFiles::~OutputFiles() {
  for (const Pending &file : pending) {
    fs::remove(file.temporary);
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  }
  if (!hidden.empty())
    fs::remove(hidden);
  hiddenFolder[0] = 0;
}

static void sayUnwritable(Report &report, StringRef folder, std::error_code code) {
  report.error(folder, "expected a folder for the output, which cannot be written: " +
                           text::reasonOf(code));
}

std::string OutputFiles::add(StringRef name) {
  if (hidden.empty()) {
    std::error_code code = folders.make(folder);
    if (!code) {
      llvm::SmallString<128> prefix(folder);
      path::append(prefix, ".stepc-%%%%%%%%");
      // The random part makes the name unique. The folder has mode 0777 less umask, so that the files are
      // ordinary ones.
      fs::createUniquePath(prefix, hidden, /*MakeAbsolute=*/false);
      code = fs::create_directory(hidden);
    }
    if (code) {
      hidden.clear();
      sayUnwritable(report, folder, code);
      return "";
    }
    if (hidden.size() < sizeof(hiddenFolder)) {
      std::strcpy(hiddenFolder, hidden.c_str());
      llvm::sys::SetInterruptFunction(leaveOnSignal);
    }
  }
  llvm::SmallString<128> target(folder), temporary(hidden);
  path::append(target, name);
  path::append(temporary, name);
  llvm::sys::RemoveFileOnSignal(temporary);
  pending.push_back({temporary.str().str(), target.str().str()});
  return pending.back().temporary;
}

bool OutputFiles::addText(StringRef name, StringRef text) {
  std::string temporary = add(name);
  if (temporary.empty())
    return false;
  llvm::Error error = text::writeTemporary(temporary, text);
  if (!error)
    return true;
  // Name the target in the error, because the user does not know the temporary file.
  llvm::handleAllErrors(std::move(error), [&](const llvm::FileError &file) {
    report.error(StringRef(pending.back().target), file.messageWithoutFileInfo());
  });
  return false;
}

bool OutputFiles::checkTargets() {
  for (const Pending &file : pending) {
    fs::file_status status;
    std::error_code code = fs::status(file.target, status);
    if (fs::is_directory(status)) {
      report.error(file.target, "expected a place for a file, found a directory");
      return false;
    }
    // The name may be too long, for example.
    if (code && code != std::errc::no_such_file_or_directory) {
      report.error(file.target, "cannot write the file: " + text::reasonOf(code));
      return false;
    }
  }
  return true;
}

bool OutputFiles::commit() {
  // Find a target that cannot be replaced before any target is.
  if (!checkTargets())
    return false;
  for (const Pending &file : pending)
    if (std::error_code code = fs::rename(file.temporary, file.target)) {
      report.error(file.target, "cannot write the file: " + text::reasonOf(code));
      return false;
    }
  for (const Pending &file : pending)
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  pending.clear();
  folders.keep();
  return true;
}

bool stepc::driver::canWrite(Report &report, StringRef folder, llvm::ArrayRef<std::string> names) {
  OutputFiles files(report, folder);
  for (const std::string &name : names)
    if (files.add(name).empty()) {
      report.hint("-o names another place");
      return false;
    }
  return files.checkTargets();
}

static bool isStandardOutput(StringRef file) { return file == "-" || file == "/dev/stdout"; }

/// Makes the folder of a file. Returns false after an error.
static bool makeFolderOf(StringRef file, OutputFolders &folders, Report &report) {
  StringRef folder = path::parent_path(file);
  std::error_code code = folder.empty() ? std::error_code() : folders.make(folder);
  if (code)
    sayUnwritable(report, folder, code);
  return !code;
}

bool stepc::driver::canWriteFile(Report &report, StringRef option, StringRef file) {
  if (isStandardOutput(file))
    return true;
  OutputFolders folders;
  if (makeFolderOf(file, folders, report)) {
    llvm::Error error = text::checkPlace(file);
    if (!error)
      return true;
    report.error(std::move(error));
  }
  report.hint(option + " names another place");
  return false;
}

bool stepc::driver::writeFile(Report &report, StringRef file, llvm::ArrayRef<StringRef> pieces) {
  if (isStandardOutput(file)) {
    for (StringRef piece : pieces)
      llvm::outs() << piece;
    return true; // `finish` reports errors of standard output
  }
  OutputFolders folders;
  if (!makeFolderOf(file, folders, report))
    return false;
  if (llvm::Error error = text::writeFile(file, pieces)) {
    report.error(std::move(error));
    return false;
  }
  folders.keep();
  return true;
}

bool stepc::driver::areApart(Report &report, llvm::ArrayRef<NamedFile> outputs,
                             llvm::ArrayRef<NamedFile> inputs) {
  auto isFile = [](const NamedFile &file) {
    return !file.path.empty() && !isStandardOutput(file.path);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!isFile(outputs[i]))
      continue;
    auto clash = [&](const NamedFile &other) {
      return isFile(other) && text::isSameFile(outputs[i].path, other.path);
    };
    for (const NamedFile &earlier : outputs.take_front(i))
      if (clash(earlier)) {
        report.error("expected another file after " + outputs[i].option + " than after " +
                     earlier.option + ", found '" + outputs[i].path + "' for both");
        return false;
      }
    for (const NamedFile &input : inputs)
      if (clash(input)) {
        report.error("expected an output that is no input, found '" + outputs[i].path +
                     "', which " + input.option + " reads");
        report.hint(outputs[i].option + " names another place");
        return false;
      }
  }
  return true;
}

int stepc::driver::finish(int exitCode) {
  llvm::raw_fd_ostream &os = llvm::outs();
  os.flush();
  if (os.has_error()) {
    // The reader of a pipe may have enough, as in `| head`, so this error is not printed.
    if (os.error() != std::errc::broken_pipe)
      Report().error("standard output", "cannot write: " + text::reasonOf(os.error()));
    os.clear_error();
    exitCode = exitCode == kSuccess ? kInputError : exitCode;
  }
  // Nobody can be told of errors of standard error. The exit code says enough.
  llvm::errs().clear_error();
  return exitCode;
}

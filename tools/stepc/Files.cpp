//===- Files.cpp - Output files that appear whole or not at all ------------===//

#include "tools/stepc/Files.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <unistd.h>

using namespace stepc::driver;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;
using llvm::StringRef;

/// Signals end in here after LLVM has removed the files: the hidden folder is empty then. One
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
  // Only those that are empty go.
  for (const std::string &made : llvm::reverse(folders))
    fs::remove(made);
}

std::string OutputFiles::add(StringRef name) {
  if (hidden.empty()) {
    // Remember which folders are new: a failure leaves none behind.
    for (StringRef part = folder; !part.empty() && !fs::exists(part);
         part = path::parent_path(part))
      folders.insert(folders.begin(), part.str());
    std::error_code code = fs::create_directories(folder, /*IgnoreExisting=*/true, fs::all_all);
    if (!code) {
      llvm::SmallString<128> prefix(folder);
      path::append(prefix, ".stepc-%%%%%%%%");
      // Unique by its random part; 0777 as umask allows, so that the files are ordinary ones.
      fs::createUniquePath(prefix, hidden, /*MakeAbsolute=*/false);
      code = fs::create_directory(hidden);
    }
    if (code) {
      hidden.clear();
      report.error(folder,
                   "expected a folder for the output, which cannot be written: " + code.message());
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
  std::error_code code;
  llvm::raw_fd_ostream os(temporary, code);
  if (!code) {
    os << text;
    os.close();
    code = os.error();
    os.clear_error();
  }
  if (code) {
    report.error(pending.back().target, "cannot write the file: " + code.message());
    return false;
  }
  return true;
}

bool OutputFiles::checkTargets() {
  for (const Pending &file : pending)
    if (fs::is_directory(file.target)) {
      report.error(file.target, "expected a place for a file, found a directory");
      return false;
    }
  return true;
}

bool OutputFiles::commit() {
  // A target that cannot be replaced is found before the first is.
  if (!checkTargets())
    return false;
  for (const Pending &file : pending)
    if (std::error_code code = fs::rename(file.temporary, file.target)) {
      report.error(file.target, "cannot write the file: " + code.message());
      return false;
    }
  for (const Pending &file : pending)
    llvm::sys::DontRemoveFileOnSignal(file.temporary);
  pending.clear();
  folders.clear();
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

bool stepc::driver::writeFile(Report &report, StringRef file, StringRef text) {
  if (file == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    if (!llvm::outs().has_error())
      return true;
    llvm::outs().clear_error();
    report.error("cannot write standard output");
    return false;
  }
  StringRef parent = path::parent_path(file);
  OutputFiles files(report, parent.empty() ? "." : parent);
  return files.addText(path::filename(file), text) && files.commit();
}

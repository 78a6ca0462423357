//===- Link.cpp - Object code and runtime to a shared library --------------===//

#include "passes/codegen/Codegen.h"
#include "passes/codegen/TemporaryFolder.h"
#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/TargetShape.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace stepc::codegen {
namespace {

Error failure(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

Error writeFile(StringRef path, StringRef text) {
  std::error_code code;
  raw_fd_ostream os(path, code);
  if (code)
    return failure("expected to write '" + path + "', " + code.message());
  os << text;
  os.close();
  if (os.has_error())
    return failure("expected to write '" + path + "', " + os.error().message());
  return Error::success();
}

Expected<std::string> findLinker() {
  if (std::optional<std::string> given = sys::Process::GetEnv("STEPC_LINKER"))
    return *given;
  for (StringRef name : {"clang++-22", "clang++"})
    if (ErrorOr<std::string> found = sys::findProgramByName(name))
      return *found;
  if (ErrorOr<std::string> found = sys::findProgramByName("clang++", {"/usr/lib/llvm-22/bin"}))
    return *found;
  return failure("expected clang++ in the PATH or in STEPC_LINKER to link the library, found none");
}

} // namespace

Expected<std::string> findRuntimeArchive(StringRef executable, Sanitizer sanitizer) {
  StringRef name = sanitizer == Sanitizer::Address  ? "libstepc_runtime_asan.a"
                   : sanitizer == Sanitizer::Thread ? "libstepc_runtime_tsan.a"
                                                    : "libstepc_runtime.a";
  SmallString<128> path;
  if (std::optional<std::string> given = sys::Process::GetEnv("STEPC_RUNTIME_DIR")) {
    path = *given;
  } else {
    path = sys::path::parent_path(executable);
    sys::path::append(path, "..", "lib");
  }
  sys::path::append(path, name);
  if (!sys::fs::exists(path))
    return failure("expected the runtime archive " + path +
                   ", found none (STEPC_RUNTIME_DIR names its folder)");
  return std::string(path);
}

Error linkLibrary(ArrayRef<Program> programs, StringRef runtimeArchive, StringRef path,
                  Sanitizer sanitizer) {
  Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  Expected<std::vector<char>> table = emitTable(programs);
  if (!table)
    return table.takeError();
  const std::string &name = programs[0].plan.name;
  TemporaryFolder folder;
  if (Error error = folder.create())
    return error;
  std::string exports = folder.file("exports.map"), log = folder.file("linker.log");
  std::vector<std::string> objects = {folder.file("table.o")};
  if (Error error = writeFile(objects[0], StringRef(table->data(), table->size())))
    return error;
  for (const Program &program : programs) {
    objects.push_back(folder.file((kindOfChip(program.plan.chip) + ".o").str()));
    StringRef code(program.object.data(), program.object.size());
    if (Error error = writeFile(objects.back(), code))
      return error;
  }
  std::string symbols =
      "{ global: stepc_library_table; " + kernels::entryName(name) + "; local: *; };\n";
  if (Error error = writeFile(exports, symbols))
    return error;

  // Linked beside its place, so that a trainer never loads half a library.
  SmallString<128> unfinished;
  if (std::error_code code = sys::fs::createUniqueFile(path + ".%%%%%%", unfinished))
    return failure("expected to write '" + path + "', " + code.message());
  scope_exit removeUnfinished([&] { sys::fs::remove(unfinished); });

  // Of the library, not of the path: that may be a temporary one.
  std::string soname = "lib" + name + ".so";
  std::string script = "-Wl,--version-script=" + exports;
  SmallVector<StringRef> arguments = {*linker, "-shared", "-fuse-ld=lld", "-o", unfinished};
  append_range(arguments, objects);
  append_range(arguments,
               ArrayRef<StringRef>{
                   runtimeArchive, script,
                   // One by one: -Wl would cut a name at its commas.
                   "-Xlinker", "-soname", "-Xlinker", soname,
                   // A library brings its own C++ runtime: the trainer's may be another, or none.
                   "-static-libstdc++", "-static-libgcc", "-pthread", "-Wl,--gc-sections",
                   // The same inputs give the same bytes.
                   "-Wl,--build-id=none", "-Wl,--strip-debug"});
  // The program that loads an instrumented library brings the sanitizer.
  if (sanitizer == Sanitizer::None)
    arguments.push_back("-Wl,-z,defs");
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  std::string problem;
  int status = sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects, 0, 0, &problem);
  if (status) {
    auto output = MemoryBuffer::getFile(log);
    return failure("expected '" + *linker + "' to link '" + path + "', it failed with status " +
                   Twine(status) + (problem.empty() ? "" : " (" + problem + ")") + "\n" +
                   (output ? (*output)->getBuffer().rtrim() : StringRef()));
  }
  if (std::error_code code = sys::fs::rename(unfinished, path))
    return failure("expected to write '" + path + "', " + code.message());
  removeUnfinished.release();
  return Error::success();
}

Error writeHeader(ArrayRef<Program> programs, StringRef path) {
  return writeFile(path, makeHeader(programs));
}

} // namespace stepc::codegen

//===- Link.cpp - Object code and runtime to a shared library --------------===//

#include "passes/codegen/Codegen.h"

#include "frontends/text/Files.h"
#include "passes/codegen/LibraryFile.h"
#include "passes/codegen/TemporaryFolder.h"
#include "passes/kernels/EmbedPlan.h"
#include "passes/kernels/TargetShape.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace stepc::codegen {
namespace {

Error failure(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

/// The C libraries of this machine. The loader that started the compiler says where they are, so no folders
/// of distributions are known here.
Expected<std::vector<std::string>> findSystemLibraries() {
  std::vector<std::string> paths;
  for (const char *name : {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}) {
    void *library = dlopen(name, RTLD_LAZY);
    if (!library)
      return failure("expected the system's library " + Twine(name) + " to link with, " +
                     dlerror());
    link_map *entry = nullptr;
    if (dlinfo(library, RTLD_DI_LINKMAP, &entry) == 0)
      paths.push_back(entry->l_name);
    dlclose(library);
  }
  return paths;
}

/// Calls LLVM's linker in this process. Returns the library's bytes, or the linker's messages as an error.
/// The bytes come through a pipe, because the linker would map a file, and on a full disk a write to mapped
/// memory ends the process.
Expected<std::string> runLinker(std::vector<std::string> arguments, StringRef output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return failure("expected a pipe for the linker, " + Twine(strerror(errno)));
  std::string bytes;
  std::thread reader([&] {
    std::vector<char> part(1 << 16);
    ssize_t count;
    while ((count = read(ends[0], part.data(), part.size())) > 0 || (count < 0 && errno == EINTR))
      bytes.append(part.data(), count > 0 ? count : 0);
  });
  arguments.push_back("--output=/proc/self/fd/" + std::to_string(ends[1]));
  SmallVector<const char *> words = {"ld.lld"};
  for (const std::string &argument : arguments)
    words.push_back(argument.c_str());
  std::string log;
  raw_string_ostream os(log);
  lld::Result result = lld::lldMain(words, os, os, {{lld::Gnu, &lld::elf::link}});
  close(ends[1]);
  reader.join();
  close(ends[0]);
  if (result.retCode != 0)
    return failure("expected to link '" + output + "', LLVM's linker failed with status " +
                   Twine(result.retCode) + "\n" + StringRef(log).rtrim());
  return bytes;
}

} // namespace

Expected<std::vector<std::string>> findRuntimeArchives(StringRef executable, Sanitizer sanitizer) {
  StringRef name = sanitizer == Sanitizer::Address  ? "libstepc_runtime_asan.a"
                   : sanitizer == Sanitizer::Thread ? "libstepc_runtime_tsan.a"
                                                    : "libstepc_runtime.a";
  SmallString<128> own = sys::path::parent_path(executable);
  sys::path::append(own, "..", "lib");
  std::string given = sys::Process::GetEnv("STEPC_RUNTIME_DIR").value_or("");
  SmallString<128> runtime(given.empty() ? own.str() : StringRef(given));
  sys::path::append(runtime, name);
  std::string hint = "STEPC_RUNTIME_DIR names its folder";
  if (sanitizer != Sanitizer::None)
    hint += "; in a build folder `cmake --build build --target " +
            name.drop_front(3).drop_back(2).str() + "` makes it";
  if (!sys::fs::exists(runtime))
    return failure("expected the runtime archive " + runtime + ", found none (" + hint + ")");
  sys::path::append(own, "libstepc_runtime_cxx.a");
  if (!sys::fs::exists(own))
    return failure("expected the C++ library for compiled libraries as " + own + ", found none");
  return std::vector<std::string>{std::string(runtime), std::string(own)};
}

Error linkLibrary(ArrayRef<Program> programs, ArrayRef<std::string> archives, StringRef path,
                  Sanitizer sanitizer) {
  Expected<std::vector<std::string>> system = findSystemLibraries();
  if (!system)
    return system.takeError();
  Expected<std::vector<char>> table = emitTable(programs);
  if (!table)
    return table.takeError();
  const std::string &name = programs[0].plan.name;
  TemporaryFolder folder;
  if (Error error = folder.create())
    return error;
  std::string exports = folder.file("exports.map");
  std::vector<std::string> inputs = {folder.file("table.o")};
  if (Error error = text::writeTemporary(inputs[0], StringRef(table->data(), table->size())))
    return error;
  for (const Program &program : programs) {
    inputs.push_back(folder.file(programKey(program.plan.chip) + ".o"));
    StringRef code(program.object.data(), program.object.size());
    if (Error error = text::writeTemporary(inputs.back(), code))
      return error;
  }
  std::string symbols =
      "{ global: stepc_library_table; " + kernels::entryName(name) + "; local: *; };\n";
  if (Error error = text::writeTemporary(exports, symbols))
    return error;

  std::vector<std::string> arguments = {
      "-shared", "--version-script=" + exports,
      // The soname is from the library's name and not from the path, which may be temporary.
      "--soname=lib" + name + ".so", "--gc-sections", "--hash-style=gnu",
      // Exceptions find their handlers by this header.
      "--eh-frame-hdr",
      // With these flags equal inputs give equal bytes.
      "--build-id=none", "--strip-debug", "--as-needed"};
  // The program that loads an instrumented library brings the sanitizer.
  if (sanitizer == Sanitizer::None)
    append_range(arguments, ArrayRef<std::string>{"-z", "defs"});
  // A library brings its own C++ runtime: the trainer's may be another, or none.
  append_range(inputs, archives);
  append_range(inputs, *system);
  for (const std::string &input : inputs) {
    SmallString<128> absolute(
        input); // a relative path that begins with @ would name a file of options
    if (std::error_code code = sys::fs::make_absolute(absolute))
      return failure("expected to read '" + input + "', " + code.message());
    arguments.push_back(std::string(absolute));
  }
  Expected<std::string> bytes = runLinker(std::move(arguments), path);
  if (!bytes)
    return bytes.takeError();

  // Writes the file in one step, so that a trainer never loads half a library.
  return text::writeFile(path, {*bytes, footerOf(*bytes)});
}

Error writeHeader(ArrayRef<Program> programs, StringRef path) {
  return text::writeTemporary(path, makeHeader(programs));
}

} // namespace stepc::codegen

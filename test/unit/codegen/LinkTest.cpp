//===- LinkTest.cpp - Object code to a library, without a toolchain --------===//

#include "passes/codegen/Codegen.h"
#include "test/unit/codegen/Compile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include "gtest/gtest.h"

#include <csignal>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <unistd.h>

namespace stepc::test {
namespace {

using Archives = std::vector<std::string>;

std::string contents(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : "";
}

/// A program of C++ in the place of a compiled one. Its table of commands is never read.
codegen::Program programOf(const std::string &name, const std::string &text) {
  std::string source = temporaryFile(name + ".cpp"), object = temporaryFile(name + ".o");
  std::ofstream(source) << text << "\nextern \"C\" { alignas(64) char stepc_program_cpu[4096]; }\n";
  std::string compiler =
      llvm::cantFail(llvm::errorOrToExpected(llvm::sys::findProgramByName("clang++-22")));
  EXPECT_EQ(llvm::sys::ExecuteAndWait(
                compiler, {compiler, "-std=c++20", "-O1", "-fPIC", "-c", source, "-o", object}),
            0);
  std::string bytes = contents(object);
  codegen::Program program;
  program.plan.name = name;
  program.object.assign(bytes.begin(), bytes.end());
  return program;
}

Archives archives() { return llvm::cantFail(codegen::findRuntimeArchives(STEPC_TEST_BIN "/test")); }

std::string errorOf(const codegen::Program &program, const Archives &archives,
                    const std::string &path) {
  return llvm::toString(codegen::linkLibrary(program, archives, path));
}

TEST(Link, NoProgramIsCalledAndTheLibraryRuns) {
  Compiled compiled = compile({input("adamw.mlir")});
  ASSERT_EQ(compiled.error, "");
  std::string path = temporaryFile("libbare.so");
  std::string programs = getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  std::string error = llvm::toString(codegen::linkLibrary(compiled.programs, archives(), path));
  setenv("PATH", programs.c_str(), 1);
  EXPECT_EQ(error, "");
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  EXPECT_TRUE(dlsym(library, compiled.entry.c_str()));
  EXPECT_EQ(dlclose(library), 0);
}

/// A static object whose constructor catches an exception and whose destructor runs once, at dlclose, in
/// each of two libraries that would share the counter if its symbol were visible.
TEST(Link, UnloadingRunsStaticDestructorsAndLibrariesShareNothing) {
  std::string log = temporaryFile("unload.log");
  codegen::Program program = programOf("unload", R"(
#include <cstdio>
#include <stdexcept>
#include <string>
inline int counter = 0;
static void note(const std::string &text) {
  if (std::FILE *file = std::fopen(")" + log + R"(", "a")) {
    std::fputs((text + std::to_string(++counter) + "\n").c_str(), file);
    std::fclose(file);
  }
}
struct Noted {
  Noted() {
    try {
      throw std::runtime_error("caught ");
    } catch (const std::exception &error) {
      note(error.what());
    }
  }
  ~Noted() { note("destroyed "); }
} object;
)");
  std::vector<void *> loaded;
  for (const char *name : {"libunload-1.so", "libunload-2.so"}) {
    std::string path = temporaryFile(name);
    ASSERT_EQ(errorOf(program, archives(), path), "");
    loaded.push_back(dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL));
    ASSERT_TRUE(loaded.back()) << dlerror();
  }
  EXPECT_EQ(contents(temporaryFile("libunload-1.so")), contents(temporaryFile("libunload-2.so")));
  EXPECT_EQ(contents(log), "caught 1\ncaught 1\n");
  for (void *library : loaded)
    EXPECT_EQ(dlclose(library), 0);
  EXPECT_EQ(contents(log), "caught 1\ncaught 1\ndestroyed 2\ndestroyed 2\n");
}

TEST(Link, RefusalsSayWhy) {
  std::string path = temporaryFile("libbroken.so");
  codegen::Program broken;
  broken.plan.name = "broken";
  broken.object = {'x', 'y'};
  std::string error = errorOf(broken, {"/nowhere/libstepc_runtime.a"}, path);
  EXPECT_NE(error.find("expected to link '" + path + "', LLVM's linker failed with status 1\n"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("/nowhere/libstepc_runtime.a"), std::string::npos) << error;
  EXPECT_FALSE(llvm::sys::fs::exists(path));
  error = errorOf(programOf("closed", ""), archives(), "/nowhere/libbroken.so");
  EXPECT_NE(error.find("'/nowhere': expected a folder for the output"), std::string::npos) << error;
  codegen::Program twice[] = {broken, broken};
  error = llvm::toString(codegen::linkLibrary(twice, {}, path));
  EXPECT_EQ(error, "expected different targets in a library, found two for cpu");
  // Whatever a library calls is in it, or in the libraries of C.
  error = errorOf(
      programOf("open", "void elsewhere(); struct Calls { Calls() { elsewhere(); } } calls;"),
      archives(), path);
  EXPECT_NE(error.find("undefined symbol: elsewhere()"), std::string::npos) << error;
  EXPECT_FALSE(llvm::sys::fs::exists(path));
  // The linker can be called again after each of them, and nothing is left beside the library.
  EXPECT_EQ(errorOf(programOf("closed", ""), archives(), path), "");
  for (const auto &file : std::filesystem::directory_iterator(temporaryFile("")))
    EXPECT_EQ(file.path().string().find("libbroken.so."), std::string::npos) << file.path();
}

/// As on a full disk: the error is told, and nothing is left.
TEST(Link, ALibraryThatDoesNotFitIsAnError) {
  std::string folder = temporaryFile("full"), path = folder + "/libfull.so";
  std::filesystem::create_directories(folder);
  codegen::Program program = programOf("full", "");
  rlimit before, little;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  little = {1 << 16, before.rlim_max}; // more than an object has, and less than a library
  auto *handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  std::string error = errorOf(program, archives(), path);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(error, "'" + path + "': cannot write the file: file too large");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_EQ(errorOf(program, archives(), path), "");
}

TEST(Link, ArchivesThatAreMissingAreNamed) {
  std::string folder = temporaryFile("installed");
  std::filesystem::create_directories(folder + "/bin");
  std::filesystem::create_directories(folder + "/lib");
  auto error = [&] {
    return llvm::toString(codegen::findRuntimeArchives(folder + "/bin/stepc").takeError());
  };
  EXPECT_NE(error().find("expected the runtime archive " + folder +
                         "/bin/../lib/libstepc_runtime.a, found none"),
            std::string::npos)
      << error();
  std::ofstream(folder + "/lib/libstepc_runtime.a") << "!<arch>\n";
  EXPECT_EQ(error(), "expected the C++ library for compiled libraries as " + folder +
                         "/bin/../lib/libstepc_runtime_cxx.a, found none");
}

TEST(Link, PathsMayBeginWithAnAt) {
  std::string folder = temporaryFile("at");
  std::filesystem::create_directories(folder + "/@lib");
  std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  std::filesystem::copy_file(archives()[0], folder + "/@lib/libstepc_runtime.a");
  std::string error =
      errorOf(programOf("at", ""), {"@lib/libstepc_runtime.a", archives()[1]}, "@lib/libat.so");
  std::filesystem::current_path(before);
  EXPECT_EQ(error, "");
  EXPECT_TRUE(llvm::sys::fs::exists(folder + "/@lib/libat.so"));
}

} // namespace
} // namespace stepc::test

//===- OutputTest.cpp - What a compilation leaves --------------------------===//

#include "passes/codegen/Codegen.h"
#include "passes/kernels/TargetShape.h"
#include "runtime/plan/Tables.h"
#include "test/unit/codegen/Compile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <fstream>
#include <sstream>

namespace stepc::test {
namespace {

struct Ran {
  int status;
  std::string output;
};

Ran run(std::vector<std::string> words) {
  std::string log = temporaryFile("output.log");
  llvm::sys::fs::remove(log); // redirection does not truncate
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(log),
                                                llvm::StringRef(log)};
  auto program = llvm::sys::findProgramByName(words.front());
  std::vector<llvm::StringRef> arguments(words.begin(), words.end());
  int status = llvm::sys::ExecuteAndWait(program ? *program : words.front(), arguments,
                                         std::nullopt, redirects);
  auto text = llvm::MemoryBuffer::getFile(log);
  return {status, text ? (*text)->getBuffer().str() : ""};
}

std::string contents(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : "";
}

TEST(Output, TheHeaderIsCAndCxx) {
  Compiled compiled = compile({input("muon_two_ranks.mlir")});
  ASSERT_EQ(compiled.error, "");
  std::string folder = temporaryFile(""), include = "-I" STEPC_TEST_INCLUDE;
  std::ofstream(folder + "muon.h") << compiled.header;
  std::ofstream(folder + "use.c")
      << "#include \"muon.h\"\n#include \"muon.h\"\n"
         "const stepc_library *(*entry)(void) = muon_library;\n"
         "int shapes[muon_parameters] = {muon_parameter_w2, muon_route_Muon, "
         "muon_route_Muon_weight_decay};\n"
         "_Static_assert(muon_parameter_w2 == 1, \"\");\n";
  Ran c = run({"clang-22", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", include,
               "-fsyntax-only", folder + "use.c"});
  EXPECT_EQ(c.status, 0) << c.output << compiled.header;
  Ran cxx = run({"clang++-22", "-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror", include,
                 "-fsyntax-only", "-x", "c++", "-D_Static_assert=static_assert", folder + "use.c"});
  EXPECT_EQ(cxx.status, 0) << cxx.output;
}

TEST(Output, TheHeaderKeepsHostileNamesInComments) {
  std::string text = replaced(input("adamw.mlir"), "@\"a.bias\"", "@\"a*/ int x; /* b\\\\\"");
  Compiled compiled = compile({replaced(text, "@\"b.bias\"", "@\"a*/ int x; /+ b__\"")});
  ASSERT_EQ(compiled.error, "");
  std::string folder = temporaryFile("");
  std::ofstream(folder + "hostile.h") << compiled.header;
  Ran c = run({"clang-22", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror",
               "-I" STEPC_TEST_INCLUDE, "-fsyntax-only", "-x", "c", folder + "hostile.h"});
  EXPECT_EQ(c.status, 0) << c.output << compiled.header;
}

TEST(Output, ThePlanIsJson) {
  Compiled compiled = compile({input("muon_two_ranks.mlir")});
  auto json = llvm::json::parse(compiled.json);
  ASSERT_TRUE(bool(json)) << compiled.json;
  const llvm::json::Object &plan = *json->getAsObject();
  EXPECT_EQ(plan.getString("format"), "stepc-plan");
  EXPECT_EQ(plan.getString("name"), "muon");
  const llvm::json::Object &group = *(*plan.getArray("groups"))[0].getAsObject();
  EXPECT_EQ(group.getString("strategy"), "owner");
  const llvm::json::Object &hop = *(*group.getArray("hops"))[0].getAsObject();
  EXPECT_EQ(hop.getArray("base")->size(), 3u);
  EXPECT_EQ((*hop.getArray("owned"))[0].getAsObject()->getInteger("size"), 2);
  // Blocks 0 and 2 belong to rank 0: rank 1 sends half of two, rank 0 half of one.
  const llvm::json::Object &exchange = *(*plan.getArray("exchanges"))[0].getAsObject();
  EXPECT_EQ((*exchange.getArray("bytes_sent"))[0], 35 * 40 * 2 + plan::kSealBytes);
  EXPECT_EQ((*exchange.getArray("bytes_sent"))[1], 2 * 35 * 40 * 2 + plan::kSealBytes);
}

TEST(Output, LibrariesAreReproducible) {
  Compiled first = load({input("adamw.mlir")}), second = load({input("adamw.mlir")});
  ASSERT_TRUE(first.library && second.library) << first.error << second.error;
  ASSERT_NE(first.path, second.path);
  EXPECT_EQ(contents(first.path), contents(second.path));
  EXPECT_NE(first.library, second.library); // two instances of the program, each with its own plan
  Ran symbols = run({"/usr/lib/llvm-22/bin/llvm-nm", "-D", "--defined-only",
                     "--format=just-symbols", first.path});
  EXPECT_EQ(symbols.output, "adamw_library\nstepc_library_table\n");
}

TEST(Output, ALibraryForAnotherChipIsRefused) {
  // No machine has AMX and AVX10 but not SSE: the name is real, the CPU is not here.
  Compiled compiled = load({input("adamw.mlir"), "cpu:diamondrapids"});
  ASSERT_TRUE(compiled.library) << compiled.error;
  stepc_options options = {};
  options.abi_version = STEPC_ABI_VERSION;
  options.struct_size = sizeof(options);
  stepc_instance *instance = nullptr;
  char error[512] = "";
  llvm::Expected<std::string> here = chipOfTarget("cpu");
  ASSERT_TRUE(bool(here));
  if (llvm::StringRef(*here).contains("+amx-fp16"))
    GTEST_SKIP() << "this machine is one";
  EXPECT_EQ(compiled.library->create(&options, &instance, error, sizeof(error)), STEPC_ERROR_CHIP)
      << error;
}

TEST(Output, RefusalsSayWhy) {
  Compiled compiled = compile({input("adamw.mlir"), "cpu:z80"});
  EXPECT_NE(compiled.error.find("expected a cpu that LLVM knows for x86_64, found 'z80'"),
            std::string::npos)
      << compiled.error;
  compiled = compile({input("adamw.mlir"), "gpu"});
  EXPECT_NE(
      compiled.error.find("expected cpu, cpu:<llvm cpu>, cuda:<gpu>,…, emulated, emulated:<gpu>,…, "
                          "interpret, interpret:<llvm cpu> or interpret:<gpu>,…, found 'gpu'"),
      std::string::npos)
      << compiled.error;
}

TEST(Output, InstrumentedCodeCatchesAPlantedFault) {
  CompileRequest request{input("adamw.mlir")};
  request.sanitizer = codegen::Sanitizer::Address;
  Compiled compiled = link(request);
  ASSERT_EQ(compiled.error, "");
  Ran sound = run({STEPC_TEST_ASAN_TRAINER, compiled.path, compiled.entry});
  EXPECT_EQ(sound.status, 0) << sound.output;
  EXPECT_EQ(sound.output, "stepped\n");
  Ran fault = run({STEPC_TEST_ASAN_TRAINER, compiled.path, compiled.entry, "short"});
  EXPECT_NE(fault.status, 0);
  EXPECT_NE(fault.output.find("heap-buffer-overflow"), std::string::npos) << fault.output;
  EXPECT_NE(fault.output.find("AdamW_elementwise_f32"), std::string::npos) << fault.output;
}

} // namespace
} // namespace stepc::test

//===- ExitCodeTest.cpp - Whose fault a failing pass is --------------------===//

#include "dialects/optim/Optim.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Pipeline.h"

#include <gtest/gtest.h>

using namespace stepc;
using namespace stepc::driver;

namespace {

constexpr const char *kFault = "hint: this is a fault of stepc, not of your input";

class ExitCode : public ::testing::Test {
protected:
  /// muon.optim at level decided, as a specification or as IR text would have given it.
  mlir::ModuleOp decided() {
    options.input = STEPC_SOURCE_DIR "/examples/muon.optim";
    options.manifest = STEPC_SOURCE_DIR "/test/inputs/two_ranks.json";
    int code = kSuccess;
    module = input.load(options, code);
    EXPECT_TRUE(module);
    EXPECT_EQ(lowerTo(*module, Level::Decided, options, input.report), kSuccess);
    options.workspaceLimit = 0; // answered
    return *module;
  }
  /// The exit code of lowering to level scheduled, and what was printed.
  int lower(std::string &text) {
    ::testing::internal::CaptureStderr();
    int code = lowerTo(*module, Level::Scheduled, options, input.report);
    text = ::testing::internal::GetCapturedStderr();
    return code;
  }
  /// What no pass of the compiler would leave behind.
  void spoil() {
    (*module)->walk([](optim::YieldOp yield) { yield->removeAttr(optim::kWritesAttr); });
  }

  Input input;
  CompileOptions options;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(ExitCode, WhatDecideAcceptedIsStepcsFault) {
  decided();
  spoil();
  std::string text;
  EXPECT_EQ(lower(text), kInternalError);
  EXPECT_NE(text.find("error: expected optim.writes"), std::string::npos) << text;
  EXPECT_NE(text.find("stepc: error: internal error: the passes to level comm refused what those "
                      "to level decided had accepted"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(kFault), std::string::npos) << text;
}

TEST_F(ExitCode, EditedTextIsTheInputsFault) {
  decided();
  spoil();
  options.input = "edited.mlir";
  std::string text;
  EXPECT_EQ(lower(text), kInputError);
  EXPECT_EQ(text.find(kFault), std::string::npos) << text;
}

TEST_F(ExitCode, ALimitThatCannotBeKeptIsTheInputsFault) {
  options.workspaceLimit = 64;
  decided();
  std::string text;
  EXPECT_EQ(lower(text), kInputError);
  EXPECT_NE(text.find("expected a workspace within the limit of 64 bytes"), std::string::npos);
  EXPECT_EQ(text.find(kFault), std::string::npos) << text;
}

} // namespace

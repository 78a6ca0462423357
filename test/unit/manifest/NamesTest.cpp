#include "frontends/manifest/Names.h"
#include "gtest/gtest.h"

using namespace stepc::manifest;
using Role = TensorName::Role;

static bool matches(llvm::StringRef text, llvm::StringRef name) {
  stepc::NamePatternError error;
  return matchesParameter(*stepc::NamePattern::parse(text, error), name);
}

TEST(Names, CanonicalDropsWrappers) {
  EXPECT_EQ(canonicalName("w"), "w");
  EXPECT_EQ(canonicalName("module.w"), "w");
  EXPECT_EQ(canonicalName("module._orig_mod.layers.0._checkpoint_wrapped_module.mlp.w"),
            "layers.0.mlp.w");
  EXPECT_EQ(canonicalName("_forward_module._fsdp_wrapped_module.a.module._orig_mod.b._fsdp_wrapped_module.w"),
            "a.b.w");
  EXPECT_EQ(canonicalName("_forward_module"), "_forward_module");
  EXPECT_EQ(canonicalName("module"), "module");
  EXPECT_EQ(canonicalName("layers.module"), "layers.module");
  EXPECT_EQ(canonicalName("my_module.w"), "my_module.w");
  EXPECT_EQ(canonicalName(""), "");
  EXPECT_TRUE(matches("layers.*", "module.layers.0"));
  EXPECT_TRUE(matches("module.*", "module.layers.0"));
}

TEST(Names, TensorNames) {
  EXPECT_EQ(parseTensorName("param:a.b"), (TensorName{Role::Parameter, "a.b", 0, ""}));
  EXPECT_EQ(parseTensorName("grad:a.b"), (TensorName{Role::Gradient, "a.b", 0, ""}));
  EXPECT_EQ(parseTensorName("grad:a.b@12"), (TensorName{Role::Gradient, "a.b", 12, ""}));
  EXPECT_EQ(parseTensorName("grad:a@0"), (TensorName{Role::Gradient, "a@0", 0, ""}));
  EXPECT_EQ(parseTensorName("grad:a@x"), (TensorName{Role::Gradient, "a@x", 0, ""}));
  EXPECT_EQ(parseTensorName("grad:a@99999999999999999999"),
            (TensorName{Role::Gradient, "a@99999999999999999999", 0, ""}));
  EXPECT_EQ(parseTensorName("state:a:b:m"), (TensorName{Role::State, "a:b", 0, "m"}));
  EXPECT_EQ(parseTensorName("state:a"), (TensorName{Role::Other, "state:a", 0, ""}));
  EXPECT_EQ(parseTensorName("a.b"), (TensorName{Role::Other, "a.b", 0, ""}));
}

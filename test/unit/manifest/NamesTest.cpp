#include "frontends/manifest/Names.h"
#include "gtest/gtest.h"

using namespace stepc::manifest;
using Role = TensorName::Role;

TEST(Names, GlobMatchesTheWholeName) {
  EXPECT_TRUE(matchGlob("*", ""));
  EXPECT_TRUE(matchGlob("*", "a.b.c"));
  EXPECT_TRUE(matchGlob("*embed*", "tok_embed.weight"));
  EXPECT_TRUE(matchGlob("layers.*.w", "layers.0.mlp.w"));
  EXPECT_TRUE(matchGlob("w", "w"));
  EXPECT_FALSE(matchGlob("w", "ww"));
  EXPECT_FALSE(matchGlob("w", "W"));
  EXPECT_FALSE(matchGlob("", "w"));
  EXPECT_TRUE(matchGlob("", ""));
  EXPECT_TRUE(matchGlob("w?", "w1"));
  EXPECT_FALSE(matchGlob("w?", "w12"));
  EXPECT_FALSE(matchGlob("w?", "w"));
  EXPECT_TRUE(matchGlob("a**b", "ab"));
  EXPECT_TRUE(matchGlob("*ab*ab", "abababab"));
  EXPECT_FALSE(matchGlob("*ab*ac", "abababab"));
}

TEST(Names, GlobSets) {
  EXPECT_TRUE(matchGlob("h.[0-2].w", "h.1.w"));
  EXPECT_FALSE(matchGlob("h.[0-2].w", "h.3.w"));
  EXPECT_FALSE(matchGlob("h.[!0-2].w", "h.1.w"));
  EXPECT_TRUE(matchGlob("h.[!0-2].w", "h.3.w"));
  EXPECT_TRUE(matchGlob("[qkv]_proj", "k_proj"));
  EXPECT_TRUE(matchGlob("a[]]b", "a]b"));
  EXPECT_TRUE(matchGlob("a[!]]b", "acb"));
  EXPECT_FALSE(matchGlob("a[!]]b", "a]b"));
  EXPECT_TRUE(matchGlob("a[-z]b", "a-b"));
  // Nothing closes these: the bracket is itself.
  EXPECT_TRUE(matchGlob("a[b", "a[b"));
  EXPECT_TRUE(matchGlob("a[", "a["));
  EXPECT_TRUE(matchGlob("a[]", "a[]"));
}

TEST(Names, GlobTakesCharactersNotBytes) {
  EXPECT_TRUE(matchGlob("?", "\xC3\xA9")); // é
  EXPECT_TRUE(matchGlob("[\xC3\xA9]x", "\xC3\xA9x"));
  EXPECT_FALSE(matchGlob("??", "\xE2\x82\xAC")); // €
  EXPECT_TRUE(matchGlob("?", "\xFF"));           // not UTF-8: one byte is one character
}

TEST(Names, ManyStarsAreNotExponential) {
  EXPECT_FALSE(matchGlob(std::string(200, '*') + "a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(Names, CanonicalDropsWrappers) {
  EXPECT_EQ(canonicalName("w"), "w");
  EXPECT_EQ(canonicalName("module.w"), "w");
  EXPECT_EQ(canonicalName("module._orig_mod.layers.0._checkpoint_wrapped_module.mlp.w"),
            "layers.0.mlp.w");
  EXPECT_EQ(canonicalName("module"), "module");
  EXPECT_EQ(canonicalName("layers.module"), "layers.module");
  EXPECT_EQ(canonicalName("my_module.w"), "my_module.w");
  EXPECT_EQ(canonicalName(""), "");
  EXPECT_TRUE(matchesParameter("layers.*", "module.layers.0"));
  EXPECT_TRUE(matchesParameter("module.*", "module.layers.0"));
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

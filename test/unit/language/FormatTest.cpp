//===- FormatTest.cpp - The house layout ----------------------------------===//
#include "Helpers.h"
#include <fstream>

using namespace stepc::lang;
using namespace stepc::lang::test;

namespace {

std::string formatted(const std::string &text) {
  Source source("t.optim", text);
  Diagnostics diagnostics;
  std::optional<std::string> result = format(source, diagnostics);
  EXPECT_TRUE(result) << text;
  if (!result)
    return "";
  Source again("t.optim", *result);
  EXPECT_EQ(format(again, diagnostics), result) << "not idempotent: " << text;
  return *result;
}

TEST(Format, SpacesAndIndentation) {
  EXPECT_EQ(formatted("optimizer  A( lr,eps=-1e-8 ){\n"
                      "state m:bf16 [ rows ]=-1\n"
                      "  m   =-lr*( grad-1 )^-2\n"
                      "param=select(not(grad>0)and step>=1 , -grad,f( 1 ))}\n"),
            "optimizer A(lr, eps = -1e-8) {\n"
            "  state m : bf16[rows] = -1\n"
            "  m = -lr * (grad - 1) ^ -2\n"
            "  param = select(not (grad > 0) and step >= 1, -grad, f(1))\n"
            "}\n");
}

TEST(Format, BlankLines) {
  EXPECT_EQ(formatted("\n\n// top\n\n\n\noptimizer A() {\n\n\n  param = grad\n"
                      "\n\n\n  let x = 1\n\n}\noptimizer B() {\nparam = 1 }\n"
                      "route { A() for rest\n\n\n}\n\n\n"),
            "// top\n"
            "\n"
            "optimizer A() {\n"
            "  param = grad\n"
            "\n"
            "  let x = 1\n"
            "}\n"
            "\n"
            "optimizer B() {\n"
            "  param = 1\n"
            "}\n"
            "\n"
            "route {\n"
            "  A() for rest\n"
            "}\n");
}

TEST(Format, Comments) {
  EXPECT_EQ(formatted("//one   \noptimizer A() {//two\n//three\n"
                      "let x = 1// four\n\n\n// five\n    + 2 // six\n"
                      " param = f(a, // seven\n b) // eight\n\n  // nine\n\n}"
                      "// ten\n// eleven\noptimizer B() {\n}\n//twelve"),
            "//one\n"
            "optimizer A() {  //two\n"
            "  //three\n"
            "  let x = 1  // four\n"
            "      // five\n"
            "      + 2  // six\n"
            "  param = f(a,  // seven\n"
            "      b)  // eight\n"
            "\n"
            "  // nine\n"
            "}  // ten\n"
            "\n"
            "// eleven\n"
            "optimizer B() {\n"
            "}\n"
            "//twelve\n");
}

TEST(Format, LongLinesAreWrapped) {
  std::string text =
      formatted("optimizer A(lr) {\n"
                "let o = orthogonalize(grad, coefficients = [(4.0848, -6.8946, 2.9270), "
                "(3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037)], precision = f32)\n"
                "param = param * (1 - lr) + lr * grad + lr * grad + lr * grad + lr * grad "
                "+ lr * grad + lr * grad + lr * grad\n"
                "let p = lr * lr * lr * lr * lr * lr * lr * lr * lr * lr * lr * lr * lr * "
                "lr * lr * lr * lr * lr * lr * lr * lr * lr\n}\n"
                "route { A(lr = 1) for matrix except \"*embedding_table*\", "
                "\"*language_model_head*\", \"*position*\", \"*router*\", \"*norm*\" }\n");
  EXPECT_EQ(text, "optimizer A(lr) {\n"
                  "  let o = orthogonalize(grad, coefficients = [(4.0848, -6.8946, "
                  "2.9270), (3.9505, -6.3029, 2.6377),\n"
                  "      (3.7418, -5.5913, 2.3037)], precision = f32)\n"
                  "  param = param * (1 - lr) + lr * grad + lr * grad + lr * grad + lr "
                  "* grad + lr * grad + lr * grad\n"
                  "      + lr * grad\n"
                  "  let p = lr * lr * lr * lr * lr * lr * lr * lr * lr * lr * lr * lr "
                  "* lr * lr * lr * lr * lr * lr\n"
                  "      * lr * lr * lr * lr\n"
                  "}\n"
                  "\n"
                  "route {\n"
                  "  A(lr = 1) for matrix except \"*embedding_table*\", "
                  "\"*language_model_head*\", \"*position*\",\n"
                  "      \"*router*\", \"*norm*\"\n"
                  "}\n");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 100u);
}

TEST(Format, EmptyFilesAndCommentsAlone) {
  EXPECT_EQ(formatted(""), "");
  EXPECT_EQ(formatted("\n\n"), "");
  EXPECT_EQ(formatted("\n  // a\n\n\n// b"), "// a\n\n// b\n");
}

TEST(Format, RefusesSyntaxErrorsButNotOthers) {
  Source broken("t.optim", "optimizer A( {}");
  Diagnostics diagnostics;
  EXPECT_FALSE(format(broken, diagnostics));
  EXPECT_TRUE(diagnostics.hasErrors());
  EXPECT_EQ(formatted("optimizer A() { param=unknown }"),
            "optimizer A() {\n  param = unknown\n}\n");
}

TEST(Format, ExampleIsFormatted) {
  std::ifstream stream(STEPC_SOURCE_DIR "/examples/muon.optim");
  std::stringstream text;
  text << stream.rdbuf();
  ASSERT_FALSE(text.str().empty());
  EXPECT_EQ(formatted(text.str()), text.str());
  EXPECT_THAT(check(text.str(), {.requireRoute = true}).messages(), testing::IsEmpty());
}

} // namespace

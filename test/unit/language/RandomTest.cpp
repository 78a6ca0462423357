//===- RandomTest.cpp - Properties over random programs -------------------===//
#include "Helpers.h"
#include "frontends/language/Lexer.h"
#include "llvm/Support/raw_ostream.h"

using namespace stepc::lang;
using namespace stepc::lang::test;

namespace {

/// STEPC_SEED repeats a run; otherwise each run draws new programs.
unsigned seed() {
  static unsigned value = [] {
    const char *given = std::getenv("STEPC_SEED");
    unsigned drawn = given ? unsigned(std::strtoul(given, nullptr, 10)) : std::random_device()();
    std::cout << "seed " << drawn << " (repeat with STEPC_SEED)\n";
    return drawn;
  }();
  return value;
}

std::optional<std::string> formatted(const std::string &text) {
  Source source("t.optim", text);
  Diagnostics diagnostics;
  return format(source, diagnostics);
}

std::string dumped(const std::string &text) {
  Source source("t.optim", text);
  Diagnostics diagnostics;
  return dump(*parse(source, diagnostics));
}

std::vector<std::string> commentsOf(const std::string &text) {
  Source source("t.optim", text);
  Diagnostics diagnostics;
  std::vector<std::string> comments;
  for (const Comment &comment : lex(source, source.first(), diagnostics).comments)
    comments.push_back(source.text(comment.range).rtrim().str());
  return comments;
}

TEST(Random, GeneratedProgramsAreAccepted) {
  Generator generator(seed());
  for (int i = 0; i < 200; ++i) {
    std::string text = generator.file();
    Result result = check(text, {.requireRoute = true});
    std::string errors;
    for (const std::string &line : result.messages())
      if (line.find("error") != std::string::npos)
        errors += line + "\n";
    ASSERT_EQ(errors, "") << text;
  }
}

TEST(Random, FormatKeepsTreeAndCommentsAndIsIdempotent) {
  Generator generator(seed() + 1);
  for (int i = 0; i < 200; ++i) {
    std::string text = generator.file();
    std::optional<std::string> once = formatted(text);
    ASSERT_TRUE(once) << text;
    EXPECT_EQ(dumped(*once), dumped(text)) << text;
    EXPECT_EQ(commentsOf(*once), commentsOf(text)) << text;
    std::optional<std::string> twice = formatted(*once);
    ASSERT_TRUE(twice) << *once;
    ASSERT_EQ(*twice, *once) << text;
  }
}

/// Whatever the bytes are, a run ends, and every message has a place.
void survive(const std::string &text) {
  Result result = check(text);
  std::string printed;
  llvm::raw_string_ostream os(printed);
  result.diagnostics.print(os, *result.source, Diagnostics::Color::Never);
  if (!result.diagnostics.hasErrors()) {
    EXPECT_TRUE(formatted(text)) << text;
    return;
  }
  EXPECT_NE(printed.find("error: "), std::string::npos);
}

TEST(Random, MutatedProgramsNeverCrash) {
  Generator generator(seed() + 2);
  for (int i = 0; i < 100; ++i) {
    std::string original = generator.file();
    for (int j = 0; j < 20; ++j) {
      std::string text = original;
      for (unsigned k = 0, count = 1 + generator.pick(6); k < count; ++k) {
        size_t at = generator.pick(unsigned(text.size()));
        switch (generator.pick(4)) {
        case 0:
          text[at] = char(generator.pick(256));
          break;
        case 1:
          text.erase(at, 1 + generator.pick(20));
          break;
        case 2:
          text.insert(at, text.substr(generator.pick(unsigned(text.size())), generator.pick(40)));
          break;
        default:
          text.insert(at, 1, "(){}[],:=+-*/^<>!\"\\\n\r. 0eE"[generator.pick(27)]);
        }
        if (text.empty())
          text = " ";
      }
      survive(text);
    }
  }
}

TEST(Random, RandomBytesNeverCrash) {
  Generator generator(seed() + 3);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (unsigned j = 0, size = generator.pick(300); j < size; ++j)
      text += char(generator.pick(256));
    survive(text);
  }
}

TEST(Random, RandomTokensNeverCrash) {
  Generator generator(seed() + 4);
  std::vector<std::string> words = {
      "(",      ")",        "{",    "}",         "[",     "]",      ",",
      ":",      "=",        "+",    "-",         "*",     "^",      "<",
      "1",      "\"a\"",    "x",    "\n",        "over",  "f32",    "orthogonalize",
      "// c\n", "restarts", "form", "gram",      "model", ".",      "skip",
      "when",   "finite",   "@",    "transpose", "def",   "return", "repeat",
      "in"};
  for (llvm::StringRef keyword : keywords())
    words.push_back(keyword.str());
  for (int i = 0; i < 2000; ++i) {
    std::string text = i % 3 == 2 ? "def f(x) {\n"
                       : i % 3    ? "optimizer X(lr) {\n"
                                  : "model(lr = 1) {\n";
    for (unsigned j = 0, size = generator.pick(60); j < size; ++j)
      text += words[generator.pick(unsigned(words.size()))] + " ";
    survive(text);
  }
}

TEST(Random, DeepNestingIsAnErrorAndNoOverflow) {
  for (const auto &[open, close] :
       std::vector<std::pair<std::string, std::string>>{{"(", ")"},
                                                        {"-", ""},
                                                        {"sqrt(", ")"},
                                                        {"1 + (", ")"},
                                                        {"2 ^ ", ""},
                                                        {"not ", ""},
                                                        {"1 * 2 ^ (", ")"},
                                                        {"select(not (", "), 1, 2)"}}) {
    for (int depth : {150, 300, 200000}) {
      std::string text;
      for (int i = 0; i < depth; ++i)
        text += open;
      text += "lr";
      for (int i = 0; i < depth; ++i)
        text += close;
      Result result = check(rule("let x = " + text));
      bool isDeep = depth > int(maxNesting);
      bool reported = false;
      for (const std::string &line : result.messages())
        reported |= line.find("levels of nesting") != std::string::npos;
      EXPECT_TRUE(!isDeep || reported) << open << depth;
    }
  }
}

TEST(Random, LongChainsAreNoNesting) {
  for (std::string op : {"+", "-", "*", "/", "and", "or"}) {
    std::string term = op[0] == 'a' || op[0] == 'o' ? "lr > 0" : "lr", chain = term;
    for (int count : {5000, 100000}) {
      for (int i = 0; i < count; ++i)
        chain += " " + op + " " + term;
      std::string text = rule("let x = " + chain);
      // Nesting is bounded for this program's stack, the length of a chain for the passes'.
      std::vector<std::string> messages = check(text).messages();
      std::string message = count > int(maxDepth)
                                ? "2:9: error: expected at most 10000 operations that follow from "
                                  "one another, found more"
                                : "2:5: warning: 'x' is never used";
      EXPECT_EQ(messages.front(), message);
      // Ten times too long is one error, not ten.
      EXPECT_EQ(llvm::count(messages, message), 1);
      std::optional<std::string> once = formatted(text);
      ASSERT_TRUE(once);
      EXPECT_EQ(dumped(*once), dumped(text));
    }
  }
  // Chains of names are as long as chains of operators.
  std::string names = "state s : f32\nlet x0 = s + lr\n";
  for (int i = 1; i < 1200; ++i)
    names += "let x" + std::to_string(i) + " = x" + std::to_string(i - 1) + " ^ 2\n";
  EXPECT_THAT(messagesIn(names + "s = x1199"),
              testing::Contains(testing::HasSubstr("operations that follow from one another")));
  // Parentheses nest, in the first term as in the others.
  for (int depth : {90, 300}) {
    std::string open(depth, '('), close(depth, ')');
    for (std::string text : {open + "lr" + close + " + 2 * lr", "lr + " + open + "lr" + close})
      EXPECT_EQ(check(rule("let x = " + text)).diagnostics.hasErrors(), depth > int(maxNesting));
  }
}

} // namespace

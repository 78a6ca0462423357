//===- DocsTest.cpp - docs/language.md says what the front end does -------===//
#include "Grammar.h"
#include "Helpers.h"
#include "frontends/language/Builtins.h"
#include <fstream>
#include <regex>

using namespace stepc::lang;
using namespace stepc::lang::test;

namespace {

std::string readDocs(const std::string &page = "language.md") {
  std::ifstream stream(STEPC_SOURCE_DIR "/docs/" + page);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The contents of all fenced blocks of a language.
std::vector<std::string> blocks(const std::string &language,
                                const std::string &page = "language.md") {
  std::vector<std::string> found;
  std::string docs = readDocs(page), fence = "```" + language + "\n";
  for (size_t at = docs.find(fence); at != std::string::npos; at = docs.find(fence, at)) {
    at += fence.size();
    size_t end = docs.find("```", at);
    found.push_back(docs.substr(at, end - at));
  }
  return found;
}

Grammar grammar() { return Grammar(blocks("ebnf").at(0)); }

bool parses(const std::string &text) {
  Source source("t.optim", text);
  Diagnostics diagnostics;
  parse(source, diagnostics);
  return !diagnostics.hasErrors();
}

bool derives(const Grammar &grammar, const std::string &text) {
  Source source("t.optim", text);
  Diagnostics diagnostics;
  TokenStream stream = lex(source, source.first(), diagnostics);
  return !diagnostics.hasErrors() && grammar.accepts(source, stream);
}

unsigned seed() {
  static unsigned value = [] {
    const char *given = std::getenv("STEPC_SEED");
    unsigned drawn = given ? unsigned(std::strtoul(given, nullptr, 10)) : std::random_device()();
    std::cout << "seed " << drawn << " (repeat with STEPC_SEED)\n";
    return drawn;
  }();
  return value;
}

TEST(Docs, ExamplesAreAcceptedAndFormatted) {
  std::vector<std::string> examples = blocks("optim");
  EXPECT_GE(examples.size(), 3u);
  for (const char *page : {"optimizers.md", "from-paper.md"})
    for (const std::string &example : blocks("optim", page))
      examples.push_back(example);
  for (const std::string &example : examples) {
    EXPECT_THAT(check(example).messages(), testing::IsEmpty()) << example;
    Source source("t.optim", example);
    Diagnostics diagnostics;
    EXPECT_EQ(format(source, diagnostics), example);
  }
}

TEST(Docs, KeywordsAreTheLexers) {
  std::string docs = readDocs(), list;
  std::istringstream lines(docs);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("> "))
      list += line;
  std::set<std::string> listed;
  for (size_t at = list.find('`'); at != std::string::npos; at = list.find('`', at + 1)) {
    size_t end = list.find('`', at + 1);
    listed.insert(list.substr(at + 1, end - at - 1));
    at = end;
  }
  std::set<std::string> known;
  for (llvm::StringRef keyword : keywords())
    known.insert(keyword.str());
  EXPECT_EQ(listed, known);

  // All stand in the grammar, beside the dtypes.
  for (const char *name : {"f32", "bf16", "f16", "present", "blocks", "model", "flatten", "repeat",
                           "columns", "each", "split", "skip", "when", "where", "def", "return",
                           "in", "import", "wide"}) // names elsewhere
    known.insert(name);
  EXPECT_EQ(grammar().words(), known);
}

TEST(Docs, FunctionsSetsAndPlannedNamesAreListed) {
  std::string docs = readDocs();
  for (const FunctionInfo &info : functions())
    EXPECT_NE(docs.find("`" + info.name.str() + "("), std::string::npos) << info.name.str();
  for (const CoefficientSet &set : coefficientSets())
    EXPECT_NE(docs.find("| `" + set.name.str() + "` |"), std::string::npos) << set.name.str();
  for (llvm::StringRef name : plannedStatements())
    EXPECT_NE(docs.find("`" + name.str() + "`"), std::string::npos) << name.str();
}

TEST(Docs, GrammarIsWhole) {
  EXPECT_THAT(grammar().undefined(), testing::IsEmpty());
  EXPECT_THAT(grammar().unused(), testing::IsEmpty());
}

/// A sentence that the matcher, which favours clarity over speed, can take.
std::string shortSentence(const Grammar &rules, Generator &random) {
  while (true) {
    std::string text = rules.sentence([&](unsigned count) { return random.pick(count); });
    if (text.size() < 800)
      return text;
  }
}

TEST(Docs, SentencesOfTheGrammarParse) {
  Grammar rules = grammar();
  Generator random(seed());
  size_t longest = 0;
  for (int i = 0; i < 400; ++i) {
    std::string text = shortSentence(rules, random);
    longest = std::max(longest, text.size());
    ASSERT_TRUE(derives(rules, text)) << text;
    ASSERT_TRUE(parses(text)) << text;
  }
  EXPECT_GT(longest, 200u);
}

TEST(Docs, ProgramsDeriveFromTheGrammar) {
  // What the grammar lacks, no sentence of it can show.
  Grammar rules = grammar();
  Generator random(seed() + 2);
  for (const std::string &example : blocks("optim"))
    EXPECT_TRUE(derives(rules, example)) << example;
  for (int i = 0; i < 40; ++i) {
    std::string text = random.file();
    EXPECT_TRUE(derives(rules, text)) << text;
  }
}

TEST(Docs, ParserAcceptsExactlyTheGrammar) {
  Grammar rules = grammar();
  Generator random(seed() + 1);
  unsigned accepted = 0, refused = 0;
  auto compare = [&](const std::string &text) {
    bool does = parses(text);
    ++(does ? accepted : refused);
    EXPECT_EQ(does, derives(rules, text)) << text;
  };
  std::vector<std::string> words = {"a", "1",   "\"x\"",  "f32",    "(",  ")",  "[",       "]",
                                    "{", "}",   ",",      ":",      "=",  "+",  "-",       "*",
                                    "/", "@",   "^",      "<",      "==", "\n", "present", "model",
                                    ".", "def", "return", "repeat", "in"};
  for (llvm::StringRef keyword : keywords())
    words.push_back(keyword.str());
  for (int i = 0; i < 1500; ++i) {
    std::string text = shortSentence(rules, random);
    // One edit of a token keeps most of a sentence intact.
    std::vector<std::string> tokens;
    std::istringstream stream(std::regex_replace(text, std::regex("\n"), " \\n "));
    for (std::string token; stream >> token;)
      tokens.push_back(token == "\\n" ? "\n" : token);
    for (unsigned edits = random.pick(3); edits && !tokens.empty(); --edits) {
      size_t at = random.pick(unsigned(tokens.size()));
      // Half of the edits take the words that most often fit.
      unsigned likely = random.pick(2) ? 4 : unsigned(words.size());
      const std::string &word = words[random.pick(likely)];
      switch (random.pick(3)) {
      case 0:
        tokens[at] = word;
        break;
      case 1:
        tokens.insert(tokens.begin() + long(at), word);
        break;
      default:
        tokens.erase(tokens.begin() + long(at));
      }
    }
    std::string edited;
    for (const std::string &token : tokens)
      edited += token + " ";
    compare(edited);
  }
  std::cout << accepted << " accepted, " << refused << " refused\n";
  EXPECT_GT(accepted, 300u);
  EXPECT_GT(refused, 300u);
}

} // namespace

//===- Lexer.cpp ----------------------------------------------------------===//
#include "frontends/language/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

static constexpr StringRef keywordSpellings[] = {
    "optimizer", "state",  "master", "let",   "route", "for",   "except", "as",
    "if",        "matrix", "rest",   "and",   "or",    "not",   "param",  "grad",
    "step",      "rows",   "cols",   "numel", "input", "metric"};

static constexpr StringRef punctuation[] = {"(", ")", "{", "}", "[", "]",  ",", ":",  "=",  "+",
                                            "-", "*", "/", "^", "<", "<=", ">", ">=", "==", "!="};

static_assert(std::size(keywordSpellings) ==
              size_t(TokenKind::KwMetric) - size_t(TokenKind::KwOptimizer) + 1);
static_assert(std::size(punctuation) ==
              size_t(TokenKind::NotEqual) - size_t(TokenKind::LeftParen) + 1);

llvm::ArrayRef<StringRef> stepc::lang::keywords() { return keywordSpellings; }

std::string stepc::lang::describe(TokenKind kind) {
  switch (kind) {
  case TokenKind::End:
    return "end of file";
  case TokenKind::Invalid:
    return "an invalid token";
  case TokenKind::Name:
    return "a name";
  case TokenKind::Number:
    return "a number";
  case TokenKind::String:
    return "a string";
  default:
    break;
  }
  StringRef spelling = isKeyword(kind)
                           ? keywordSpellings[size_t(kind) - size_t(TokenKind::KwOptimizer)]
                           : punctuation[size_t(kind) - size_t(TokenKind::LeftParen)];
  return ("'" + spelling + "'").str();
}

std::string stepc::lang::stringValue(StringRef spelling) {
  StringRef inner = spelling.drop_front().drop_back();
  std::string value;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == '\\' && i + 1 < inner.size())
      ++i;
    value += inner[i];
  }
  return value;
}

namespace {

bool isNameStart(char c) { return llvm::isAlpha(c) || c == '_'; }
bool isNamePart(char c) { return llvm::isAlnum(c) || c == '_'; }

class Lexer {
public:
  Lexer(const Source &source, Diagnostics &diagnostics)
      : text(source.text()), diagnostics(diagnostics) {}

  TokenStream run() {
    if (text.size() > Source::maxBytes) {
      diagnostics.error({}, "expected a file of at most " + Twine(Source::maxBytes >> 20) +
                                " MiB, found " + Twine(text.size()) + " bytes");
      text = StringRef();
    }
    while (skipSpaceAndComments())
      token();
    begin = position;
    push(TokenKind::End);
    return std::move(stream);
  }

private:
  char at(size_t offset) const {
    return position + offset < text.size() ? text[position + offset] : '\0';
  }

  void push(TokenKind kind) {
    stream.tokens.push_back({kind, startsLine, {begin, position}});
    startsLine = false;
  }

  Diagnostic &fail(const Twine &message) {
    push(TokenKind::Invalid);
    return diagnostics.error({begin, position}, message);
  }

  /// Stops before the next token; false at the end of the file.
  bool skipSpaceAndComments() {
    while (position < text.size()) {
      char c = text[position];
      if (c == '\n')
        startsLine = true;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        ++position;
      } else if (c == '/' && at(1) == '*') {
        blockComment();
      } else if (c == '/' && at(1) == '/') {
        begin = position;
        position = std::min(text.find('\n', position), text.size());
        uint32_t end = begin + text.slice(begin, position).rtrim('\r').size();
        stream.comments.push_back({startsLine, {begin, end}});
      } else {
        return true;
      }
    }
    return false;
  }

  /// Reported, and skipped like a comment, so that its text says nothing more.
  void blockComment() {
    begin = position;
    size_t end = text.find("*/", position + 2);
    StringRef comment = text.slice(position, end == StringRef::npos ? end : end + 2);
    diagnostics.error({begin, begin + 2}, "expected a comment that starts with '//', found '/*'")
        .withHint("comments go from '//' to the end of the line");
    startsLine |= comment.contains('\n');
    position += comment.size();
  }

  void token() {
    begin = position;
    char c = text[position];
    if (isNameStart(c))
      return name();
    if (llvm::isDigit(c))
      return number();
    if (c == '"')
      return string();
    // The longer spelling wins, so `<=` is not `<` and `=`.
    for (size_t length : {2, 1}) {
      const StringRef *it = llvm::find(punctuation, text.substr(position, length));
      if (it == std::end(punctuation) || it->size() != length)
        continue;
      position += length;
      return push(TokenKind(size_t(TokenKind::LeftParen) + size_t(it - std::begin(punctuation))));
    }
    unexpected();
  }

  void name() {
    while (isNamePart(at(0)))
      ++position;
    StringRef spelling = text.slice(begin, position);
    const StringRef *it = llvm::find(keywordSpellings, spelling);
    push(it == std::end(keywordSpellings) ? TokenKind::Name
                                          : TokenKind(size_t(TokenKind::KwOptimizer) +
                                                      size_t(it - std::begin(keywordSpellings))));
  }

  void number() {
    bool valid = true;
    auto digits = [&] {
      valid &= llvm::isDigit(at(0));
      while (llvm::isDigit(at(0)))
        ++position;
    };
    digits();
    if (at(0) == '.') {
      ++position;
      digits();
    }
    if (at(0) == 'e' || at(0) == 'E') {
      ++position;
      if (at(0) == '+' || at(0) == '-')
        ++position;
      digits();
    }
    while (isNamePart(at(0)) || at(0) == '.') {
      valid = false;
      ++position;
    }
    StringRef spelling = text.slice(begin, position);
    if (!valid) {
      fail("expected a number such as 1, 0.95 or 3e-4, found '" + spelling + "'");
      return;
    }
    double value = 0;
    if (spelling.getAsDouble(value, /*AllowInexact=*/true) || !std::isfinite(value)) {
      fail("expected a number that fits f64, found '" + spelling + "'");
      return;
    }
    push(TokenKind::Number);
  }

  void string() {
    ++position;
    while (true) {
      char c = at(0);
      if (position >= text.size() || c == '\n') {
        fail("expected '\"' before the end of the line");
        return;
      }
      ++position;
      if (c == '"')
        break;
      if (c != '\\')
        continue;
      if (at(0) != '"' && at(0) != '\\') {
        SourceRange escape{position - 1, std::min<uint32_t>(position + 1, text.size())};
        diagnostics.error(escape, "expected '\\\"' or '\\\\' in a string, "
                                  "found another escape");
        continue;
      }
      ++position;
    }
    push(TokenKind::String);
  }

  /// What a value's attribute in other languages is called here.
  std::string hintAfterPoint() const {
    StringRef word = text.drop_front(position).take_while(isNamePart);
    if (word == "rows" || word == "cols" || word == "numel")
      return ("write '" + word + "' alone: it is the parameter's").str();
    if (word == "shape" || word == "size")
      return "the parameter's sizes are 'rows', 'cols' and 'numel'";
    if (word == "T" || word == "mT" || word == "t")
      return "a transpose is 'transpose(x)', which is not supported yet";
    return "functions have no prefix: 'sqrt(x)'";
  }

  /// One whole character, which may be several bytes of UTF-8.
  void unexpected() {
    unsigned char lead = static_cast<unsigned char>(text[position++]);
    while (lead >= 0xC0 && position < text.size() && (text[position] & 0xC0) == 0x80)
      ++position;
    // `&&` and `||` are one mistake each.
    if ((lead == '&' || lead == '|') && at(0) == char(lead))
      ++position;
    StringRef found = text.slice(begin, position);
    std::string shown = found.str();
    if (found.size() == 1 && !llvm::isPrint(found[0]))
      shown = "byte 0x" + llvm::utohexstr(lead);
    Diagnostic &error = fail("unexpected character '" + shown + "'");
    // What editors and papers put in place of the ASCII characters.
    if (found == "\xE2\x88\x92" || found == "\xE2\x80\x93")
      error.withHint("write '-' for minus");
    else if (found == "\xC3\x97" || found == "\xC2\xB7")
      error.withHint("write '*' for a product");
    else if (found == "#")
      error.withHint("comments start with '//'");
    else if (found == ";")
      error.withHint("a statement ends with its line");
    else if (found == "." && llvm::isDigit(at(0)))
      error.withHint("write a digit before the point: 0.5");
    else if (found == ".")
      error.withHint(hintAfterPoint());
    else if (found == "'")
      error.withHint("strings stand in double quotes");
    else if (found.starts_with("&"))
      error.withHint("write 'a and b'");
    else if (found.starts_with("|"))
      error.withHint("write 'a or b'");
    else if (found == "!")
      error.withHint("write 'not a'");
    else if (found == "?")
      error.withHint("a choice is written 'select(condition, value, otherwise)'");
    else if (found == "%")
      error.withHint("every k steps is 'step == k * ((step / k + 6e15) - 6e15)'");
    else if (found == "@")
      error.withHint("products of matrices are not supported yet");
  }

  StringRef text;
  Diagnostics &diagnostics;
  TokenStream stream;
  uint32_t position = 0;
  uint32_t begin = 0;
  bool startsLine = true;
};

} // namespace

TokenStream stepc::lang::lex(const Source &source, Diagnostics &diagnostics) {
  return Lexer(source, diagnostics).run();
}

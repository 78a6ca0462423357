//===- Lexer.cpp ----------------------------------------------------------===//
#include "frontends/language/Lexer.h"
#include "frontends/language/ForeignNames.h"
#include "frontends/language/NumberForms.h"
#include "frontends/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace stepc::lang;
using llvm::StringRef;
using llvm::Twine;

static constexpr StringRef keywordSpellings[] = {
    "optimizer", "state",  "master", "let",   "route", "for",   "except", "as",
    "if",        "matrix", "rest",   "and",   "or",    "not",   "param",  "grad",
    "step",      "rows",   "cols",   "numel", "input", "metric"};

static constexpr StringRef punctuation[] = {"(",  ")", "{",  "}",  "[",  "]", ",", ":",
                                            "=",  "+", "-",  "*",  "/",  "@", "^", "<",
                                            "<=", ">", ">=", "==", "!=", "."};

static_assert(std::size(keywordSpellings) ==
              size_t(TokenKind::KwMetric) - size_t(TokenKind::KwOptimizer) + 1);
static_assert(std::size(punctuation) == size_t(TokenKind::Dot) - size_t(TokenKind::LeftParen) + 1);

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
  Lexer(StringRef text, Diagnostics &diagnostics) : text(text), diagnostics(diagnostics) {}

  TokenStream run() {
    if (text.size() > Source::maxBytes) {
      diagnostics.error({}, "expected a file of at most " + Twine(Source::maxBytes >> 20) +
                                " MiB, found " + Twine(text.size()) + " bytes");
      text = StringRef();
    }
    checkCharacters();
    while (skipSpaceAndComments())
      token();
    begin = position;
    push(TokenKind::End);
    return std::move(stream);
  }

private:
  /// Reports the first character that a terminal would obey, also in comments and strings, and drops the
  /// text. One error is enough, because the file is probably no text.
  void checkCharacters() {
    stepc::text::Unprintable found = stepc::text::findUnprintable(text, /*allowed=*/"\t\r\n");
    if (found.what.empty())
      return;
    begin = static_cast<uint32_t>(found.offset);
    position = begin + static_cast<uint32_t>(found.bytes);
    diagnostics.error({begin, position},
                      "expected text in UTF-8 without control characters, found " + found.what);
    text = StringRef();
    begin = position = 0;
  }

  char at(size_t offset) const {
    return position + offset < text.size() ? text[position + offset] : '\0';
  }

  void push(TokenKind kind) {
    stream.tokens.push_back({kind, startsLine, {begin, position}});
    startsLine = false;
  }

  /// Adds an error to the last token. If that token or 100 others have errors, the new error is dropped.
  Diagnostic &errorOfToken(SourceRange range, const Twine &message) {
    constexpr size_t most = 100;
    Token &token = stream.tokens.back();
    if (token.error >= 0 || stream.errors.size() == most)
      return dropped = Diagnostic();
    token.error = int32_t(stream.errors.size());
    stream.errors.push_back({Severity::Error, range, message.str(), {}, {}});
    return stream.errors.back();
  }

  Diagnostic &fail(const Twine &message) {
    push(TokenKind::Invalid);
    return errorOfToken({begin, position}, message);
  }

  /// Moves to the next token. Returns false at the end of the file.
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

  /// Reports a comment `/* ... */`, and skips it, so that its text causes no further errors.
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
    if (llvm::isDigit(c) || isPointOfNumber())
      return number();
    if (c == '"')
      return string();
    if (lettersAt(position))
      return foreignName();
    if (c == '.' && !isBehindModel())
      return unexpected();
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

  /// Whether a number such as `.5` begins here. The point of `x.5` begins none.
  bool isPointOfNumber() const {
    char before = position ? text[position - 1] : ' ';
    return at(0) == '.' && llvm::isDigit(at(1)) && !isNamePart(before) && before != ')';
  }

  /// Whether the last token is the name `model`, whose values are read as `model.NAME`.
  bool isBehindModel() const {
    return !stream.tokens.empty() && stream.tokens.back().kind == TokenKind::Name &&
           text.slice(stream.tokens.back().range.begin, stream.tokens.back().range.end) == "model";
  }

  /// The number of bytes of a letter outside ASCII at `offset`; 0 if there is none.
  unsigned lettersAt(uint32_t offset) const {
    auto [character, bytes] = frontCharacter(text.substr(offset));
    return isForeignLetter(character) ? bytes : 0;
  }

  /// Reads a name with letters outside ASCII. It becomes a Name token, and is reported once.
  void foreignName() {
    position = begin;
    uint32_t first = 0;
    while (true) {
      unsigned bytes = lettersAt(position);
      if (bytes && !first)
        first = frontCharacter(text.substr(position)).first;
      if (!bytes && !isNamePart(at(0)))
        break;
      position += std::max(bytes, 1u);
    }
    push(TokenKind::Name);
    StringRef spelling = text.slice(begin, position);
    if (!foreignNames.insert(spelling).second)
      return;
    Diagnostic &error = errorOfToken(
        {begin, position}, "expected a name of ASCII letters, digits and '_', found '" + spelling +
                               "' with U+" + llvm::utohexstr(first, /*LowerCase=*/false, 4));
    if (std::string ascii = asciiName(spelling); !ascii.empty())
      error.withHint("write '" + ascii + "'");
    else if (first == 0x2207)
      error.withHint("the gradient is 'grad'");
  }

  void name() {
    while (isNamePart(at(0)))
      ++position;
    if (lettersAt(position))
      return foreignName();
    StringRef spelling = text.slice(begin, position);
    const StringRef *it = llvm::find(keywordSpellings, spelling);
    push(it == std::end(keywordSpellings) ? TokenKind::Name
                                          : TokenKind(size_t(TokenKind::KwOptimizer) +
                                                      size_t(it - std::begin(keywordSpellings))));
  }

  /// Whether the '%' at `offset` means percent, as in `5%`. In `5 % x` it means a remainder.
  bool isPercent(uint32_t offset) const {
    StringRef rest = text.substr(offset);
    if (!rest.consume_front("%"))
      return false;
    rest = rest.ltrim(" \t\r");
    return rest.empty() || StringRef(",)]}\n").contains(rest[0]);
  }

  /// Reads a number, or what other languages write for a number. Letters, digits and points that touch
  /// it belong to it, so that a wrong number is one error.
  void number() {
    bool isHex = at(0) == '0' && (at(1) == 'x' || at(1) == 'X');
    while (true) {
      char c = at(0), before = position > begin ? text[position - 1] : '\0';
      bool isSign = (c == '+' || c == '-') && (before == 'e' || before == 'E') && !isHex;
      bool groups = c == '\'' && llvm::isDigit(before) && llvm::isDigit(at(1));
      if (!isNamePart(c) && c != '.' && !isSign && !groups)
        break;
      ++position;
    }
    if (isPercent(position))
      ++position;
    StringRef spelling = text.slice(begin, position);
    double value = numberValue(spelling);
    if (!isNumber(spelling)) {
      std::optional<std::string> right = rightNumber(spelling);
      // The token gets the number that was probably meant, so that no further error follows.
      push(right ? TokenKind::Number : TokenKind::Invalid);
      Diagnostic &error = errorOfToken(
          {begin, position}, "expected a number such as 1, 0.95 or 3e-4, found '" + spelling + "'");
      if (right)
        error.withHint("write " + *right);
      else if (StringRef("eE+-").contains(spelling.back()))
        error.withHint("digits follow the 'e', as in 1e-3");
      else if (rightNumber(spelling.rsplit('.').first) && spelling.contains_insensitive("e"))
        error.withHint("an exponent is a whole number");
      value = right ? numberValue(*right) : 0;
    } else if (fitsF64(spelling)) {
      push(TokenKind::Number);
    } else {
      fail("expected a number that fits f64, found '" + spelling + "'")
          .withHint(value == 0 ? "the smallest above 0 is 5e-324"
                               : "the largest is 1.7976931348623157e308");
    }
    stream.tokens.back().value = value;
  }

  /// Adds a hint for a character that regular expressions escape.
  static void hintEscape(Diagnostic &error, char c) {
    if (StringRef(".+(){}|$^").contains(c))
      error.withHint("patterns are no regular expressions: '" + Twine(c) +
                     "' is itself, and '*' any text");
    else if (c == '*' || c == '?' || c == '[')
      error.withHint("in a pattern a '" + Twine(c) + "' of the name itself is written '[" +
                     Twine(c) + "]'");
    else if (c == 'd' || c == 'w' || c == 's')
      error.withHint(c == 'd'   ? "patterns are no regular expressions: a digit is '[0-9]'"
                     : c == 'w' ? "patterns are no regular expressions: one character is '?'"
                                : "patterns are no regular expressions: a space is itself");
  }

  void string() {
    ++position;
    std::optional<SourceRange> escape; // the first escape that the language lacks
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
      if (at(0) == '"' || at(0) == '\\')
        ++position;
      else if (!escape)
        escape = SourceRange{position - 1, std::min<uint32_t>(position + 1, text.size())};
    }
    push(TokenKind::String);
    if (escape)
      hintEscape(
          errorOfToken(*escape, "expected '\\\"' or '\\\\' in a string, found another escape"),
          text[escape->end - 1]);
  }

  /// The hint for an attribute of a value, as in `x.shape`. This language has none.
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

  /// Reports one character that begins no token. It may have several bytes of UTF-8.
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
    // Characters that editors and papers use instead of ASCII characters.
    if (StringRef hint = foreignCharacterHint(frontCharacter(found).first); !hint.empty())
      error.withHint(hint);
    else if (found == "#")
      error.withHint("comments start with '//'");
    else if (found == ";")
      error.withHint("a statement ends with its line");
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
      error.withHint(foreignFunctionHint("mod").value_or(""));
  }

  StringRef text;
  Diagnostics &diagnostics;
  TokenStream stream;
  Diagnostic dropped;
  llvm::StringSet<> foreignNames; ///< Names outside ASCII that were reported.
  uint32_t position = 0;
  uint32_t begin = 0;
  bool startsLine = true;
};

} // namespace

TokenStream stepc::lang::lex(const Source &source, SourceRange part, Diagnostics &diagnostics,
                             bool reportTokens) {
  // The lexer counts from the begin of the file's text.
  Diagnostics reported;
  // All of the first file, whose size it checks.
  TokenStream stream = Lexer(part.begin ? source.text(part) : source.text(), reported).run();
  diagnostics.append(reported, part.begin);
  for (Token &token : stream.tokens)
    token.range = token.range + part.begin;
  for (Comment &comment : stream.comments)
    comment.range = comment.range + part.begin;
  for (Diagnostic &error : stream.errors) {
    error = error.movedBy(part.begin);
    if (reportTokens)
      diagnostics.add(error);
  }
  return stream;
}

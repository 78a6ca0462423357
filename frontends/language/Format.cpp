//===- Format.cpp - The house layout of .optim files ----------------------===//
//
// The formatter lays out tokens, not the tree: what it prints has the same
// tokens and comments in the same order, so it can lose neither. The parser
// only gives the offsets at which logical lines (Parser::lineBegins) begin.
//
//===----------------------------------------------------------------------===//
#include "frontends/language/Parser.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stepc::lang;
using llvm::StringRef;

namespace {

constexpr size_t maxColumns = 100;
constexpr size_t indentWidth = 2;
constexpr size_t continuationWidth = 4;

/// Whether a `-` after this token subtracts; otherwise it is a sign.
bool endsValue(TokenKind kind) {
  return kind == TokenKind::Name || kind == TokenKind::Number || kind == TokenKind::RightParen ||
         kind == TokenKind::RightBracket || isBuiltinValue(kind);
}

bool isBinaryOperator(TokenKind kind) {
  return (kind >= TokenKind::Plus && kind <= TokenKind::NotEqual) || kind == TokenKind::KwAnd ||
         kind == TokenKind::KwOr;
}

class Formatter {
public:
  Formatter(const Source &source, const TokenStream &stream,
            const std::vector<uint32_t> &lineBegins, const std::vector<uint32_t> &words)
      : source(source), tokens(stream.tokens), comments(stream.comments), lineBegins(lineBegins),
        words(words.begin(), words.end()) {}

  std::string run() {
    size_t position = 0;
    auto nextLine = lineBegins.begin();
    while (tokens[position].kind != TokenKind::End) {
      ++nextLine;
      uint32_t limit = nextLine == lineBegins.end() ? UINT32_MAX : *nextLine;
      size_t end = position;
      while (tokens[end].kind != TokenKind::End && tokens[end].range.begin < limit)
        ++end;
      commentsBefore(tokens[position]);
      logicalLine(position, end);
      position = end;
    }
    commentsBefore(tokens[position]);

    std::string text;
    for (const std::string &line : lines)
      text += line + "\n";
    return text;
  }

private:
  //===--------------------------------------------------------------------===//
  // Between logical lines
  //===--------------------------------------------------------------------===//

  /// Keeps one blank line before `offset` if the source has any there, but none
  /// after '{', before '}' and at the start of the file.
  void blankLineBefore(uint32_t offset, bool isClosingBrace) {
    bool wasOpening = !lines.empty() && lineOpensBlock;
    StringRef between = source.text({lastEnd, offset});
    if (between.count('\n') > 1 && !lines.empty() && !wasOpening && !isClosingBrace)
      lines.emplace_back();
    lineOpensBlock = false;
  }

  bool hasCommentBefore(uint32_t offset) const {
    return comment < comments.size() && comments[comment].range.begin < offset;
  }

  StringRef takeComment() {
    SourceRange range = comments[comment++].range;
    lastEnd = range.end;
    return source.text(range).rtrim();
  }

  void commentsBefore(const Token &token) {
    while (hasCommentBefore(token.range.begin)) {
      const Comment &next = comments[comment];
      if (!next.startsLine && !lines.empty()) {
        lines.back() += ("  " + takeComment()).str();
        continue;
      }
      blankLineBefore(next.range.begin, /*isClosingBrace=*/false);
      lines.push_back(std::string(depth * indentWidth, ' ') + takeComment().str());
    }
  }

  /// Puts a blank line before a declaration if the source has none.
  void separateDeclaration() {
    if (lines.empty())
      return;
    for (size_t i = declarationEnd; i < lines.size(); ++i)
      if (lines[i].empty())
        return;
    if (declarationEnd)
      lines.insert(lines.begin() + declarationEnd, std::string());
  }

  //===--------------------------------------------------------------------===//
  // Within a logical line
  //===--------------------------------------------------------------------===//

  void logicalLine(size_t begin, size_t end) {
    const Token &first = tokens[begin];
    bool isClosing = first.kind == TokenKind::RightBrace;
    // Declarations of one line and of one kind may follow each other without a blank line.
    bool isDeclaration = depth == 0 && !isClosing;
    bool isOneLine = isDeclaration && tokens[end - 1].kind != TokenKind::LeftBrace;
    StringRef word = isOneLine ? source.text(first.range) : "";
    isDeclaration &= !isOneLine || word != oneLine;
    blankLineBefore(first.range.begin, isClosing);
    // No blank line stays before a closing brace. Comments may have left one.
    while (isClosing && !lines.empty() && lines.back().empty())
      lines.pop_back();
    if (isDeclaration)
      separateDeclaration();
    if (isClosing && depth)
      --depth;
    indent = depth * indentWidth;

    lines.emplace_back(indent, ' ');
    isFresh = true;
    brackets.clear();
    // Tokens up to the next good place for a line break form a chunk, which stays together.
    for (size_t i = begin; i < end;) {
      std::vector<std::string> parts;
      size_t chunkEnd = i;
      bool brokenByComment = false;
      do {
        bool space = chunkEnd > i && spaceBefore(chunkEnd);
        if (parts.empty() || breakBefore(chunkEnd) == Break::InProduct)
          parts.emplace_back();
        parts.back() += space ? " " : "";
        parts.back() += source.text(tokens[chunkEnd].range);
        track(tokens[chunkEnd].kind);
        lastEnd = tokens[chunkEnd].range.end;
        ++chunkEnd;
        brokenByComment = chunkEnd < end && hasCommentBefore(tokens[chunkEnd].range.begin);
      } while (chunkEnd < end && !brokenByComment && breakBefore(chunkEnd) != Break::Good);
      place(parts, !isFresh && spaceBefore(i));
      if (brokenByComment)
        commentsInside(tokens[chunkEnd]);
      i = chunkEnd;
    }

    lineOpensBlock = tokens[end - 1].kind == TokenKind::LeftBrace;
    if (lineOpensBlock)
      ++depth;
    oneLine = word;
    if ((isClosing || isOneLine) && depth == 0)
      declarationEnd = lines.size();
  }

  /// Prints a chunk on this line or the next. Breaks between the chunk's parts
  /// are allowed only if the chunk is too wide for a line.
  void place(llvm::ArrayRef<std::string> parts, bool space) {
    size_t width = 0;
    for (const std::string &part : parts)
      width += part.size();
    if (width > maxColumns - indent - continuationWidth && parts.size() > 1) {
      for (auto [index, part] : llvm::enumerate(parts)) {
        StringRef text = part;
        bool hadSpace = text.consume_front(" ");
        placeText(text, index ? hadSpace : space);
      }
      return;
    }
    placeText(llvm::join(parts, ""), space);
  }

  void placeText(StringRef text, bool space) {
    size_t width = lines.back().size() + space + text.size();
    if (!isFresh && width > maxColumns) {
      lines.emplace_back(indent + continuationWidth, ' ');
      space = false;
    }
    lines.back() += space ? " " : "";
    lines.back() += text;
    isFresh = false;
  }

  /// Prints the comments before `token` inside a logical line. Each ends its
  /// line, so the rest of the logical line goes on below.
  void commentsInside(const Token &token) {
    while (hasCommentBefore(token.range.begin)) {
      if (!comments[comment].startsLine)
        lines.back() += ("  " + takeComment()).str();
      else
        lines.push_back(std::string(indent + continuationWidth, ' ') + takeComment().str());
    }
    lines.emplace_back(indent + continuationWidth, ' ');
    isFresh = true;
  }

  void track(TokenKind kind) {
    if (kind == TokenKind::LeftParen || kind == TokenKind::LeftBracket)
      brackets.push_back(kind);
    if ((kind == TokenKind::RightParen || kind == TokenKind::RightBracket) && !brackets.empty())
      brackets.pop_back();
  }

  /// Whether a token is a word such as `when` or `return`, which is no value, although it is a name.
  bool isWord(size_t i) const { return words.contains(tokens[i].range.begin); }

  bool isSign(size_t i) const {
    return tokens[i].kind == TokenKind::Minus &&
           (i == 0 || !endsValue(tokens[i - 1].kind) || isWord(i - 1));
  }

  bool spaceBefore(size_t i) const {
    if (i == 0)
      return false;
    TokenKind before = tokens[i - 1].kind;
    switch (tokens[i].kind) {
    case TokenKind::Comma:
    case TokenKind::RightParen:
    case TokenKind::RightBracket:
    case TokenKind::Dot:
      return false;
    case TokenKind::LeftParen:
    case TokenKind::LeftBracket:
      if ((before == TokenKind::Name && !isWord(i - 1)) || before == TokenKind::KwRows ||
          before == TokenKind::KwCols)
        return false;
      break;
    default:
      break;
    }
    return before != TokenKind::LeftParen && before != TokenKind::LeftBracket &&
           before != TokenKind::Dot && !isSign(i - 1);
  }

  enum class Break { No, Good, InProduct };

  Break breakBefore(size_t i) const {
    // The three coefficients of a step stay together.
    size_t open = brackets.size();
    if (open > 1 && brackets[open - 2] == TokenKind::LeftBracket)
      return Break::No;
    TokenKind kind = tokens[i].kind;
    if (kind == TokenKind::Star || kind == TokenKind::Slash || kind == TokenKind::At ||
        kind == TokenKind::Caret)
      return Break::InProduct;
    bool isGood = (i && tokens[i - 1].kind == TokenKind::Comma) || kind == TokenKind::KwAs ||
                  kind == TokenKind::KwFor || kind == TokenKind::KwIf ||
                  kind == TokenKind::KwExcept || (isBinaryOperator(kind) && !isSign(i));
    return isGood ? Break::Good : Break::No;
  }

  const Source &source;
  const std::vector<Token> &tokens;
  const std::vector<Comment> &comments;
  const std::vector<uint32_t> &lineBegins;
  llvm::DenseSet<uint32_t> words; ///< Parser::words

  std::vector<std::string> lines;
  size_t comment = 0;  ///< The index of the next comment to print.
  size_t depth = 0;    ///< The number of open braces.
  size_t indent = 0;   ///< Columns before the current logical line.
  bool isFresh = true; ///< Nothing but indent is on the last line.
  bool lineOpensBlock = false;
  StringRef oneLine;         ///< The first word of the logical line before, if it is a declaration.
  uint32_t lastEnd = 0;      ///< The source's offset behind the token or comment printed last.
  size_t declarationEnd = 0; ///< The number of lines up to the end of the last declaration.
  std::vector<TokenKind> brackets;
};

} // namespace

std::optional<std::string> stepc::lang::format(const Source &source, Diagnostics &diagnostics) {
  Parser parser(source, source.first(), diagnostics);
  parser.parseFile();
  if (diagnostics.hasErrors())
    return std::nullopt;
  return Formatter(source, parser.tokens(), parser.lineBegins(), parser.words()).run();
}

//===- Lexer.h - Tokens of the .optim language ------------------*- C++ -*-===//
#ifndef STEPC_FRONTENDS_LANGUAGE_LEXER_H
#define STEPC_FRONTENDS_LANGUAGE_LEXER_H

#include "frontends/language/Diagnostics.h"

namespace stepc::lang {

enum class TokenKind : uint8_t {
  End,
  Invalid, ///< The token has an error, so the parser adds none.
  Name,
  Number,
  String,
  LeftParen,
  RightParen,
  LeftBrace,
  RightBrace,
  LeftBracket,
  RightBracket,
  Comma,
  Colon,
  Equal,
  Plus,
  Minus,
  Star,
  Slash,
  At,
  Caret,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  EqualEqual,
  NotEqual,
  Dot, ///< Only behind the name `model`.
  // Keywords. Function names, dtypes and argument names are ordinary names:
  // `momentum` can be a hyperparameter and a function at once.
  KwOptimizer,
  KwState,
  KwMaster,
  KwLet,
  KwRoute,
  KwFor,
  KwExcept,
  KwAs,
  KwIf,
  KwMatrix,
  KwRest,
  KwAnd,
  KwOr,
  KwNot,
  KwParam,
  KwGrad,
  KwStep,
  KwRows,
  KwCols,
  KwNumel,
  // Reserved: the constructs are planned, so the names must stay free.
  KwInput,
  KwMetric,
};

struct Token {
  TokenKind kind = TokenKind::End;
  bool startsLine = false; ///< Only blanks come before the token on its line.
  SourceRange range;
  double value = 0;   ///< A number's value; for a wrong number the one that was probably meant.
  int32_t error = -1; ///< The index of the token's error in TokenStream::errors; -1 if none.
};

struct Comment {
  bool startsLine = false;
  SourceRange range; ///< From `//` to the end of the line, without its ending.
};

struct TokenStream {
  std::vector<Token> tokens; ///< Ends with one End token.
  std::vector<Comment> comments;
  std::deque<Diagnostic> errors; ///< Errors in tokens, a hundred at most.
};

/// Splits the text of a file into tokens; `part` is its range in the source. A character, number or string
/// that is not of the language becomes a token with an error: the one that was probably meant, otherwise
/// Invalid. Errors that belong to no token go to `diagnostics` at once. Errors of tokens go there if
/// `reportTokens` is true. The parser passes false, and reports the errors of the tokens that it consumes.
TokenStream lex(const Source &source, SourceRange part, Diagnostics &diagnostics,
                bool reportTokens = true);

/// All keywords, in the order of TokenKind.
llvm::ArrayRef<llvm::StringRef> keywords();

inline bool isKeyword(TokenKind kind) { return kind >= TokenKind::KwOptimizer; }
/// The names of values that every rule has: param grad step rows cols numel.
inline bool isBuiltinValue(TokenKind kind) {
  return kind >= TokenKind::KwParam && kind <= TokenKind::KwNumel;
}
/// How messages spell a kind of token: `')'`, `'let'`, `a name`.
std::string describe(TokenKind kind);

/// The value of a String token's text, quotes included, with `\"` and `\\`
/// replaced.
std::string stringValue(llvm::StringRef spelling);

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_LEXER_H

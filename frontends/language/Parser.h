//===- Parser.h - Recursive descent over the tokens -------------*- C++ -*-===//
//
// Private to this folder. A parse function returns null (or false) after it
// reported an error; the nearest statement, claim or declaration then skips to
// the next one, so one run reports several errors.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_PARSER_H
#define STEPC_FRONTENDS_LANGUAGE_PARSER_H

#include "frontends/language/Language.h"
#include "frontends/language/Lexer.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace stepc::lang {

class Parser {
public:
  /// Parses the file whose text has this range of the source.
  Parser(const Source &source, SourceRange part, Diagnostics &diagnostics)
      : source(source), part(part), diagnostics(diagnostics),
        stream(lex(source, part, diagnostics, /*reportTokens=*/false)) {}

  std::unique_ptr<File> parseFile();

  const TokenStream &tokens() const { return stream; }
  /// Offsets of the tokens that begin a logical line: declarations, statements,
  /// claims and closing braces. The formatter lays these lines out.
  const std::vector<uint32_t> &lineBegins() const { return logicalLines; }
  /// Offsets of the names that are words of the language where they stand: `when`, `where`, `return`, ...
  const std::vector<uint32_t> &words() const { return wordBegins; }

private:
  // Tokens.
  const Token &current() const { return stream.tokens[position]; }
  /// The token with that index, or the end of the text behind the last one.
  const Token &tokenAt(size_t index) const;
  const Token &next() const { return tokenAt(position + 1); }
  bool at(TokenKind kind) const { return current().kind == kind; }
  bool atName(llvm::StringRef spelling) const;
  llvm::StringRef spelling(const Token &token) const { return source.text(token.range); }
  SourceRange previousRange() const;
  /// Returns the current token, moves to the next, and reports the token's error.
  Token consume();
  /// Does the same without the report, for tokens that follow an error.
  Token skip();
  /// Consumes a name that is a word of the language here.
  Token consumeWord();
  void report(const Token &token);
  bool consumeIf(TokenKind kind);

  // Errors. An Invalid token has an error of its own, which is reported instead.
  Diagnostic &expected(const llvm::Twine &what);
  Diagnostic &errorAt(SourceRange range, const llvm::Twine &message);
  std::string describeCurrent() const;
  void hintValue(Diagnostic &error) const;
  void hintAfterValue(Diagnostic &error) const;
  void hintBinding(Diagnostic &error, const Body &body, llvm::StringRef name,
                   Statement::Kind kind) const;
  void hintConstant(Diagnostic &error, llvm::StringRef name) const;
  void hintGroupedDigits(Diagnostic &error, const Token &before) const;
  bool expect(TokenKind kind);
  /// Reports a construct that a later version will have.
  void unsupported(const Token &construct);
  bool checkStartsLine(llvm::StringRef alternatives);

  // Pieces.
  /// If there is no name, reports an error, stores it in `said`, and returns nothing.
  std::optional<Name> parseName(llvm::StringRef what, Diagnostic **said = nullptr);
  /// `name` is the hyperparameter's that gets the value, for hints; "" if there is none.
  std::optional<Constant> parseConstant(llvm::StringRef what = "a number",
                                        llvm::StringRef name = "");
  /// A constant that may be computed: `0.1 / 3`.
  std::optional<Constant> parseComputed(llvm::StringRef name);
  std::optional<ElementType> parseDtype();
  bool parseStrings(std::vector<StringLiteral> &strings);
  /// `( item, item, ... )` with an optional trailing comma.
  /// With `goOn` the parser skips a wrong item and goes on. Returns false after an error in any case.
  bool parseList(TokenKind open, TokenKind close, llvm::function_ref<bool()> parseItem,
                 bool goOn = false);
  bool skipItem(TokenKind close);
  /// Adds to `body.unread` the names from token `from` up to the current one: this text has an error.
  void rememberUnread(Body &body, size_t from) const;

  // Expressions, in ParseExpressions.cpp.
  ExprPtr parseExpression() { return parseBinary(0); }
  ExprPtr parseBinary(unsigned minLevel);
  ExprPtr parseNot(unsigned minLevel);
  ExprPtr parseUnary();
  ExprPtr parsePrimary();
  ExprPtr parseParentheses();
  ExprPtr parseCall(const Token &callee);
  ExprPtr parseModelValue(const Token &model);
  ExprPtr parseCoefficientList();
  ExprPtr parseNumberList();
  ExprPtr parseListOf(const Name *option);
  bool hintList(llvm::StringRef option);
  bool parseArgument(CallExpr &call);
  ExprPtr limitHeight(ExprPtr expr, SourceRange where);
  bool tooDeep(SourceRange where);

  // Declarations and statements, in ParseDeclarations.cpp.
  std::unique_ptr<Rule> parseRule();
  std::unique_ptr<Model> parseModel();
  void parseDefinition(Body &body, SourceRange begin, const llvm::Twine &form);
  bool parseHyperparameter(Body &body);
  void parseBody(Body &body);
  bool parseStatement(Body &body);
  bool parseWork(Body &body);
  bool parseSkip(Body &body);
  bool parseState(Body &body);
  bool parseMaster(Rule &rule);
  bool parseBinding(Body &body, Statement::Kind kind);
  Route parseRoute();
  bool parseClaim(Route &route);
  bool parseIfPresent(std::optional<SourceRange> &ifPresent, llvm::StringRef what);
  bool parseSetting(Claim &claim);
  bool parseStateKind(StateDeclaration &state);
  std::optional<Size> parseSize();
  bool parseSelector(Claim &claim);
  bool parseWhere(Claim &claim);
  bool asksForAxes() const;
  bool expectClosingBrace(SourceRange openRange);

  // Functions and repeated statements, in ParseFunctions.cpp.
  std::unique_ptr<Def> parseDef();
  ImportStatement parseImport();
  bool beginsImport(size_t at) const;
  bool parseReturn(Body &body);
  bool parseRepeat(Body &body);
  bool beginsNames() const;
  bool parseNames(RepeatStatement &repeat);
  bool parseEntries(RepeatStatement &repeat);
  bool beginsDef(size_t at) const;
  bool atReturn() const;
  bool atRepeat() const;

  // Blocks of matrices, in ParseBlocks.cpp.
  std::optional<BlocksStatement> parseBlocks();
  bool parseBlockSizes(BlocksStatement &blocks);
  std::optional<Constant> parseCount(llvm::StringRef what);

  // Recovery.
  bool looksForeign() const;
  bool atDeclaration() const;
  bool beginsDeclaration(size_t at) const;
  bool isMisspelt(size_t at, llvm::StringRef word) const;
  bool atPlannedStatement() const;
  bool atBlocks() const;
  size_t closing(size_t open) const;
  bool beginsModel(size_t at) const;
  bool atSkip() const;
  bool atStatement() const;
  bool atUpdate(size_t at) const;
  bool atClaim() const;
  /// Skips to where `stop` holds, to a `}`, or to the next declaration.
  void skipTo(llvm::function_ref<bool()> stop);
  void skipToDeclaration();

  const Source &source;
  const SourceRange part;
  Diagnostics &diagnostics;
  TokenStream stream;
  size_t position = 0;
  unsigned depth = 0;      ///< The depth of the expression being parsed.
  unsigned openParens = 0; ///< Open brackets within the statement being parsed.
  bool inBody = false;     ///< Within the braces of an optimizer, a model or a function.
  unsigned repeats = 0;    ///< How many `repeat`s the statement being parsed is in.
  /// closing() of each parenthesis. Empty until the first is asked for.
  mutable std::vector<uint32_t> closings;
  std::vector<uint32_t> logicalLines, wordBegins;
  Diagnostic silenced;
};

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_PARSER_H

//===- Copy.cpp - Copies of statements that are inlined -------------------===//
#include "frontends/language/AST.h"
#include "frontends/language/Builtins.h"
#include "llvm/ADT/STLExtras.h"

using namespace stepc::lang;

/// Copies what is common to all expressions, after the parts were copied.
static ExprPtr finish(std::unique_ptr<Expr> made, const Expr &expr) {
  made->parenthesized = expr.parenthesized;
  made->height = expr.height;
  return made;
}

/// A chain is copied in a loop, because it may be long.
static ExprPtr copyChain(const BinaryExpr &top, const Literals &replaced) {
  std::vector<const BinaryExpr *> links = chain(top);
  ExprPtr made = copyOf(*links.front()->lhs, replaced);
  for (const BinaryExpr *link : links) {
    ExprPtr rhs = copyOf(*link->rhs, replaced);
    auto binary =
        std::make_unique<BinaryExpr>(link->op, link->opRange, std::move(made), std::move(rhs));
    binary->range = link->range;
    made = finish(std::move(binary), *link);
  }
  return made;
}

static ExprPtr copyCall(const CallExpr &call, const Literals &replaced) {
  auto made = std::make_unique<CallExpr>(call.range, call.callee);
  for (const ExprPtr &argument : call.arguments)
    made->arguments.push_back(copyOf(*argument, replaced));
  for (const CallExpr::Option &option : call.options) {
    bool isWord = isWordOption(option.name.text);
    made->options.push_back({option.name, copyOf(*option.value, isWord ? Literals() : replaced)});
  }
  return made;
}

ExprPtr stepc::lang::copyOf(const Expr &expr, const Literals &replaced) {
  switch (expr.kind) {
  case Expr::Kind::Error:
    return std::make_unique<ErrorExpr>(expr.range);
  case Expr::Kind::Number:
    return finish(std::make_unique<NumberExpr>(expr.range, llvm::cast<NumberExpr>(expr).value),
                  expr);
  case Expr::Kind::Name: {
    const std::string &name = llvm::cast<NameExpr>(expr).name;
    auto literal = replaced.find(name);
    if (literal == replaced.end() || parseElementType(name)) // the dtype of a `cast` is no value
      return finish(std::make_unique<NameExpr>(expr.range, name), expr);
    // The number stands where the name stands. In parentheses, because it may have a sign.
    *literal->second.isUsed = true;
    ExprPtr number = copyOf(*literal->second.value, {});
    number->range = expr.range;
    number->parenthesized = true;
    return number;
  }
  case Expr::Kind::ModelValue:
    return finish(
        std::make_unique<ModelValueExpr>(expr.range, llvm::cast<ModelValueExpr>(expr).member),
        expr);
  case Expr::Kind::Unary: {
    const auto &unary = llvm::cast<UnaryExpr>(expr);
    return finish(
        std::make_unique<UnaryExpr>(expr.range, unary.op, copyOf(*unary.operand, replaced)), expr);
  }
  case Expr::Kind::Binary:
    return copyChain(llvm::cast<BinaryExpr>(expr), replaced);
  case Expr::Kind::Call:
    return finish(copyCall(llvm::cast<CallExpr>(expr), replaced), expr);
  case Expr::Kind::CoefficientList: {
    auto list = std::make_unique<CoefficientListExpr>(expr.range);
    list->steps = llvm::cast<CoefficientListExpr>(expr).steps;
    return finish(std::move(list), expr);
  }
  case Expr::Kind::NumberList: {
    auto list = std::make_unique<NumberListExpr>(expr.range);
    list->numbers = llvm::cast<NumberListExpr>(expr).numbers;
    return finish(std::move(list), expr);
  }
  }
  return nullptr;
}

static std::unique_ptr<Statement> copyRepeat(const RepeatStatement &repeat,
                                             const Literals &replaced) {
  auto made = std::make_unique<RepeatStatement>(repeat.range, repeat.target);
  made->value = repeat.value ? copyOf(*repeat.value, replaced) : nullptr;
  made->names = repeat.names;
  for (const auto &entry : repeat.entries) {
    std::vector<ExprPtr> values;
    for (const ExprPtr &value : entry)
      values.push_back(copyOf(*value, replaced));
    made->entries.push_back(std::move(values));
  }
  for (const auto &statement : repeat.statements)
    made->statements.push_back(copyOf(*statement, replaced));
  return made;
}

std::unique_ptr<Statement> stepc::lang::copyOf(const Statement &statement,
                                               const Literals &replaced) {
  if (const auto *repeat = llvm::dyn_cast<RepeatStatement>(&statement))
    return copyRepeat(*repeat, replaced);
  ExprPtr value = copyOf(*statement.value, replaced);
  const SourceRange range = statement.range;
  if (const auto *given = llvm::dyn_cast<LetStatement>(&statement)) {
    auto let = std::make_unique<LetStatement>(range, statement.target, std::move(value));
    let->isUsed = given->isUsed;
    return let;
  }
  assert(llvm::isa<AssignStatement>(statement) && "functions and repeats have no other statement");
  return std::make_unique<AssignStatement>(range, statement.target, std::move(value));
}

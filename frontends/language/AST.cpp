//===- AST.cpp - Spellings and the dump of the tree -----------------------===//
#include "frontends/language/AST.h"
#include "frontends/language/Builtins.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

using namespace stepc::lang;
using llvm::raw_ostream;
using llvm::StringRef;

StringRef stepc::lang::spell(ElementType element) {
  switch (element) {
  case ElementType::Invalid:
    return "invalid";
  case ElementType::F64:
    return "f64";
  case ElementType::F32:
    return "f32";
  case ElementType::BF16:
    return "bf16";
  case ElementType::F16:
    return "f16";
  case ElementType::Condition:
    return "condition";
  }
  return "";
}

std::optional<ElementType> stepc::lang::parseElementType(StringRef name) {
  for (ElementType element : {ElementType::F32, ElementType::BF16, ElementType::F16})
    if (name == spell(element))
      return element;
  return std::nullopt;
}

std::string stepc::lang::spell(Size size) {
  return size.of == Size::Of::Rows   ? "rows"
         : size.of == Size::Of::Cols ? "cols"
         : size.of == Size::Of::Let  ? size.name.str()
                                     : std::to_string(size.number);
}

std::string stepc::lang::describe(Shape shape) {
  if (!shape.isTensor)
    return "a scalar";
  if (shape == Shape::One)
    return "one value of the whole parameter";
  if (shape == Shape::Rows)
    return "one value per row";
  if (shape == Shape::Cols)
    return "one value per column";
  if (shape == Shape::Full)
    return "a tensor shaped like the parameter";
  return "a matrix of " + spell(shape.rows) + " × " + spell(shape.cols);
}

std::string stepc::lang::describe(Type type) {
  return type.isCondition() ? "a condition" : describe(type.shape);
}

std::optional<Shape> stepc::lang::broadcast(Shape a, Shape b) {
  auto join = [](Size one, Size other) -> std::optional<Size> {
    if (one == Size::One || one == other)
      return other;
    return other == Size::One ? std::optional(one) : std::nullopt;
  };
  std::optional<Size> rows = join(a.rows, b.rows), cols = join(a.cols, b.cols);
  if (!rows || !cols)
    return std::nullopt;
  return Shape{a.isTensor || b.isTensor, *rows, *cols};
}

StringRef stepc::lang::spell(BinaryOp op) {
  static constexpr StringRef spellings[] = {"+",  "-", "*",  "/",  "@",  "^",   "<",
                                            "<=", ">", ">=", "==", "!=", "and", "or"};
  return spellings[size_t(op)];
}

template <typename Binary> static std::vector<Binary *> chainFrom(Binary &top) {
  std::vector<Binary *> links;
  for (Binary *link = &top; link; link = llvm::dyn_cast<BinaryExpr>(link->lhs.get()))
    links.push_back(link);
  std::reverse(links.begin(), links.end());
  return links;
}

std::vector<BinaryExpr *> stepc::lang::chain(BinaryExpr &top) { return chainFrom(top); }
std::vector<const BinaryExpr *> stepc::lang::chain(const BinaryExpr &top) { return chainFrom(top); }

/// Takes the chain apart from its outer end, so that no destructor recurses along it.
BinaryExpr::~BinaryExpr() {
  while (lhs && llvm::isa<BinaryExpr>(*lhs)) {
    ExprPtr link = std::move(lhs);
    lhs = std::move(llvm::cast<BinaryExpr>(*link).lhs);
  }
}

CallExpr::CallExpr(SourceRange range, Name callee)
    : Expr(Kind::Call, range), callee(std::move(callee)) {}
CallExpr::~CallExpr() = default;

std::optional<double> stepc::lang::literalValue(const Expr &expr) {
  if (const auto *number = llvm::dyn_cast<NumberExpr>(&expr))
    return number->value;
  const auto *unary = llvm::dyn_cast<UnaryExpr>(&expr);
  if (!unary || unary->op != UnaryOp::Negate)
    return std::nullopt;
  std::optional<double> value = literalValue(*unary->operand);
  return value ? std::optional(-*value) : std::nullopt;
}

const CallExpr *stepc::lang::findCall(const Expr &expr,
                                      llvm::function_ref<bool(const CallExpr &)> isIt) {
  if (const auto *unary = llvm::dyn_cast<UnaryExpr>(&expr))
    return findCall(*unary->operand, isIt);
  if (const auto *binary = llvm::dyn_cast<BinaryExpr>(&expr)) {
    std::vector<const BinaryExpr *> links = chain(*binary);
    if (const CallExpr *found = findCall(*links.front()->lhs, isIt))
      return found;
    for (const BinaryExpr *link : links)
      if (const CallExpr *found = findCall(*link->rhs, isIt))
        return found;
    return nullptr;
  }
  const auto *call = llvm::dyn_cast<CallExpr>(&expr);
  if (!call || isIt(*call))
    return call;
  for (const ExprPtr &argument : call->arguments)
    if (const CallExpr *found = findCall(*argument, isIt))
      return found;
  return nullptr;
}

const CallExpr *stepc::lang::findCall(const Statements &statements,
                                      llvm::function_ref<bool(const CallExpr &)> isIt) {
  for (const auto &statement : statements) {
    if (statement->value)
      if (const CallExpr *found = findCall(*statement->value, isIt))
        return found;
    const auto *repeat = llvm::dyn_cast<RepeatStatement>(statement.get());
    if (!repeat)
      continue;
    for (const auto &entry : repeat->entries)
      for (const ExprPtr &value : entry)
        if (const CallExpr *found = findCall(*value, isIt))
          return found;
    if (const CallExpr *found = findCall(repeat->statements, isIt))
      return found;
  }
  return nullptr;
}

bool stepc::lang::isProductExponent(double exponent) {
  constexpr double largest = 16;
  return std::abs(exponent) <= largest && exponent != 0 && exponent == std::trunc(exponent);
}

const Hyperparameter *Body::findHyperparameter(StringRef name) const {
  auto found = llvm::find_if(hyperparameters,
                             [&](const Hyperparameter &each) { return each.name.text == name; });
  return found == hyperparameters.end() ? nullptr : &*found;
}

std::vector<const MetricStatement *> Body::metrics() const {
  std::vector<const MetricStatement *> all;
  for (const auto &statement : statements)
    if (const auto *metric = llvm::dyn_cast<MetricStatement>(statement.get()))
      all.push_back(metric);
  return all;
}

const MetricStatement *Body::findMetric(StringRef name) const {
  for (const MetricStatement *metric : metrics())
    if (metric->target.text == name)
      return metric;
  return nullptr;
}

Model *File::model() const {
  if (!models.empty())
    return models[0].get();
  for (const auto &file : imported)
    if (!file->models.empty())
      return file->models[0].get();
  return nullptr;
}

std::vector<Rule *> File::allRules() const {
  std::vector<Rule *> all;
  for (const auto &rule : rules)
    all.push_back(rule.get());
  for (const auto &file : imported)
    for (const auto &rule : file->rules)
      all.push_back(rule.get());
  return all;
}

std::vector<Body *> File::bodies() const {
  std::vector<Body *> all;
  for (const auto &model : models)
    all.push_back(model.get());
  for (const auto &rule : rules)
    all.push_back(rule.get());
  return all;
}

namespace {

/// Writes the tree as S-expressions.
class Dumper {
public:
  explicit Dumper(raw_ostream &os) : os(os) {}

  void expr(const Expr &e) {
    if (e.parenthesized)
      os << "(paren ";
    bare(e);
    if (e.parenthesized)
      os << ")";
  }

  void body(const Body &body) {
    const auto *rule = llvm::dyn_cast<Rule>(&body);
    const auto *def = llvm::dyn_cast<Def>(&body);
    os << "(" << (rule ? "optimizer " : def ? "def " : "") << body.name.text;
    if (def)
      names(def->parameters);
    os << (rule && rule->wide ? " wide\n" : "\n");
    for (const Hyperparameter &hyper : body.hyperparameters) {
      os << "  (hyperparameter " << hyper.name.text;
      optional(hyper.defaultValue);
      os << ")\n";
    }
    for (const StateDeclaration &state : body.states) {
      os << (state.isInput ? "  (input " : "  (state ") << state.name.text << " "
         << spell(state.element) << " [" << spell(state.shape.rows) << ", "
         << spell(state.shape.cols) << "]";
      optional(state.initial);
      os << ")\n";
    }
    if (rule && rule->master)
      os << "  (master " << spell(rule->master->element) << ")\n";
    statements(body.statements, "  ");
    os << ")\n";
  }

  void claim(const Claim &claim) {
    os << "  (claim " << claim.ruleName.text;
    for (const Setting &setting : claim.settings) {
      os << " (" << setting.name.text;
      optional(setting.number);
      if (setting.word)
        os << " " << setting.word->text;
      os << ")";
    }
    if (claim.routeName)
      os << " (as " << claim.routeName->text << ")";
    os << (claim.isRest ? " rest" : "") << (claim.isMatrix ? " matrix" : "");
    strings("globs", claim.globs);
    os << (claim.ifPresent ? " if-present" : "");
    if (claim.where) {
      os << " (where ";
      expr(*claim.where);
      os << ")";
    }
    strings("except", claim.except);
    os << ")\n";
  }

  void blocks(const BlocksStatement &blocks) {
    os << "(blocks";
    strings("globs", blocks.globs);
    os << (blocks.ifPresent ? " if-present" : "");
    strings("except", blocks.except);
    if (blocks.flatten) {
      os << " (flatten";
      optional(blocks.flatten);
      os << ")";
    }
    if (blocks.numbers.empty()) {
      os << ")\n";
      return;
    }
    if (blocks.repeat) {
      os << " (repeat";
      optional(blocks.repeat);
      os << ")";
    }
    os << " (" << (blocks.isColumns ? "columns" : "rows");
    if (blocks.sizes != BlockSizes::Listed)
      os << " " << stepc::plan::name(blocks.sizes);
    for (const Constant &size : blocks.numbers)
      optional(size);
    os << "))\n";
  }

private:
  void names(const std::vector<Parameter> &names) {
    os << " (";
    llvm::interleave(names, os, [&](const Parameter &each) { os << each.name.text; }, " ");
    os << ")";
  }

  void statements(const Statements &list, const std::string &indent) {
    for (const auto &statement : list) {
      static constexpr const char *words[] = {"let",    "assign", "skip",
                                              "metric", "repeat", "return"};
      os << indent << "(" << words[size_t(statement->kind)];
      if (statement->kind <= Statement::Kind::Assign || statement->kind == Statement::Kind::Metric)
        os << " " << statement->target.text;
      if (statement->value) {
        os << " ";
        expr(*statement->value);
      }
      if (const auto *repeat = llvm::dyn_cast<RepeatStatement>(statement.get())) {
        if (!repeat->names.empty())
          names(repeat->names);
        for (const auto &entry : repeat->entries) {
          os << " (";
          llvm::interleave(entry, os, [&](const ExprPtr &each) { expr(*each); }, " ");
          os << ")";
        }
        os << "\n";
        statements(repeat->statements, indent + "  ");
        os << indent;
      }
      os << ")\n";
    }
  }

  /// Writes enough digits that the same value can be read back.
  void number(double value) { os << llvm::format("%.17g", value); }

  void optional(const std::optional<Constant> &constant) {
    if (!constant)
      return;
    os << " ";
    if (constant->computed)
      expr(*constant->computed);
    else
      number(constant->value);
  }

  void strings(StringRef label, const std::vector<StringLiteral> &list) {
    os << " (" << label;
    for (const StringLiteral &literal : list) {
      os << " \"";
      llvm::printEscapedString(literal.value, os);
      os << "\"";
    }
    os << ")";
  }

  /// Writes an expression without its own parentheses.
  void bare(const Expr &e) {
    switch (e.kind) {
    case Expr::Kind::Error:
      os << "error";
      return;
    case Expr::Kind::Number:
      return number(llvm::cast<NumberExpr>(e).value);
    case Expr::Kind::Name:
      os << llvm::cast<NameExpr>(e).name;
      return;
    case Expr::Kind::ModelValue:
      os << "(model " << llvm::cast<ModelValueExpr>(e).member.text << ")";
      return;
    case Expr::Kind::Unary: {
      const auto &unary = llvm::cast<UnaryExpr>(e);
      os << (unary.op == UnaryOp::Not ? "(not " : "(negate ");
      expr(*unary.operand);
      os << ")";
      return;
    }
    case Expr::Kind::Binary: {
      std::vector<const BinaryExpr *> links = chain(llvm::cast<BinaryExpr>(e));
      for (const BinaryExpr *link : llvm::reverse(links)) {
        // The caller writes the parentheses of `e` itself around this text.
        if (link->parenthesized && link != &e)
          os << "(paren ";
        os << "(" << spell(link->op) << " ";
      }
      expr(*links.front()->lhs);
      for (const BinaryExpr *link : links) {
        os << " ";
        expr(*link->rhs);
        os << (link->parenthesized && link != &e ? "))" : ")");
      }
      return;
    }
    case Expr::Kind::CoefficientList:
      os << "[";
      for (const auto &step : llvm::cast<CoefficientListExpr>(e).steps) {
        os << "(";
        for (const Constant &c : step) {
          number(c.value);
          os << " ";
        }
        os << ")";
      }
      os << "]";
      return;
    case Expr::Kind::NumberList:
      os << "[";
      for (const Constant &c : llvm::cast<NumberListExpr>(e).numbers) {
        number(c.value);
        os << " ";
      }
      os << "]";
      return;
    case Expr::Kind::Call: {
      const auto &call = llvm::cast<CallExpr>(e);
      os << "(call " << call.callee.text;
      for (const ExprPtr &argument : call.arguments) {
        os << " ";
        expr(*argument);
      }
      for (const CallExpr::Option &option : call.options) {
        os << " (" << option.name.text << " ";
        expr(*option.value);
        os << ")";
      }
      os << ")";
      return;
    }
    }
  }

  raw_ostream &os;
};

} // namespace

std::string stepc::lang::dump(const Expr &expr) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Dumper(os).expr(expr);
  return text;
}

std::string stepc::lang::dump(const File &file) {
  std::string text;
  llvm::raw_string_ostream os(text);
  Dumper dumper(os);
  for (const ImportStatement &import : file.imports)
    os << "(import " << import.path.value << ")\n";
  for (const auto &def : file.defs)
    dumper.body(*def);
  for (const Body *body : file.bodies())
    dumper.body(*body);
  for (const BlocksStatement &blocks : file.blocks)
    dumper.blocks(blocks);
  for (const Route &route : file.routes) {
    os << "(route\n";
    for (const Claim &claim : route.claims)
      dumper.claim(claim);
    os << ")\n";
  }
  return text;
}

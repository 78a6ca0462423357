//===- PlanEnums.h - The plan's enumerations in IR --------------*- C++ -*-===//
//
// A parameter of an attribute may be an enumeration of the plan. IR text has the names that the plan gives
// its values (plan::kNames).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_PLANENUMS_H
#define STEPC_DIALECTS_OPTIM_PLANENUMS_H

#include "runtime/model/Model.h"
#include "runtime/plan/ProductKernel.h"

#include "mlir/IR/OpImplementation.h"

#include "llvm/ADT/Hashing.h"

namespace stepc {
/// Parses one of `words` and returns its index. The error lists all words.
mlir::FailureOr<size_t> parseOneOf(mlir::AsmParser &parser, llvm::ArrayRef<std::string_view> words);

namespace plan {
template <Named Enum> llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Enum value) {
  return os << name(value);
}
} // namespace plan
} // namespace stepc

namespace stepc {
/// Parses a kind of values, by its name or as `[rows, 8]`, and stores it in `kind`. Or parses one of the
/// words `others`. Returns the index of the word, or others.size() for a kind.
mlir::FailureOr<size_t> parseKind(mlir::AsmParser &parser, plan::ValueKind &kind,
                                  llvm::ArrayRef<std::string_view> others = {});
namespace plan {
inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, ValueKind kind) {
  return os << name(kind);
}
inline llvm::hash_code hash_value(ValueKind kind) {
  return llvm::hash_combine(kind.rows, kind.cols);
}
} // namespace plan
} // namespace stepc

template <> struct mlir::FieldParser<stepc::plan::ValueKind, stepc::plan::ValueKind> {
  static FailureOr<stepc::plan::ValueKind> parse(AsmParser &parser) {
    stepc::plan::ValueKind kind;
    if (failed(stepc::parseKind(parser, kind)))
      return failure();
    return kind;
  }
};

template <stepc::plan::Named Enum> struct mlir::FieldParser<Enum, Enum> {
  static FailureOr<Enum> parse(AsmParser &parser) {
    FailureOr<size_t> number = stepc::parseOneOf(parser, stepc::plan::kNames<Enum>);
    if (failed(number))
      return failure();
    return static_cast<Enum>(*number);
  }
};

namespace stepc {
/// The format `custom<Word>` of an attribute that holds an enumeration (PlanEnumAttr).
template <typename Attr> mlir::ParseResult parseWord(mlir::OpAsmParser &parser, Attr &attribute) {
  auto value = mlir::FieldParser<decltype(attribute.getValue())>::parse(parser);
  if (succeeded(value))
    attribute = Attr::get(parser.getContext(), *value);
  return mlir::success(succeeded(value));
}
template <typename Attr>
void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, Attr attribute) {
  printer << attribute.getValue();
}
} // namespace stepc

#endif

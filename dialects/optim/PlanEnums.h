//===- PlanEnums.h - The plan's enumerations in IR --------------*- C++ -*-===//
//
// Parameters of attributes are the plan's enumerations. They are printed and parsed by their names there.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_PLANENUMS_H
#define STEPC_DIALECTS_OPTIM_PLANENUMS_H

#include "runtime/model/Enum.h"

#include "mlir/IR/OpImplementation.h"

namespace stepc {
/// Parses one of `words` and returns its number. The error lists them all.
mlir::FailureOr<size_t> parseOneOf(mlir::AsmParser &parser, llvm::ArrayRef<std::string_view> words);

namespace plan {
template <Named Enum> llvm::raw_ostream &operator<<(llvm::raw_ostream &os, Enum value) {
  return os << name(value);
}
} // namespace plan
} // namespace stepc

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

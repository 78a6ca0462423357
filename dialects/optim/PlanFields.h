//===- PlanFields.h - Structs of the plan in IR -----------------*- C++ -*-===//
//
// A parameter of an attribute may be a struct of the plan whose fields are numbers, words and lists of
// numbers. Its text is `name = value, …`; a field that has its default is left out.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_PLANFIELDS_H
#define STEPC_DIALECTS_OPTIM_PLANFIELDS_H

#include "dialects/optim/PlanEnums.h"
#include "runtime/model/Fields.h"

#include "llvm/ADT/Hashing.h"

#include <functional>

namespace stepc::plan {

// A field is a number, a word or a list of numbers. These functions print, hash and parse each kind.
inline void printField(llvm::raw_ostream &os, int64_t value) { os << value; }
template <Named Enum> void printField(llvm::raw_ostream &os, Enum value) { os << value; }
inline void printField(llvm::raw_ostream &os, const std::vector<int64_t> &values) {
  os << '[';
  llvm::interleaveComma(values, os);
  os << ']';
}

inline llvm::hash_code hashField(int64_t value) { return llvm::hash_value(value); }
template <Named Enum> llvm::hash_code hashField(Enum value) { return hashField(int64_t(value)); }
inline llvm::hash_code hashField(const std::vector<int64_t> &values) {
  return llvm::hash_combine_range(values.begin(), values.end());
}

inline mlir::ParseResult parseField(mlir::AsmParser &parser, int64_t &value) {
  return parser.parseInteger(value);
}
template <Named Enum> mlir::ParseResult parseField(mlir::AsmParser &parser, Enum &value) {
  auto parsed = mlir::FieldParser<Enum>::parse(parser);
  if (succeeded(parsed))
    value = *parsed;
  return mlir::success(succeeded(parsed));
}
inline mlir::ParseResult parseField(mlir::AsmParser &parser, std::vector<int64_t> &values) {
  return parser.parseCommaSeparatedList(mlir::AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(values.emplace_back()); });
}

template <HasFields Struct> llvm::hash_code hash_value(const Struct &made) {
  llvm::hash_code code(0);
  Struct::fields(made, [&](const char *, const auto &value) {
    code = llvm::hash_combine(code, hashField(value));
  });
  return code;
}

template <HasFields Struct>
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Struct &made) {
  const Struct usual;
  llvm::SmallVector<const void *> defaults;
  Struct::fields(usual, [&](const char *, const auto &value) { defaults.push_back(&value); });
  llvm::ListSeparator comma;
  const void *const *next = defaults.begin();
  Struct::fields(made, [&]<typename Field>(const char *name, const Field &value) {
    if (value == *static_cast<const Field *>(*next++))
      return;
    os << comma << name << " = ";
    printField(os, value);
  });
  return os;
}

} // namespace stepc::plan

template <stepc::plan::HasFields Struct> struct mlir::FieldParser<Struct, Struct> {
  static FailureOr<Struct> parse(AsmParser &parser) {
    Struct made;
    SmallVector<std::string_view> names; // of fields not parsed yet
    SmallVector<std::function<ParseResult()>> values;
    Struct::fields(made, [&](const char *name, auto &value) {
      names.push_back(name);
      values.push_back([&] { return stepc::plan::parseField(parser, value); });
    });
    do {
      FailureOr<size_t> number = stepc::parseOneOf(parser, names);
      if (failed(number) || parser.parseEqual() || values[*number]())
        return failure();
      names.erase(names.begin() + *number);
      values.erase(values.begin() + *number);
    } while (succeeded(parser.parseOptionalComma()));
    return made;
  }
};

#endif

//===- PlanFields.h - Structs of the plan in IR -----------------*- C++ -*-===//
//
// A parameter of an attribute may be a struct of the plan whose fields are numbers with names. Its text is
// `name = number, …`; a field that has its default is left out.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_PLANFIELDS_H
#define STEPC_DIALECTS_OPTIM_PLANFIELDS_H

#include "dialects/optim/PlanEnums.h"
#include "runtime/model/Fields.h"

namespace stepc::plan {

template <typename Struct>
concept HasNumbers = HasFields<Struct> && requires(Struct &made) {
  Struct::fields(made, [](const char *, int64_t &) {});
};

template <HasNumbers Struct> llvm::hash_code hash_value(const Struct &made) {
  llvm::hash_code code(0);
  Struct::fields(
      made, [&](const char *, const int64_t &value) { code = llvm::hash_combine(code, value); });
  return code;
}

template <HasNumbers Struct>
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Struct &made) {
  const Struct usual;
  llvm::SmallVector<int64_t> defaults;
  Struct::fields(usual, [&](const char *, const int64_t &value) { defaults.push_back(value); });
  llvm::ListSeparator comma;
  const int64_t *next = defaults.begin();
  Struct::fields(made, [&](const char *name, const int64_t &value) {
    if (value != *next++)
      os << comma << name << " = " << value;
  });
  return os;
}

} // namespace stepc::plan

template <stepc::plan::HasNumbers Struct> struct mlir::FieldParser<Struct, Struct> {
  static FailureOr<Struct> parse(AsmParser &parser) {
    Struct made;
    SmallVector<std::string_view> names; // of fields that may still come
    SmallVector<int64_t *> values;
    Struct::fields(made, [&](const char *name, int64_t &value) {
      names.push_back(name);
      values.push_back(&value);
    });
    do {
      FailureOr<size_t> number = stepc::parseOneOf(parser, names);
      if (failed(number) || parser.parseEqual() || parser.parseInteger(*values[*number]))
        return failure();
      names.erase(names.begin() + *number);
      values.erase(values.begin() + *number);
    } while (succeeded(parser.parseOptionalComma()));
    return made;
  }
};

#endif

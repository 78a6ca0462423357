//===- Selectors.h - Patterns of names, and whether they matched *- C++ -*-===//
#ifndef STEPC_PASSES_DECIDE_SELECTORS_H
#define STEPC_PASSES_DECIDE_SELECTORS_H

#include "dialects/optim/Optim.h"

namespace stepc::decide {

/// A pattern of an operation, and whether any parameter matched it.
struct Selector {
  NamePattern pattern;
  bool optional = false; ///< It may match nothing.
  bool used = false;
};

/// A selector for each pattern of a list. The operation's verifier has checked that the texts are patterns.
inline llvm::SmallVector<Selector> selectors(mlir::ArrayAttr texts,
                                             llvm::ArrayRef<mlir::Attribute> optional) {
  llvm::SmallVector<Selector> result;
  NamePatternError error;
  for (mlir::Attribute text : texts)
    result.push_back({*NamePattern::parse(llvm::cast<mlir::StringAttr>(text).getValue(), error),
                      llvm::is_contained(optional, text)});
  return result;
}

template <typename Op> llvm::ArrayRef<mlir::Attribute> optionalOf(Op op) {
  mlir::ArrayAttr optional = op.getOptionalAttr();
  return optional ? optional.getValue() : llvm::ArrayRef<mlir::Attribute>();
}

/// Whether the name or an alias matches a pattern. Marks all matching patterns as used.
template <typename Named> bool matches(llvm::SmallVectorImpl<Selector> &selectors, Named named) {
  bool any = false;
  for (Selector &selector : selectors) {
    bool match = optim::matches(selector.pattern, named);
    selector.used |= match;
    any |= match;
  }
  return any;
}

} // namespace stepc::decide

#endif

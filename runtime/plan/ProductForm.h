//===- ProductForm.h - What products of one kernel share --------*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_PRODUCTFORM_H
#define STEPC_RUNTIME_PLAN_PRODUCTFORM_H

#include "runtime/model/Model.h"

#include <compare>

namespace stepc::plan {

/// The types, transposes and symmetry of a product. Products of one form may share a launch. One kernel of
/// tiles (TileLists.h) serves all shapes of a form.
struct ProductForm {
  DType lhs = DType::BF16, rhs = DType::BF16, out = DType::BF16;
  bool transposeLhs = false, transposeRhs = false, symmetric = false;
  auto operator<=>(const ProductForm &) const = default;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("lhs", self.lhs);
    visit("rhs", self.rhs);
    visit("out", self.out);
    visit("transpose_lhs", self.transposeLhs);
    visit("transpose_rhs", self.transposeRhs);
    visit("symmetric", self.symmetric);
  }
};

} // namespace stepc::plan

#endif

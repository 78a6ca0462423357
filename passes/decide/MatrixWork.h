//===- MatrixWork.h - What a rule's matrix operations are made of -*- C++ -*-===//
//
// Costs are sums over the products and functions of blocks that matrix operations expand to
// (MatrixBuilder.h).
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_DECIDE_MATRIXWORK_H
#define STEPC_PASSES_DECIDE_MATRIXWORK_H

#include "dialects/optim/Optim.h"
#include "passes/cost/Cluster.h"
#include "passes/cost/SideBySide.h"
#include "passes/decide/ChainBytes.h"

namespace stepc::decide {

/// A product or a function of each block, or of each slab in a group with slabs.
struct MatrixStep {
  bool isProduct = false;
  cost::BlockProduct shape = {}; ///< of a product
  cost::LaunchForm form = {};    ///< of a product
  /// Numbers of the products from whose results the operands of a product are computed.
  std::vector<size_t> after = {};
  int64_t flops = 0;    ///< floating-point operations that are executed
  int64_t scratch = 0;  ///< the most bytes that its kernels may take for a block
  int64_t bytes = 0;    ///< bytes of an element of the result
  int64_t elements = 0; ///< of a product: those of the result and of all different operands, summed
  int64_t elementsOfBlock = 0; ///< as `elements`, but only of values that have the block's extents
  /// Whether ranks add up what each slab contributes.
  bool isSummed = false;
  plan::ValueKind result = plan::ValueKind::Full;

  /// Elements per block that ranks add up: those of a product, 1 for a norm, 0 if nothing is summed.
  int64_t summed() const { return !isSummed ? 0 : isProduct ? shape.m * shape.n : 1; }
};

struct MatrixWork {
  /// Expands the matrix operations of a rule for blocks of these extents. If these are slabs, `cut` is the
  /// axis that they divide.
  MatrixWork(optim::RuleOp rule, const optim::MatrixExtents &extents,
             plan::Division::Axis cut = plan::Division::Rows);
  /// Expands the matrix operations of a rule for the blocks of a group, or for its slabs if it has some.
  MatrixWork(optim::RuleOp rule, const plan::Group &group)
      : MatrixWork(rule, optim::MatrixExtents(group), group.slabs.axis) {}

  std::vector<MatrixStep> steps;
  /// Bytes per element of the first operand of the last operation with products; 4 if no operation has any.
  int64_t sourceBytes = 4;

  bool multiplies() const { return llvm::any_of(steps, &isProduct); }
  static bool isProduct(const MatrixStep &step) { return step.isProduct; }
  /// Floating-point operations of all steps that are executed, and those if all results are whole.
  int64_t flops() const;
  int64_t fullFlops() const;
  /// The most bytes of scratch that the kernels of one step may take for a block.
  int64_t scratch() const;
  ChainBytes chain;
};

} // namespace stepc::decide

#endif

//===- ValidateBatch.cpp - Extents of products and reductions ------------===//

#include "runtime/plan/Checks.h"

#include <utility>

namespace stepc::plan {

static bool multiplies(const Batch &batch, const std::vector<Operand> &all) {
  if (all.size() < 3 || all.size() > 4)
    return false;
  const Operand &lhs = all[0], &rhs = all[1], &addend = all[2], &out = all.back();
  auto [m, k] = batch.transposeLhs ? std::pair(lhs.cols, lhs.rows) : std::pair(lhs.rows, lhs.cols);
  auto [l, n] = batch.transposeRhs ? std::pair(rhs.cols, rhs.rows) : std::pair(rhs.rows, rhs.cols);
  return k == l && out.rows == m && out.cols == n && (!batch.symmetric || m == n) &&
         (all.size() == 3 || (addend.rows == m && addend.cols == n));
}

static bool reduces(const std::vector<Operand> &all) {
  return all.size() == 2 && all[1].type == DType::F32 &&
         (all[1].rows == 1 || all[1].rows == all[0].rows) &&
         (all[1].cols == 1 || all[1].cols == all[0].cols) && (all[1].rows == 1 || all[1].cols == 1);
}

bool doExtentsAgree(const Command &command) {
  return command.kind == CommandKind::Product ? multiplies(command.batch, command.operands)
                                              : reduces(command.operands);
}

} // namespace stepc::plan

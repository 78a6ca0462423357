//===- Stepping.h - Modules at level 4, and what their steps do -*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_CODEGEN_STEPPING_H
#define STEPC_TEST_UNIT_CODEGEN_STEPPING_H

#include "dialects/optim/Optim.h"
#include "runtime/plan/Tables.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <bit>
#include <cmath>
#include <set>

namespace stepc::test {

/// A module at level 4, its groups stepped by strategies, those of Halves.h included; or an error.
class Scheduled {
public:
  /// `forced`: PATTERN=STRATEGY.
  Scheduled(const std::string &text, std::vector<std::string> forced, int64_t waves = 2);
  std::string text();

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string error;
};

/// Proves `made` with the runtime's tables but for one: the first that `isMeant` and that `change` changes, for one rank.
/// The proof's error, which has to come.
std::string
provenWithOneChanged(Scheduled &made,
                     llvm::function_ref<bool(const plan::Plan &, const plan::Table &)> isMeant,
                     llvm::function_ref<bool(const plan::Plan &, plan::RankTable &)> change);

/// What the ranks of the last step asked of their transports.
struct Asked {
  static inline std::set<std::vector<int32_t>> opened; // communicators, by their ranks
  static inline int64_t onTheWorld;                    // operations of exchanges
};

/// Each parameter and its states after three steps of a module with the rule of inputs/turns.mlir, put together
/// from the ranks, as bits.
using Values = std::vector<std::vector<uint32_t>>;
constexpr auto kNever = std::bit_cast<uint32_t>(NAN);
Values step(const std::string &text, const std::vector<std::string> &forced);

/// The mesh of inputs/turns.mlir, and one rank in its place.
inline constexpr const char *kMesh = R"(axes ["x"] sizes [4] ranks [0, 1, 2, 3])",
                            *kOneRank = R"(axes ["x"] sizes [1] ranks [0])";

} // namespace stepc::test

#endif

//===- Matrix.h - Products and functions of computed blocks -----*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_MATRIX_H
#define STEPC_RUNTIME_PLAN_COMMANDS_MATRIX_H

#include "runtime/plan/ProductForm.h"
#include "runtime/plan/commands/Effect.h"

#include <array>

namespace stepc::plan {

class ProgramChecks;

/// The order in which a product adds up. FusedChain is one chain of multiply-adds over increasing k, each
/// rounded once. RoundedChain also rounds each product before it is added. TensorCore adds groups of 16
/// steps of k as a GPU's tensor cores do.
enum class Accumulation : int64_t { FusedChain = 0, RoundedChain = 1, TensorCore = 2 };
template <>
inline constexpr auto kNames<Accumulation> =
    std::to_array<std::string_view>({"fused_chain", "rounded_chain", "tensorcore"});
/// An algorithm of cuBLASLt that computes a product in place of its kernels, if the library, the GPU and its
/// number of multiprocessors match. It computes one part of k after another, never several at once (split-K
/// 1).
struct PinnedAlgorithm {
  int64_t cublasLt = 0; // cublasLtGetVersion()
  int64_t chip = 0;     // 90: sm_90
  int64_t multiprocessors = 0;
  int64_t alignment = 0; // bytes that the address of each operand is a multiple of
  // The algorithm and its attributes (cublasLtMatmulAlgoConfigAttributes_t).
  int64_t algorithm = -1, tile = 0, stages = 0, swizzling = 0, customOption = 0;
  int64_t innerShape = 0, clusterShape = 0;
  int64_t workspaceBytes = 0; // that it may use for all blocks together
  auto operator<=>(const PinnedAlgorithm &) const = default;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("cublaslt", self.cublasLt);
    visit("chip", self.chip);
    visit("multiprocessors", self.multiprocessors);
    visit("alignment", self.alignment);
    visit("algorithm", self.algorithm);
    visit("tile", self.tile);
    visit("stages", self.stages);
    visit("swizzling", self.swizzling);
    visit("custom_option", self.customOption);
    visit("inner_shape", self.innerShape);
    visit("cluster_shape", self.clusterShape);
    visit("workspace", self.workspaceBytes);
  }
};

/// A kernel over `items` items of each computed block: item i of block slot s is number s · items + i.
struct BlockKernel {
  KernelNumber kernel;
  int64_t items = 1;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kernel", self.kernel);
    visit("items_per_block", self.items);
  }
};

/// What commands on computed blocks have in common. If the device cannot compute the command by itself, it
/// runs the kernels, one after another. Each kernel gets the scratch, then the command's operands.
struct MatrixCommand {
  TableNumber table; // of its computed blocks
  std::vector<BlockKernel> kernels;
  int64_t scratchBytes = 0; // of each block

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("table", self.table);
    visit("kernels", self.kernels);
    visit("scratch_bytes", self.scratchBytes);
  }
  /// Checks the table, the block kernels and the scratch, and that operands are batches of the table's
  /// blocks.
  std::string check(ProgramChecks &, const std::vector<const Operand *> &operands) const;
  void effects(const std::vector<const Operand *> &operands, Effects &) const;
};

/// Whether a kernel of the command works off lists of tiles (Grid::Lists).
bool takesLists(const Plan &plan, const MatrixCommand &command);

/// out = alpha · (lhs · rhs) + beta · addend + shift · I for every computed block, as
/// dialects/optim/OptimBatchOps.td defines it to the last bit.
struct Product : MatrixCommand {
  static constexpr std::string_view kName = "product";
  Operand lhs, rhs, out;
  std::optional<Operand> addend;
  Accumulation accumulation = Accumulation::FusedChain;
  double alpha = 1, beta = 0, shift = 0;
  bool transposeLhs = false, transposeRhs = false, symmetric = false;
  // Whether a device may begin the product together with the one before it. Products that join are of one
  // form, and none of them writes what another reads or writes.
  bool joins = false;
  std::vector<PinnedAlgorithm> pinned; // each for another library or GPU

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    MatrixCommand::fields(self, visit);
    visit("lhs", self.lhs);
    visit("rhs", self.rhs);
    visit("addend", self.addend);
    visit("out", self.out);
    visit("accumulation", self.accumulation);
    visit("alpha", self.alpha);
    visit("beta", self.beta);
    visit("shift", self.shift);
    visit("transpose_lhs", self.transposeLhs);
    visit("transpose_rhs", self.transposeRhs);
    visit("symmetric", self.symmetric);
    visit("joins", self.joins);
    visit("pinned", self.pinned);
  }
  /// lhs, rhs, the addend if there is one, out: the order in which kernels get them.
  std::vector<const Operand *> operands() const;
  /// m, n, k of one block's product.
  std::array<int64_t, 3> sizes() const {
    return {out.rows, out.cols, transposeLhs ? lhs.rows : lhs.cols};
  }
  bool doExtentsAgree() const;
  ProductForm form() const {
    return {lhs.type, rhs.type, out.type, transposeLhs, transposeRhs, symmetric};
  }
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;

private:
  std::string checkJoined(const ProgramChecks &) const;
  std::string checkJoinedTiles(ProgramChecks &) const;
};

/// A function of whole blocks, for every computed block (optim::BlockFunctionAttrInterface). Its kernels
/// alone know what it computes.
struct Apply : MatrixCommand {
  static constexpr std::string_view kName = "apply";
  std::string function; // what the function is, for people
  std::vector<Operand> sources;
  Operand out;
  int64_t flops = 0; // floating-point operations for one block

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    MatrixCommand::fields(self, visit);
    visit("function", self.function);
    visit("sources", self.sources);
    visit("out", self.out);
    visit("flops", self.flops);
  }
  /// The sources, then the out: the order in which kernels get them.
  std::vector<const Operand *> operands() const;
  std::string check(ProgramChecks &) const;
  void effects(const Plan &, Effects &) const;
};

} // namespace stepc::plan

#endif

//===- Operand.h - What a command reads or writes ---------------*- C++ -*-===//
#ifndef STEPC_RUNTIME_PLAN_COMMANDS_OPERAND_H
#define STEPC_RUNTIME_PLAN_COMMANDS_OPERAND_H

#include "runtime/plan/Places.h"

namespace stepc::plan {

struct Plan;

/// The lists of a plan from which commands name items.
enum class List { Kernels, Tables, Groups, Starts, Pools };

/// The number of an item of one list of the plan; -1: none. It is a type of its own, so that a walk over
/// fields knows what a number stands for.
template <List list> struct NumberIn {
  int64_t value = -1;

  constexpr NumberIn(int64_t value = -1) : value(value) {}
  constexpr operator int64_t() const { return value; }
  constexpr bool isNone() const { return value < 0; }
};
using KernelNumber = NumberIn<List::Kernels>;
using TableNumber = NumberIn<List::Tables>;
using GroupNumber = NumberIn<List::Groups>;
using StartNumber = NumberIn<List::Starts>;
using PoolNumber = NumberIn<List::Pools>;

/// The kinds of operands.
enum class OperandKind : int64_t {
  Workspace = 0,  ///< `bytes` bytes of the workspace, from byte `value`
  Scalars = 1,    ///< scalars in the workspace from byte `value`, `bytes` bytes per parameter
  Parameters = 2, ///< the shards of the parameters: a pointer for each of the plan's
  Gradients = 3,  ///< the shards of their gradients, also a pointer for each
  State = 4,      ///< the shards of state `value` of the rule, also a pointer for each
  Line = 5,       ///< as Workspace: a copy of the shards of a value per row, column or block
  Batch = 6,      ///< as Workspace: `rows` × `cols` of `type` for each computed block
};
template <>
inline constexpr auto kNames<OperandKind> = std::to_array<std::string_view>(
    {"workspace", "scalars", "parameters", "gradients", "state", "line", "batch"});
std::string_view describe(OperandKind kind); // "a part of the workspace", "scalars", …

struct Operand {
  OperandKind kind = OperandKind::Workspace;
  int64_t value = 0;
  int64_t bytes = 0;
  // Only for packed values: the program's start with which the value travels, and the value's number among
  // that start's tables. Parcels.h says where the value lies in the start's buffer.
  StartNumber start;
  int64_t traveller = 0;
  int64_t rows = 0, cols = 0; // Batch
  DType type = DType::F32;    // Batch
  // Only for batches in a pool; `value` and `bytes` are then the pool's.
  PoolNumber pool;
  int64_t member = 0;

  bool isShards() const {
    return kind == OperandKind::Parameters || kind == OperandKind::Gradients ||
           kind == OperandKind::State;
  }
  /// The tensor of a group whose shards the operand is. Only for shards.
  ShardsKind whose(const Group &group) const {
    return kind == OperandKind::Gradients ? ShardsKind::Gradient
           : kind == OperandKind::State   ? group.shardsOfState(value)
                                          : ShardsKind::Parameter;
  }
  /// The bytes of one block. Only for batches.
  int64_t blockBytes() const { return rows * cols * byteSize(type); }
  /// The type and kind of the operand's elements, for a group. Only for shards.
  State elements(const Plan &plan, const Group &group) const;

  /// Names the fields that an operand of this kind has, one after another.
  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("kind", self.kind);
    if (self.kind == OperandKind::State)
      return visit("value", self.value);
    if (self.isShards())
      return;
    visit("value", self.value);
    visit("bytes", self.bytes);
    if (self.kind == OperandKind::Scalars || self.kind == OperandKind::Line)
      return;
    visit("start", self.start);
    if (!self.start.isNone())
      visit("traveller", self.traveller);
    visit("pool", self.pool);
    if (!self.pool.isNone())
      visit("member", self.member);
    if (self.kind != OperandKind::Batch)
      return;
    visit("rows", self.rows);
    visit("cols", self.cols);
    visit("type", self.type);
  }
};

/// Whether two batches may share bytes. Members of one pool never do.
inline bool mayShareBytes(const Operand &a, const Operand &b) {
  bool isBeside = !a.pool.isNone() && a.pool == b.pool && a.member != b.member;
  return !isBeside && a.value < b.value + b.bytes && b.value < a.value + a.bytes;
}

} // namespace stepc::plan

#endif

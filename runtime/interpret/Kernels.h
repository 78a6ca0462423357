//===- Kernels.h - Kernels as records -----------------------------*- C++ -*-===//
//
// What a kernel of the target `interpret` computes. The compiler writes these records, and the runtime
// carries them out. A body is a list of operations on registers. They are the operations that pass
// kernels-expand-numerics leaves in the code for a CPU. Each kind of kernel is a struct with
//
// - `fields`, from which its bytes and its text are made;
// - `check`, which returns why the kernel cannot be carried out, or an empty string. It looks at registers,
//   operands, types and sizes;
// - `code`, which returns what carries the kernel out (Code.h). Only the runtime has its definition.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_INTERPRET_KERNELS_H
#define STEPC_RUNTIME_INTERPRET_KERNELS_H

#include "runtime/model/Fields.h"
#include "runtime/plan/TileLists.h"
#include "runtime/sums/Parts.h"

#include <memory>

namespace stepc::interpret {

class Code;

/// The type of an operation's operands. A register may hold any type. A 16-bit float is a word of 16 bits.
enum class Type : int64_t { I1 = 0, I16 = 1, I32 = 2, I64 = 3, F32 = 4, F64 = 5 };

/// The operations of arith and math that are left in an expanded body.
enum class Operation : int64_t {
  AddF,
  SubF,
  MulF,
  DivF,
  NegF,
  AbsF,
  Floor,
  Sqrt,
  Fma,
  MaximumF,
  MinimumF,
  CopySign,
  CompareF,
  AddI,
  SubI,
  MulI,
  AndI,
  OrI,
  XorI,
  ShiftLeft,
  ShiftRight,       ///< zeros come in
  ShiftRightSigned, ///< the sign comes in
  CompareI,
  Select,
  ExtendF,        ///< f32 to f64
  TruncateF,      ///< f64 to f32
  ExtendUnsigned, ///< from `type` to `to`, as are all operations below
  ExtendSigned,
  TruncateI,
  FloatToSigned,
  SignedToFloat,
};

/// How many registers an operation reads.
int64_t operandsOf(Operation operation);

/// One operation on all elements of a strip.
struct Instruction {
  Operation operation = Operation::AddF;
  Type type = Type::F32; ///< of the operands; of a Select, of the two to choose from
  Type to = Type::F32;   ///< of the result, for conversions
  int64_t predicate = 0; ///< of a comparison, as arith numbers them
  int64_t result = 0;    ///< a register that is none of the operands
  int64_t first = 0, second = 0, third = 0; ///< registers; of a Select the first is the condition

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("operation", self.operation);
    visit("type", self.type);
    visit("to", self.to);
    visit("predicate", self.predicate);
    visit("result", self.result);
    visit("first", self.first);
    visit("second", self.second);
    visit("third", self.third);
  }
};

/// A register that holds one number for all elements.
struct Constant {
  int64_t result = 0;
  Type type = Type::F32;
  int64_t bits = 0;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("result", self.result);
    visit("type", self.type);
    visit("bits", self.bits);
  }
};

/// The computation for each element.
struct Body {
  int64_t registers = 0;
  std::vector<Constant> constants;
  std::vector<Instruction> uniform; ///< run once per item: depends on constants and scalars only
  std::vector<Instruction> each;    ///< run for each strip of elements

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("registers", self.registers);
    visit("constants", self.constants);
    visit("uniform", self.uniform);
    visit("each", self.each);
  }
};

/// Where element (r, c) of a chunk lies in an operand.
enum class Reach : int64_t {
  Shards,        ///< local + r · local_stride + c in the shard of the parameter
  Staged,        ///< staged + r · staged_stride + c
  Block,         ///< one value per block: [per_block]
  Row,           ///< one value per row: [per_row + r · per_row_stride]
  Column,        ///< one value per column: [per_column + c]
  RowNumber,     ///< no operand: the row of the block, row + r
  ColumnNumber,  ///< no operand: the column of the block, col + c
  ElementNumber, ///< no operand: element + r · element_stride + c, an i64
};

/// A value that a kernel over chunks loads into a register, or stores from it.
struct ChunkValue {
  Reach reach = Reach::Staged;
  plan::DType type = plan::DType::F32;
  int64_t operand = 0; ///< its number in the kernel; -1 if it has none
  int64_t place = 0;   ///< the register

  bool isNumber() const { return reach >= Reach::RowNumber; }

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("reach", self.reach);
    visit("type", self.type);
    visit("operand", self.operand);
    visit("register", self.place);
  }
};

/// A column of the row of scalars (operand 0), and the register into which it is loaded.
struct ScalarColumn {
  int64_t column = 0, place = 0;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("column", self.column);
    visit("register", self.place);
  }
};

/// A kernel over chunks of shards or of computed blocks. All loads of an element come before its first store.
struct ChunkKernel {
  static constexpr std::string_view kName = "chunks";
  bool isOverShards = false;
  bool isFlat = false;        ///< the rows of a chunk are one run of elements
  std::vector<bool> isShards; ///< per operand: a list of pointers; false: a word in each row
  std::vector<ChunkValue> reads, writes;
  std::vector<ScalarColumn> columns;
  std::optional<int64_t> key; ///< the register of the parameter's key, an i64
  Body body;
  /// What is made of the values that the body computes, for each row or column of a chunk: as `writes[0]`
  /// reaches one per row or column.
  std::optional<plan::Reduction> reduction;
  /// With a reduction: how many exact sums of what a rank has it writes for each row, column or block. 0: it
  /// writes results.
  int64_t sums = 0;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("over_shards", self.isOverShards);
    visit("flat", self.isFlat);
    visit("shards", self.isShards);
    visit("reads", self.reads);
    visit("writes", self.writes);
    visit("columns", self.columns);
    visit("key", self.key);
    visit("body", self.body);
    visit("reduction", self.reduction);
    visit("sums", self.sums);
  }
  std::string check() const;
  std::unique_ptr<Code> code() const;
};

/// A kernel over parameters. `inputs` are the registers of the hyperparameters, then of step, rows, cols
/// and numel, then of numbers of the model, all f64. `outputs` are the registers from which the row of
/// scalars is stored, f32.
struct ParameterKernel {
  static constexpr std::string_view kName = "parameters";
  std::vector<int64_t> inputs, outputs;
  std::vector<int64_t> numbers; ///< how many numbers each operand behind the scalars has
  Body body;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("inputs", self.inputs);
    visit("outputs", self.outputs);
    visit("numbers", self.numbers);
    visit("body", self.body);
  }
  std::string check() const;
  std::unique_ptr<Code> code() const;
};

/// What a check says: "expected WHAT, found FOUND".
inline std::string expected(const std::string &what, int64_t found) {
  return "expected " + what + ", found " + std::to_string(found);
}
/// The check of numbers of rows, columns and steps.
std::string checkSizes(std::initializer_list<int64_t> sizes);

/// The kernel of a sum of contributions (plan::Sum).
struct SumKernel {
  static constexpr std::string_view kName = "sum";
  plan::DType type = plan::DType::F32;
  int64_t divisor = 1;
  std::optional<plan::Reduction> reduction;
  int64_t sums = 0; ///< with a reduction: how many exact sums each contribution has

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("type", self.type);
    visit("divisor", self.divisor);
    visit("reduction", self.reduction);
    visit("sums", self.sums);
  }
  std::string check() const {
    if (type == plan::DType::F64)
      return "expected a sum of at most 32 bits, found f64";
    if (reduction && (type != plan::DType::F32 || sums < 1))
      return "expected a reduction of parts of lines to f32, found another";
    return divisor > 0 ? std::string() : expected("a positive divisor", divisor);
  }
  std::unique_ptr<Code> code() const;
};

/// The kernel of plan::Collect.
struct CollectKernel {
  static constexpr std::string_view kName = "collect";
  plan::Reduction reduction = plan::Reduction::Sum;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("reduction", self.reduction);
  }
  std::string check() const { return {}; }
  std::unique_ptr<Code> code() const;
};

/// The only kernel of a product (plan::Product). The result is m × n, and each element sums over k steps.
/// The kernel needs no scratch.
struct ProductKernel {
  static constexpr std::string_view kName = "product";
  int64_t m = 0, n = 0, k = 0;
  plan::DType lhs = plan::DType::F32, rhs = plan::DType::F32, out = plan::DType::F32;
  std::optional<plan::DType> addend;
  bool transposeLhs = false, transposeRhs = false, symmetric = false;
  plan::Accumulation accumulation = plan::Accumulation::FusedChain;
  bool hasShift = false;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("m", self.m);
    visit("n", self.n);
    visit("k", self.k);
    visit("lhs", self.lhs);
    visit("rhs", self.rhs);
    visit("out", self.out);
    visit("addend", self.addend);
    visit("transpose_lhs", self.transposeLhs);
    visit("transpose_rhs", self.transposeRhs);
    visit("symmetric", self.symmetric);
    visit("accumulation", self.accumulation);
    visit("has_shift", self.hasShift);
  }
  bool isOnTensorCores() const { return accumulation == plan::Accumulation::TensorCore; }
  /// Rows of the result that one item computes. A tensor core's fragments have 16.
  int64_t rowsPerItem() const { return isOnTensorCores() ? 16 : 8; }
  int64_t itemsPerBlock() const { return (m + rowsPerItem() - 1) / rowsPerItem(); }
  std::string check() const {
    for (plan::DType each : {lhs, rhs, out, addend.value_or(out)})
      if (each == plan::DType::F64)
        return "expected operands of at most 32 bits, found f64";
    if (isOnTensorCores() && (lhs != rhs || lhs == plan::DType::F32))
      return "expected operands that are both bf16 or both f16 on tensor cores, found " +
             std::string(plan::name(lhs)) + " and " + std::string(plan::name(rhs));
    if (symmetric && m != n)
      return "expected a square result of a symmetric product, found " + std::to_string(m) + " x " +
             std::to_string(n);
    if (hasShift && !symmetric)
      return "expected no shift of a product that is not symmetric, found one";
    return checkSizes({m, n, k});
  }
  std::unique_ptr<Code> code() const;
};

/// The only kernel of #optim.block_reduce, for blocks of rows × cols. It needs no scratch.
struct ReduceKernel {
  static constexpr std::string_view kName = "reduce";
  sums::BlockReduction reduction;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    sums::BlockReduction::fields(self.reduction, visit);
  }
  int64_t itemsPerBlock() const { return reduction.items(sums::Phase::Whole); }
  std::string check() const {
    const auto &[kind, exponent, remains, type, rows, cols] = reduction;
    if (type == plan::DType::F64)
      return "expected a source of at most 32 bits, found f64";
    if (exponent < -1000 || exponent > 1000)
      return expected("an exponent from -1000 to 1000", exponent);
    constexpr int64_t kMostElements = int64_t(1) << 40; // as many an accumulator has room for
    if (std::string wrong = checkSizes({rows, cols}); !wrong.empty())
      return wrong;
    if (cols > 0 && rows > kMostElements / cols)
      return expected("at most 2^40 elements of a block", rows);
    return {};
  }
  std::unique_ptr<Code> code() const;
};

/// The only kernel of #optim.block_transpose, for blocks of rows × cols. It needs no scratch.
struct TransposeKernel {
  static constexpr std::string_view kName = "transpose";
  static constexpr int64_t kRowsPerItem = 32; ///< of the out
  plan::DType type = plan::DType::F32;
  int64_t rows = 0, cols = 0; ///< of the source

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("type", self.type);
    visit("rows", self.rows);
    visit("cols", self.cols);
  }
  int64_t itemsPerBlock() const { return (cols + kRowsPerItem - 1) / kRowsPerItem; }
  std::string check() const {
    if (type == plan::DType::F64)
      return "expected a source of at most 32 bits, found f64";
    return checkSizes({rows, cols});
  }
  std::unique_ptr<Code> code() const;
};

/// A kernel of lists of tiles (kernel_abi.h), as GPUs have them. It serves products of all shapes of a form.
struct TilesKernel {
  static constexpr std::string_view kName = "tiles";
  plan::ProductForm form;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("form", self.form);
  }
  std::string check() const { return plan::checkTileForm(form); }
  std::unique_ptr<Code> code() const;
};

/// The order is part of the serialized form.
using Kernel = std::variant<ChunkKernel, ParameterKernel, SumKernel, ProductKernel, ReduceKernel,
                            TilesKernel, CollectKernel, TransposeKernel>;

/// "chunks", "parameters", …
inline std::string_view name(const Kernel &kernel) {
  return std::visit([](const auto &each) { return each.kName; }, kernel);
}

/// A kernel with the name that it has in the plan.
struct NamedKernel {
  std::string name;
  Kernel kernel;

  template <typename Self, typename Visit> static void fields(Self &self, Visit &&visit) {
    visit("name", self.name);
    visit("kernel", self.kernel);
  }
};

/// The most registers of a body. A strip of all of them must fit in the thread's Registers (BodyCode.h).
inline constexpr int64_t kMostRegisters = 4096;

inline std::string check(const Kernel &kernel) {
  return std::visit([](const auto &each) { return each.check(); }, kernel);
}

/// All kernels of a plan as bytes, in the plan's order.
std::vector<uint8_t> encode(const std::vector<NamedKernel> &kernels);
/// Reads kernels from bytes. Checks each length against the bytes that are left, and each kernel by
/// `check`. Returns what is wrong, or an empty string.
std::string decode(const uint8_t *bytes, int64_t size, std::vector<NamedKernel> &kernels);

/// One kernel as lines of text, for people.
std::string toText(const NamedKernel &kernel);

} // namespace stepc::interpret

namespace stepc::plan {
template <>
inline constexpr auto kNames<interpret::Type> =
    std::to_array<std::string_view>({"i1", "i16", "i32", "i64", "f32", "f64"});
template <>
inline constexpr auto kNames<interpret::Operation> = std::to_array<std::string_view>(
    {"addf", "subf",     "mulf",     "divf",     "negf",   "absf",   "floor", "sqrt",
     "fma",  "maximumf", "minimumf", "copysign", "cmpf",   "addi",   "subi",  "muli",
     "andi", "ori",      "xori",     "shli",     "shrui",  "shrsi",  "cmpi",  "select",
     "extf", "truncf",   "extui",    "extsi",    "trunci", "fptosi", "sitofp"});
template <>
inline constexpr auto kNames<interpret::Reach> =
    std::to_array<std::string_view>({"shards", "staged", "block", "row", "column", "row_number",
                                     "column_number", "element_number"});
} // namespace stepc::plan

#endif

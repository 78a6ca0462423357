//===- PackKernel.cpp - Operands into panels -------------------------------===//

#include "passes/kernels/products/ProductKernels.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// How one operand is packed, whatever its shape: in panels of `used` lines of the product (rows of the left
/// operand, columns of the right one) that take `stride` numbers per step of k.
struct Form {
  Type type;
  int64_t used, stride;
  bool alongK; ///< numbers of one line are neighbours in memory, not those of one step

  // An item is groupPanels panels by chunk steps. If steps are rows of memory, several panels of few steps
  // make whole cache lines and pages. Otherwise one panel is a few long rows.
  int64_t groupPanels() const { return alongK ? 1 : 8; }
  int64_t chunk() const { return alongK ? 512 : 128; }
  int64_t items(int64_t panels, int64_t k) const {
    return ceilDivide(panels, groupPanels()) * ceilDivide(k, chunk());
  }
};

/// An operand of one shape, with its sizes as values: `extent` lines by k steps.
struct Side : Form {
  Value extent, k, panels, groups;

  Side(VectorBuilder &b, const Form &form, Value extent, Value k, int64_t lines)
      : Form(form), extent(extent), k(k), panels(b.quotientUp(extent, lines)),
        groups(b.quotientUp(panels, groupPanels())) {}
  Value items(VectorBuilder &b) const { return b.mul(groups, b.quotientUp(k, chunk())); }
};

/// square(first element of a line, k, last, to, stride): transposes `lanes` steps of `lanes` lines, which are
/// k elements apart in memory, into `to`, where a step takes `stride` numbers. Lines after number `last`
/// repeat it. A chip has one per type.
LLVM::LLVMFuncOp squareFunction(SymbolTable &symbols, const Tiling &tiling, Type type,
                                Location loc) {
  std::string name = "stepc_product_square_" + tiling.chip() + "_" + typeName(type);
  if (auto known = findKernel(symbols, name))
    return known;
  VectorBuilder b(symbols.getOp()->getContext(), loc);
  Type i64 = b.getI64Type();
  auto function = startKernel(symbols, name, {b.pointer, i64, i64, b.pointer, i64}, b);
  function.setNoInline(true);
  auto arguments = function.getArguments();
  Value from = arguments[0], k = arguments[1], last = arguments[2], to = arguments[3];
  SmallVector<Value> rows;
  for (int64_t i = 0; i < tiling.lanes; ++i)
    rows.push_back(b.read(type, b.element(from, type, b.mul(b.smaller(last, i), k)), tiling.lanes));
  for (auto [i, column] : llvm::enumerate(b.transpose(rows)))
    b.write(b.getF32Type(), column, b.address(to, b.getF32Type(), b.mul(arguments[4], int64_t(i))));
  return function;
}

class Packer {
public:
  using SquareFunction = function_ref<LLVM::LLVMFuncOp(Type)>;
  Packer(VectorBuilder &builder, int64_t lanes, SquareFunction square)
      : b(builder), lanes(lanes), square(square) {}

  /// Packs item number `item` of one slot of an operand: from the slot's block into its panels.
  void pack(const Side &side, Value item, Value source, Value panels) {
    Value group = b.remainder(item, side.groups), chunk = b.quotient(item, side.groups);
    Value k0 = b.mul(chunk, side.chunk()), k1 = b.smaller(b.add(k0, side.chunk()), side.k);
    Value p0 = b.mul(group, side.groupPanels());
    Value p1 = b.smaller(b.add(p0, side.groupPanels()), side.panels);
    b.loop(p0, p1, 1, [&](Value panel) {
      Value line = b.mul(panel, side.used);
      Value to = b.address(panels, b.getF32Type(), b.mul(b.mul(panel, side.k), side.stride));
      if (side.alongK)
        alongK(side, line, k0, k1, source, to);
      else
        alongLines(side, line, k0, k1, source, to);
    });
  }

private:
  void alongLines(const Side &side, Value line, Value k0, Value k1, Value source, Value to) {
    Value whole = b.atMost(b.add(line, side.stride), side.extent);
    b.when(
        whole,
        [&] {
          auto copy = [&](Value first, int64_t steps) {
            Value from = b.element(source, side.type, b.add(b.mul(first, side.extent), line));
            Value toStep = b.address(to, b.getF32Type(), b.mul(first, side.stride));
            for (int64_t step = 0; step < steps; ++step) {
              if (step > 0)
                from = b.element(from, side.type, side.extent);
              for (int64_t i = 0; i < side.stride; i += lanes)
                b.write(b.getF32Type(), b.read(side.type, b.element(from, side.type, i), lanes),
                        b.address(toStep, b.getF32Type(), step * side.stride + i));
            }
          };
          // LLVM does not unroll a loop whose strides it does not know.
          constexpr int64_t kSteps = 4;
          Value rest = b.sub(k1, b.remainder(k1, kSteps)); // k0 is a multiple of kSteps
          b.loop(k0, rest, kSteps, [&](Value step) { copy(step, kSteps); });
          b.loop(rest, k1, 1, [&](Value step) { copy(step, 1); });
        },
        [&] { oneByOne(side, line, k0, k1, source, to); });
  }

  void alongK(const Side &side, Value line, Value k0, Value k1, Value source, Value to) {
    b.when(
        b.atMost(b.add(k0, lanes), k1),
        [&] {
          Value lastStep = b.add(k1, -lanes);
          b.loop(k0, k1, lanes, [&](Value at) {
            // The last square may overlap the one before, and then writes the same numbers again.
            Value step = b.smaller(at, lastStep);
            Value toStep = b.address(to, b.getF32Type(), b.mul(step, side.stride));
            // Lines past the end repeat the last line. Their results are not stored. No tile reads lines from
            // number `used` on.
            Value last = b.smaller(b.add(b.sub(side.extent, line), -1), side.used - 1);
            for (int64_t first = 0; first < side.used; first += lanes) {
              Value row = b.add(line, b.smaller(last, first));
              Value from = b.element(source, side.type, b.add(b.mul(row, side.k), step));
              Value left = b.larger(b.add(last, -first), b.constant(0));
              LLVM::CallOp::create(b, b.loc, square(side.type),
                                   ValueRange{from, side.k, left,
                                              b.address(toStep, b.getF32Type(), first),
                                              b.constant(side.stride)});
            }
          });
        },
        [&] { oneByOne(side, line, k0, k1, source, to); });
  }

  void oneByOne(const Side &side, Value line, Value k0, Value k1, Value source, Value to) {
    b.loop(0, side.used, 1, [&](Value i) {
      Value row = b.smaller(b.add(line, i), b.add(side.extent, -1));
      b.loop(k0, k1, 1, [&](Value step) {
        Value from = b.element(source, side.type,
                               side.alongK ? b.add(b.mul(row, side.k), step)
                                           : b.add(row, b.mul(step, side.extent)));
        b.write(b.getF32Type(), b.read(side.type, from, 0),
                b.address(to, b.getF32Type(), b.add(b.mul(step, side.stride), i)));
      });
    });
  }

  VectorBuilder &b;
  int64_t lanes;
  SquareFunction square;
};

} // namespace

Kernel packKernel(SymbolTable &symbols, const ProductSpec &spec) {
  const Tiling &tiling = spec.tiling;
  Form left{spec.lhs, tiling.tileRows, tiling.rowStride, !spec.transposeLhs};
  Form right{spec.rhs, tiling.tileCols, tiling.tileCols, spec.transposeRhs};
  int64_t items = left.items(tiling.rowPanels, tiling.k) + right.items(tiling.colPanels, tiling.k);
  std::string types =
      llvm::formatv("{0}{1}_{2}{3}", typeName(spec.lhs), spec.transposeLhs ? "t" : "",
                    typeName(spec.rhs), spec.transposeRhs ? "t" : "");
  auto emit = [&](VectorBuilder &b, LLVM::LLVMFuncOp kernel) {
    Value arguments = kernel.getArgument(0), scratch = b.argument(arguments, kScratch);
    Value lhs = b.argument(arguments, kLhs), rhs = b.argument(arguments, kRhs);
    Value m = shapeNumber(kernel, 0), n = shapeNumber(kernel, 1), k = shapeNumber(kernel, 2);
    TilingValues shape(b, tiling, m, n, k);
    Side leftSide(b, left, m, k, tiling.tileRows), rightSide(b, right, n, k, tiling.tileCols);
    Value leftItems = leftSide.items(b), all = b.add(leftItems, rightSide.items(b));
    auto square = [&](Type type) { return squareFunction(symbols, tiling, type, spec.loc); };
    Packer packer(b, tiling.lanes, square);
    b.loop(kernel.getArgument(1), kernel.getArgument(2), 1, [&](Value at) {
      Value slot = b.quotient(at, all), item = b.remainder(at, all);
      Value panels = b.address(scratch, b.getF32Type(), b.mul(slot, shape.scratchElements));
      Value isLeft = b.atMost(b.add(item, 1), leftItems);
      b.when(
          isLeft,
          [&] {
            Value source = b.element(lhs, left.type, b.mul(slot, b.mul(m, k)));
            packer.pack(leftSide, item, source, panels);
          },
          [&] {
            Value source = b.element(rhs, right.type, b.mul(slot, b.mul(n, k)));
            packer.pack(rightSide, b.sub(item, leftItems), source,
                        b.address(panels, b.getF32Type(), shape.rightOffset));
          });
    });
  };
  // A kernel is always called with as many operands, so products with an addend have one of their own.
  return {
      kernelOfShape(symbols,
                    llvm::formatv("stepc_product_pack_{0}_{1}x{2}x{3}_{4}{5}", tiling.chip(),
                                  tiling.m, tiling.n, tiling.k, types, spec.addend ? "_plus" : "")
                        .str(),
                    "stepc_product_pack_" + tiling.chip() + "_" + types,
                    {tiling.m, tiling.n, tiling.k}, spec.loc, emit),
      items};
}

} // namespace stepc::kernels

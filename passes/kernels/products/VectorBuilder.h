//===- VectorBuilder.h - Vectors of the storage types -----------*- C++ -*-===//
//
// Adds to KernelBuilder what kernels of products and reductions need: masks, transposes in registers, and
// vectors that are f32 in registers and bf16, f16 or f32 in memory.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_KERNELS_PRODUCTS_VECTORBUILDER_H
#define STEPC_PASSES_KERNELS_PRODUCTS_VECTORBUILDER_H

#include "passes/kernels/KernelBuilder.h"

namespace stepc::kernels {

class VectorBuilder : public KernelBuilder {
public:
  using Value = mlir::Value;
  using KernelBuilder::KernelBuilder;

  //===--- integers ---===//
  Value sub(Value a, Value b) { return mlir::arith::SubIOp::create(*this, loc, a, b); }
  /// Quotients and remainders of values that are not negative, by positive ones.
  Value quotient(Value a, int64_t b);
  Value remainder(Value a, int64_t b);
  Value quotient(Value a, Value b) { return mlir::arith::DivUIOp::create(*this, loc, a, b); }
  Value remainder(Value a, Value b) { return mlir::arith::RemUIOp::create(*this, loc, a, b); }
  /// Quotients that are rounded up.
  Value quotientUp(Value a, int64_t b) { return quotient(add(a, b - 1), b); }
  Value quotientUp(Value a, Value b) { return quotient(add(add(a, b), -1), b); }
  Value add(Value a, int64_t b) { return b == 0 ? a : KernelBuilder::add(a, constant(b)); }
  Value mul(Value a, int64_t b) { return b == 1 ? a : KernelBuilder::mul(a, constant(b)); }
  using KernelBuilder::add;
  using KernelBuilder::mul;
  Value smaller(Value a, Value b) { return mlir::arith::MinSIOp::create(*this, loc, a, b); }
  Value smaller(Value a, int64_t b) { return smaller(a, constant(b)); }
  Value larger(Value a, Value b) { return mlir::arith::MaxSIOp::create(*this, loc, a, b); }
  Value atMost(Value a, Value b);
  Value both(Value a, Value b) { return mlir::arith::AndIOp::create(*this, loc, a, b); }

  //===--- control ---===//
  /// The value of the branch that is taken.
  Value choose(Value condition, llvm::function_ref<Value()> then,
               llvm::function_ref<Value()> otherwise);
  /// A loop that carries one value; the body returns its next.
  Value fold(Value first, Value last, int64_t step, Value start,
             llvm::function_ref<Value(Value, Value)> body);
  using KernelBuilder::loop;
  void loop(int64_t first, int64_t last, int64_t step, llvm::function_ref<void(Value)> body) {
    loop(constant(first), constant(last), step, body);
  }

  //===--- f32 in registers, `type` in memory ---===//
  mlir::VectorType vector(int64_t lanes) { return mlir::VectorType::get({lanes}, getF32Type()); }
  /// A constant of type f32, or a vector with this number in all lanes.
  Value number(mlir::Type type, float value);
  Value broadcast(Value scalar, int64_t lanes) {
    return mlir::vector::BroadcastOp::create(*this, loc, vector(lanes), scalar);
  }
  /// Two numbers of f32, from an argument that is stepc_factors or stepc_shift instead of an address.
  std::pair<Value, Value> factors(Value word);
  /// A number or a vector of f32, times a number.
  Value scaled(Value x, Value factor);
  /// The address of element `index` of an array of `type`. bf16 is moved as i16, because not every chip has
  /// loads of it.
  Value element(Value base, mlir::Type type, Value index) {
    return address(base, memoryType(type), index);
  }
  Value element(Value base, mlir::Type type, int64_t index) {
    return address(base, memoryType(type), index);
  }
  /// The type in which an element is loaded and stored. `extend` makes f32 (or a vector) of its bits.
  /// `narrow` makes its bits of f32, rounded to nearest, ties to even.
  mlir::Type memoryType(mlir::Type type) { return type.isF32() ? type : mlir::Type(getI16Type()); }
  Value extend(mlir::Type type, Value bits);
  Value narrow(mlir::Type type, Value value);
  /// f32 (or a vector of `lanes` of it, lanes > 0) from memory of `type`. Lanes that the mask
  /// leaves out are 0.
  Value read(mlir::Type type, Value from, int64_t lanes, Value mask = {});
  /// Rounds to nearest even and writes.
  void write(mlir::Type type, Value value, Value to, Value mask = {});
  /// Lane i of the result says whether first + i < last (signed).
  Value lanesBelow(Value first, Value last, int64_t lanes);

  Value fusedOrNot(Value a, Value b, Value c, bool fused);
  /// lanes vectors of lanes numbers: result[i][j] = rows[j][i].
  llvm::SmallVector<Value> transpose(llvm::ArrayRef<Value> rows);
  /// `leading` gives the first `lanes` numbers of a vector, `slice` gives `lanes` numbers from number `first`
  /// on.
  Value leading(Value vector, int64_t lanes) { return slice(vector, 0, lanes); }
  Value slice(Value vector, int64_t first, int64_t lanes);

  /// f32 elements on the stack, aligned for vectors; the builder must stand in the entry block.
  Value stack(int64_t elements);

private:
  Value shuffle(Value a, Value b, llvm::function_ref<int64_t(int64_t)> lane);
};

/// Returns the kernel `name` of one shape. It calls the function `shared` of all shapes, with the kernel's
/// arguments and then `numbers`. If the module lacks that function, `emit` writes it. The first shapes get a
/// copy of the function with their numbers as constants, which is faster by some percent. All others call it,
/// so the code grows by a few instructions per shape.
mlir::LLVM::LLVMFuncOp
kernelOfShape(mlir::SymbolTable &symbols, llvm::StringRef name, llvm::StringRef shared,
              llvm::ArrayRef<int64_t> numbers, mlir::Location loc,
              llvm::function_ref<void(VectorBuilder &, mlir::LLVM::LLVMFuncOp)> emit);
/// Argument number `index` after a kernel's own, of a function of all shapes.
inline mlir::Value shapeNumber(mlir::LLVM::LLVMFuncOp shared, unsigned index) {
  constexpr unsigned kKernelArguments = 3;
  return shared.getArgument(kKernelArguments + index);
}

/// findKernel returns the kernel `name`, or null if the module lacks it. startKernel begins the kernel; the
/// builder then stands before its return.
mlir::LLVM::LLVMFuncOp findKernel(mlir::SymbolTable &symbols, llvm::StringRef name);
mlir::LLVM::LLVMFuncOp startKernel(mlir::SymbolTable &symbols, llvm::StringRef name,
                                   llvm::ArrayRef<mlir::Type> arguments, VectorBuilder &builder);

} // namespace stepc::kernels

#endif

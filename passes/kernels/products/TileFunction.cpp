//===- TileFunction.cpp - One tile in registers ----------------------------===//

#include "passes/kernels/products/ProductKernels.h"

using namespace mlir;

namespace stepc::kernels {

LLVM::LLVMFuncOp tileFunction(SymbolTable &symbols, const ProductSpec &spec, int64_t cols) {
  const Tiling &tiling = spec.tiling;
  // Packed operands are always f32, so all products of a chip share this function.
  std::string name = "stepc_product_tile_" + tiling.chip() + "_" + std::to_string(cols);
  if (auto known = findKernel(symbols, name))
    return known;
  VectorBuilder builder(symbols.getOp()->getContext(), spec.loc);
  Type pointer = builder.pointer, f32 = builder.getF32Type();
  auto function =
      startKernel(symbols, name, {pointer, pointer, builder.getI64Type(), pointer}, builder);
  // If it were inlined, its registers would compete with those of the loops around it.
  function.setNoInline(true);
  auto arguments = function.getArguments();
  Value left = arguments[0], right = arguments[1], k = arguments[2], tile = arguments[3];

  int64_t vectors = cols / tiling.lanes;
  VectorType type = builder.vector(tiling.lanes);
  SmallVector<Value> zeros(tiling.tileRows * vectors, builder.number(type, 0.0f));
  auto loop =
      scf::ForOp::create(builder, builder.loc, builder.constant(0), k, builder.constant(1), zeros);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value step = loop.getInductionVar();
    Value leftStep = builder.address(left, f32, builder.mul(step, tiling.rowStride));
    Value rightStep = builder.address(right, f32, builder.mul(step, tiling.tileCols));
    SmallVector<Value> columns, sums;
    for (int64_t j = 0; j < vectors; ++j)
      columns.push_back(
          builder.read(f32, builder.address(rightStep, f32, j * tiling.lanes), tiling.lanes));
    for (int64_t i = 0; i < tiling.tileRows; ++i) {
      Value row =
          builder.broadcast(builder.load(f32, builder.address(leftStep, f32, i)), tiling.lanes);
      for (int64_t j = 0; j < vectors; ++j)
        sums.push_back(builder.fusedOrNot(row, columns[j],
                                          loop.getRegionIterArgs()[i * vectors + j], tiling.fused));
    }
    scf::YieldOp::create(builder, builder.loc, sums);
  }
  for (int64_t i = 0; i < tiling.tileRows; ++i)
    for (int64_t j = 0; j < vectors; ++j)
      builder.write(f32, loop.getResult(i * vectors + j),
                    builder.address(tile, f32, i * tiling.tileCols + j * tiling.lanes));
  return function;
}

} // namespace stepc::kernels

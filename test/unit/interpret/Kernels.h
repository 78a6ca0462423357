//===- Kernels.h - A small kernel ---------------------------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_INTERPRET_KERNELS_H
#define STEPC_TEST_UNIT_INTERPRET_KERNELS_H

#include "runtime/interpret/Kernels.h"

namespace stepc::interpret {

/// param = param - lr · grad, over shards. Operand 0 is the scalars, 1 the parameter, 2 the gradient.
inline NamedKernel makeDescent() {
  ChunkKernel kernel;
  kernel.isOverShards = true;
  kernel.isShards = {false, true, true};
  kernel.reads = {{Reach::Shards, plan::DType::F32, 1, 1}, {Reach::Shards, plan::DType::F32, 2, 2}};
  kernel.columns = {{0, 0}};
  kernel.writes = {{Reach::Shards, plan::DType::F32, 1, 2}};
  kernel.body.registers = 4;
  Instruction product, difference;
  product.operation = Operation::MulF;
  product.result = 3;
  product.first = 0;
  product.second = 2;
  difference.operation = Operation::SubF;
  difference.result = 2;
  difference.first = 1;
  difference.second = 3;
  kernel.body.each = {product, difference};
  return {"descent", kernel};
}

} // namespace stepc::interpret

#endif

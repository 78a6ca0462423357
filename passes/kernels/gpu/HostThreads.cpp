//===- HostThreads.cpp - A block's threads, one after another --------------===//

#include "passes/kernels/gpu/GpuKernels.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// Which thread of which block is meant.
struct Thread {
  Value block, thread;
};

} // namespace

/// A copy of the kernel's body for one thread, where the builder stands.
static void emitThread(KernelBuilder &b, gpu::GPUFuncOp kernel, IRMapping mapping, Thread at) {
  auto index = [&](Value number) -> Value {
    return arith::IndexCastOp::create(b, b.loc, b.getIndexType(), number);
  };
  Value block = index(at.block), thread = index(at.thread);
  auto replace = [](Operation *op, Value by) {
    op->getResult(0).replaceAllUsesWith(by);
    op->erase();
  };
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    Operation *copy = b.clone(op, mapping);
    SmallVector<Operation *> questions;
    copy->walk([&](Operation *inner) {
      if (isa<gpu::BlockIdOp, gpu::ThreadIdOp>(inner))
        questions.push_back(inner);
    });
    for (Operation *question : questions) {
      Value by = isa<gpu::BlockIdOp>(question) ? block : thread;
      if (question == copy)
        mapping.map(op.getResult(0), by);
      replace(question, by);
    }
  }
}

LLVM::LLVMFuncOp threadsOnHost(gpu::GPUFuncOp kernel, ModuleOp module) {
  KernelBuilder b(kernel.getContext(), kernel.getLoc());
  LLVM::LLVMFuncOp made = beginKernel(module, kernel.getName(), b);
  Value list = made.getArgument(0), first = made.getArgument(1), last = made.getArgument(2);
  // What is no pointer is the number of items.
  IRMapping mapping;
  bool takesChunks = true;
  for (BlockArgument argument : kernel.getArguments()) {
    bool isPointer = isa<LLVM::LLVMPointerType>(argument.getType());
    takesChunks &= isPointer;
    Value address = b.address(list, b.pointer, int64_t(argument.getArgNumber()));
    mapping.map(argument, isPointer ? b.load(argument.getType(), address) : last);
  }
  Value threads = b.constant(kThreads);
  b.loop(first, last, 1, [&](Value item) {
    if (takesChunks)
      return b.loop(b.constant(0), threads, 1,
                    [&](Value thread) { emitThread(b, kernel, mapping, {item, thread}); });
    emitThread(b, kernel, mapping,
               {arith::DivUIOp::create(b, b.loc, item, threads),
                arith::RemUIOp::create(b, b.loc, item, threads)});
  });
  return made;
}

} // namespace stepc::kernels

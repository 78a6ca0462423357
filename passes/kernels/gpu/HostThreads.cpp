//===- HostThreads.cpp - A block's threads on this machine -----------------===//

#include "passes/kernels/gpu/GpuKernels.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace stepc::kernels {
namespace {

/// The numbers of a thread and of its GPU block. If threads wait for each other: also what the runtime
/// passes.
struct Thread {
  Value block, thread, state, memory;
  Value words; ///< the thread's own memory, for operands and results of matrices
};
constexpr int64_t kWords = 10;

/// Whether the runtime carries an operation out: threads do it together, or it goes on beside them.
bool isOfRuntime(Operation *op) {
  return isa<gpu::BarrierOp, gpu::ShuffleOp, NVVM::LdMatrixOp, NVVM::MmaOp, NVVM::CpAsyncOp,
             NVVM::CpAsyncCommitGroupOp, NVVM::CpAsyncWaitGroupOp>(op);
}

bool waits(gpu::GPUFuncOp kernel) {
  if (kernel.getNumWorkgroupAttributions())
    return true;
  return kernel
      .walk([](Operation *op) {
        return isOfRuntime(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

int64_t bytesOf(BlockArgument attribution) { return llvm::alignTo(bytesOfMemory(attribution), 64); }

/// Replaces a GPU's operations by operations of this machine and calls of the runtime.
class Replacer {
public:
  Replacer(KernelBuilder &b, gpu::GPUFuncOp kernel, ModuleOp module, Thread at)
      : b(b), kernel(kernel), module(module), at(at) {
    pointers.addReplacement(
        [](LLVM::LLVMPointerType type) { return LLVM::LLVMPointerType::get(type.getContext()); });
  }

  /// Replaces pointers to all address spaces by plain pointers, because this machine has one memory.
  /// Sanitizers watch only accesses through plain pointers.
  void replaceSpaces(Operation *op) {
    pointers.replaceElementsIn(op, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                               /*replaceTypes=*/true);
  }

  /// Makes a load or a store ask the runtime first, which returns the address to use.
  LogicalResult announce(Operation *op) {
    b.setInsertionPoint(op);
    auto store = dyn_cast<LLVM::StoreOp>(op);
    if (!store && !isa<LLVM::LoadOp>(op))
      return op->emitOpError("expected memory to be touched by loads and stores alone, which races "
                             "are looked for among");
    Type type = store ? store.getValue().getType() : op->getResult(0).getType();
    OpOperand &address = op->getOpOperand(store ? 1 : 0);
    Value bytes = b.constant(int64_t(DataLayout::closest(op).getTypeSize(type)));
    address.set(call("stepc_rt_emulated_access", b.pointer,
                     {address.get(), bytes, word(store ? 1 : 0), at.block, at.thread}));
    return success();
  }

  LogicalResult replace(Operation *op) {
    b.setInsertionPoint(op);
    Value by;
    if (isa<gpu::BlockIdOp>(op)) {
      by = index(at.block);
    } else if (isa<gpu::ThreadIdOp>(op)) {
      by = index(at.thread);
    } else if (auto address = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(op)) {
      by = addressOf(cast<BlockArgument>(address.getSource()));
    } else if (isa<gpu::BarrierOp>(op)) {
      call("stepc_rt_emulated_barrier", {}, {at.state, word(place++)});
    } else if (auto copy = dyn_cast<NVVM::CpAsyncOp>(op)) {
      if (copy.getSize() != 16)
        return op->emitOpError("expected a copy of 16 bytes, which is emulated, found ")
               << copy.getSize();
      Value bytes = copy.getCpSize() ? copy.getCpSize() : word(16);
      call("stepc_rt_emulated_copy_async", {}, {at.state, copy.getDst(), copy.getSrc(), bytes});
    } else if (isa<NVVM::CpAsyncCommitGroupOp>(op)) {
      call("stepc_rt_emulated_commit_group", {}, {at.state});
    } else if (auto wait = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op)) {
      call("stepc_rt_emulated_wait_group", {}, {at.state, word(int32_t(wait.getN()))});
    } else if (auto load = dyn_cast<NVVM::LdMatrixOp>(op)) {
      int32_t count = int32_t(load.getNum()), transposed = load.getLayout() == NVVM::MMALayout::col;
      if (count == 1 || load.getEltType() != NVVM::LdStMatrixEltType::B16)
        return op->emitOpError("expected two or four matrices of 16-bit elements, which are "
                               "emulated");
      call("stepc_rt_emulated_load_matrices", {},
           {at.state, word(place++), load.getPtr(), word(count), word(transposed), at.words});
      by = recordOfWords(0, cast<LLVM::LLVMStructType>(load.getType()));
    } else if (auto product = dyn_cast<NVVM::MmaOp>(op)) {
      return replaceProduct(product);
    } else {
      return replaceShuffle(cast<gpu::ShuffleOp>(op));
    }
    if (by)
      op->getResult(0).replaceAllUsesWith(by);
    op->erase();
    return success();
  }

private:
  Value index(Value number) {
    return arith::IndexCastOp::create(b, b.loc, b.getIndexType(), number);
  }
  Value word(int32_t value) { return arith::ConstantIntOp::create(b, b.loc, value, 32); }
  Value call(StringRef name, Type result, ValueRange arguments) {
    Type type = result ? result : Type(LLVM::LLVMVoidType::get(b.getContext()));
    LLVM::LLVMFuncOp function = declare(module, name, type, llvm::to_vector(arguments.getTypes()));
    auto made = LLVM::CallOp::create(b, b.loc, function, arguments);
    return result ? made.getResult() : Value();
  }

  /// The address of an array of a GPU block (an attribution). The arrays follow each other in the block's
  /// memory.
  Value addressOf(BlockArgument attribution) {
    int64_t offset = 0;
    for (BlockArgument before : kernel.getWorkgroupAttributions()) {
      if (before == attribution)
        break;
      offset += bytesOf(before);
    }
    Value address = b.address(at.memory, b.getI8Type(), b.constant(offset));
    return index(LLVM::PtrToIntOp::create(b, b.loc, b.getI64Type(), address));
  }

  Value wordAt(int64_t index) { return b.address(at.words, b.getI32Type(), index); }
  /// The thread's words, from number `first` on, as the struct that an operation returns.
  Value recordOfWords(int64_t first, LLVM::LLVMStructType type) {
    Value record = LLVM::PoisonOp::create(b, b.loc, type);
    for (auto [i, field] : llvm::enumerate(type.getBody()))
      record = LLVM::InsertValueOp::create(b, b.loc, record, b.load(field, wordAt(first + i)), i);
    return record;
  }

  LogicalResult replaceProduct(NVVM::MmaOp op) {
    bool half = op.getMultiplicandAPtxType() == NVVM::MMATypes::f16;
    NVVM::MMAShapeAttr shape = op.getShape();
    if ((!half && op.getMultiplicandAPtxType() != NVVM::MMATypes::bf16) || shape.getM() != 16 ||
        shape.getN() != 8 || shape.getK() != 16 || op.getOperands().size() != kWords ||
        op.resultPtxType() != NVVM::MMATypes::f32)
      return op.emitOpError("expected a product m16n8k16 of bf16 or f16 into f32, which is "
                            "emulated");
    for (auto [i, operand] : llvm::enumerate(op.getOperands()))
      b.store(operand, wordAt(i), 4);
    call("stepc_rt_emulated_multiply_matrices", {},
         {at.state, word(place++), word(half), at.words});
    op.getResult().replaceAllUsesWith(recordOfWords(6, cast<LLVM::LLVMStructType>(op.getType())));
    op.erase();
    return success();
  }

  LogicalResult replaceShuffle(gpu::ShuffleOp op) {
    Type type = op.getValue().getType(), i32 = b.getI32Type();
    APInt width;
    if (op.getMode() != gpu::ShuffleMode::XOR ||
        !matchPattern(op.getWidth(), m_ConstantInt(&width)) || width != 32 ||
        type.getIntOrFloatBitWidth() != 32)
      return op.emitOpError(
          "expected a shuffle of 32 bits by xor in a warp of 32, which is emulated");
    Value value = op.getValue();
    if (type != i32)
      value = arith::BitcastOp::create(b, b.loc, i32, value);
    Value result =
        call("stepc_rt_emulated_shuffle", i32, {at.state, word(place++), value, op.getOffset()});
    if (type != i32)
      result = arith::BitcastOp::create(b, b.loc, type, result);
    op.getShuffleResult().replaceAllUsesWith(result);
    op.getValid().replaceAllUsesWith(arith::ConstantIntOp::create(b, b.loc, 1, 1));
    op.erase();
    return success();
  }

  KernelBuilder &b;
  gpu::GPUFuncOp kernel;
  ModuleOp module;
  Thread at;
  AttrTypeReplacer pointers;
  int32_t place = 0;
};

/// Whether an operation loads or stores, and the runtime does not carry it out.
bool touchesMemory(Operation *op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return effects && !isOfRuntime(op) &&
         (effects.hasEffect<MemoryEffects::Read>() || effects.hasEffect<MemoryEffects::Write>());
}

/// Emits a copy of the kernel's body for one thread, at the builder's insertion point.
LogicalResult emitThread(KernelBuilder &b, gpu::GPUFuncOp kernel, ModuleOp module,
                         IRMapping mapping, Thread at, bool races) {
  Replacer replacer(b, kernel, module, at);
  SmallVector<Operation *> toReplace, toAnnounce;
  for (Operation &op : kernel.getBody().front().without_terminator())
    b.clone(op, mapping)->walk<WalkOrder::PreOrder>([&](Operation *copy) {
      replacer.replaceSpaces(copy);
      if (isOfRuntime(copy) ||
          isa<gpu::BlockIdOp, gpu::ThreadIdOp, memref::ExtractAlignedPointerAsIndexOp>(copy))
        toReplace.push_back(copy);
      else if (races && touchesMemory(copy))
        toAnnounce.push_back(copy);
    });
  OpBuilder::InsertionGuard keep(b);
  for (Operation *op : toAnnounce)
    if (failed(replacer.announce(op)))
      return failure();
  for (Operation *op : toReplace)
    if (failed(replacer.replace(op)))
      return failure();
  return success();
}

/// The arguments of a kernel, from its list of arguments. An argument that is no pointer is the number of
/// items.
IRMapping argumentsFrom(KernelBuilder &b, gpu::GPUFuncOp kernel, Value list, Value items) {
  IRMapping mapping;
  for (BlockArgument argument :
       kernel.getArguments().take_front(kernel.getFunctionType().getNumInputs())) {
    bool isPointer = isa<LLVM::LLVMPointerType>(argument.getType());
    mapping.map(argument, isPointer ? b.argument(list, argument.getArgNumber()) : items);
  }
  return mapping;
}

/// `llvm.func internal @NAME_thread`, which the runtime calls for every thread.
FailureOr<LLVM::LLVMFuncOp> threadFunction(gpu::GPUFuncOp kernel, ModuleOp module, bool races) {
  KernelBuilder b(kernel.getContext(), kernel.getLoc());
  b.setInsertionPointToEnd(module.getBody());
  Type i64 = b.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                          {b.pointer, b.pointer, i64, i64, b.pointer});
  auto function = LLVM::LLVMFuncOp::create(b, b.loc, (kernel.getName() + "_thread").str(), type,
                                           LLVM::Linkage::Internal, true);
  b.setInsertionPointToStart(function.addEntryBlock(b));
  b.setInsertionPoint(LLVM::ReturnOp::create(b, b.loc, ValueRange{}));
  auto given = function.getArguments();
  IRMapping mapping = argumentsFrom(b, kernel, given[1], {});
  Value words = LLVM::AllocaOp::create(b, b.loc, b.pointer, b.getI32Type(), b.constant(kWords), 16);
  if (failed(emitThread(b, kernel, module, mapping, {given[2], given[3], given[0], given[4], words},
                        races)))
    return failure();
  return function;
}

/// The kernel's name as bytes, for messages.
Value nameOf(KernelBuilder &b, gpu::GPUFuncOp kernel, ModuleOp module) {
  OpBuilder atStart(module.getBodyRegion());
  std::string text = kernel.getName().str() + '\0';
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), text.size());
  auto global =
      LLVM::GlobalOp::create(atStart, b.loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
                             (kernel.getName() + "_name").str(), b.getStringAttr(text));
  return LLVM::AddressOfOp::create(b, b.loc, global);
}

} // namespace

FailureOr<LLVM::LLVMFuncOp> threadsOnHost(gpu::GPUFuncOp kernel, ModuleOp module, bool races) {
  KernelBuilder b(kernel.getContext(), kernel.getLoc());
  LLVM::LLVMFuncOp made = beginKernel(module, kernel.getName(), b);
  Value list = made.getArgument(0), first = made.getArgument(1), last = made.getArgument(2);
  plan::LaunchShape launch = launchOf(kernel);
  if (launch.grid == plan::Grid::Resident || launch.cluster > 1 || launch.dynamicBytes > 0)
    return kernel.emitOpError(
        "expected a kernel that is emulated, without a resident grid, clusters "
        "and dynamic shared memory");
  // The detector of races keeps a thread's number in a byte.
  constexpr int64_t kMostWatched = 256;
  if (races && launch.threads > kMostWatched)
    return kernel.emitOpError("expected blocks of at most ")
           << kMostWatched << " threads, in which races are looked for, found " << launch.threads;
  moveLaunch(kernel, made);
  Value threads = b.constant(launch.threads);
  if (waits(kernel)) {
    FailureOr<LLVM::LLVMFuncOp> thread = threadFunction(kernel, module, races);
    if (failed(thread))
      return failure();
    int64_t bytes = 0;
    for (BlockArgument attribution : kernel.getWorkgroupAttributions())
      bytes += bytesOf(attribution);
    Value function = LLVM::AddressOfOp::create(b, b.loc, *thread);
    SmallVector<Value> arguments{
        function, list, first, last, threads, b.constant(bytes), nameOf(b, kernel, module)};
    LLVM::LLVMFuncOp emulate =
        declare(module, "stepc_rt_emulate", LLVM::LLVMVoidType::get(b.getContext()),
                llvm::map_to_vector(arguments, [](Value v) { return v.getType(); }));
    LLVM::CallOp::create(b, b.loc, emulate, arguments);
    return made;
  }
  IRMapping mapping = argumentsFrom(b, kernel, list, last);
  LogicalResult done = success();
  auto emit = [&](Value block, Value thread) {
    if (failed(emitThread(b, kernel, module, mapping, {block, thread, {}, {}, {}}, races)))
      done = failure();
  };
  b.loop(first, last, 1, [&](Value item) {
    if (launch.grid == plan::Grid::Items)
      return b.loop(b.constant(0), threads, 1, [&](Value thread) { emit(item, thread); });
    Value block = arith::DivUIOp::create(b, b.loc, item, threads);
    emit(block, arith::RemUIOp::create(b, b.loc, item, threads));
  });
  if (failed(done))
    return failure();
  return made;
}

} // namespace stepc::kernels

//===- HopperBuilder.cpp - Instructions beside threads ---------------------===//

#include "passes/kernels/gpu/HopperBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace stepc::kernels {

HopperBuilder::Values HopperBuilder::choose(Value condition, function_ref<Values()> then,
                                            function_ref<Values()> otherwise) {
  // The values' types are known when one branch is built, so the branches are built first.
  Block *blocks[2] = {new Block, new Block};
  SmallVector<Type> types;
  for (int i = 0; i < 2; ++i) {
    InsertionGuard guard(*this);
    setInsertionPointToStart(blocks[i]);
    Values values = i == 0 ? then() : otherwise();
    types = llvm::to_vector(ValueRange(values).getTypes());
    scf::YieldOp::create(*this, loc, values);
  }
  auto branch = scf::IfOp::create(*this, loc, types, condition, /*addThenBlock=*/false,
                                  /*addElseBlock=*/false);
  branch.getThenRegion().push_back(blocks[0]);
  branch.getElseRegion().push_back(blocks[1]);
  return branch.getResults();
}

HopperBuilder::Values HopperBuilder::loop(Value first, Value last, ArrayRef<Value> values,
                                          function_ref<Values(Value, ArrayRef<Value>)> body) {
  auto loop = scf::ForOp::create(*this, loc, first, last, word(1), values);
  InsertionGuard guard(*this);
  setInsertionPointToStart(loop.getBody());
  Values given(loop.getRegionIterArgs());
  Values next = body(loop.getInductionVar(), given);
  if (!values.empty()) // otherwise the loop already has its yield
    scf::YieldOp::create(*this, loc, next);
  return loop.getResults();
}

void HopperBuilder::syncWarp() { NVVM::SyncWarpOp::create(*this, loc, word(-1)); }

void HopperBuilder::syncWarpgroup(Value number) {
  NVVM::BarrierOp::create(*this, loc, Type(), number, word(128), {}, Value());
}

void HopperBuilder::syncCluster() {
  NVVM::ClusterArriveOp::create(*this, loc, getUnitAttr());
  NVVM::ClusterWaitOp::create(*this, loc, getUnitAttr());
}

Value HopperBuilder::elect() { return NVVM::ElectSyncOp::create(*this, loc, getI1Type(), Value()); }

void HopperBuilder::waitForKernels() {
  NVVM::GriddepcontrolOp::create(*this, loc, NVVM::GridDepActionKind::wait);
}

void HopperBuilder::letKernelsBegin() {
  NVVM::GriddepcontrolOp::create(*this, loc, NVVM::GridDepActionKind::launch_dependents);
}

void HopperBuilder::setRegisters(int64_t count, bool more) {
  NVVM::SetMaxRegisterOp::create(*this, loc, uint32_t(count),
                                 more ? NVVM::SetMaxRegisterAction::increase
                                      : NVVM::SetMaxRegisterAction::decrease);
}

Value HopperBuilder::at(Value base, Value bytes) { return address(base, getI8Type(), bytes); }
Value HopperBuilder::at(Value base, int64_t bytes) {
  return bytes == 0 ? base : address(base, getI8Type(), bytes);
}

Value HopperBuilder::loadInvariant(Type type, Value from, unsigned alignment) {
  return LLVM::LoadOp::create(*this, loc, type, from, alignment, /*isVolatile=*/false,
                              /*isNonTemporal=*/false, /*isInvariant=*/true);
}

void HopperBuilder::fenceTensorAccess() {
  auto space = NVVM::SharedSpaceAttr::get(getContext(), NVVM::SharedSpace::shared_cta);
  NVVM::FenceProxyOp::create(*this, loc, NVVM::ProxyKind::async_shared, space);
}

void HopperBuilder::acquireMap(Value map) {
  NVVM::FenceProxyAcquireOp::create(*this, loc, NVVM::MemScopeKind::GPU, map, word(128));
}

Value HopperBuilder::generic(Value pointer) {
  return LLVM::AddrSpaceCastOp::create(*this, loc, LLVM::LLVMPointerType::get(getContext()),
                                       pointer);
}

void HopperBuilder::loadBox(Value to, Value map, Value barrier, ArrayRef<Value> coordinates,
                            Value blocks) {
  constexpr unsigned kCluster = 7; // the address space of shared memory of a cluster
  if (blocks)
    to = LLVM::AddrSpaceCastOp::create(*this, loc,
                                       LLVM::LLVMPointerType::get(getContext(), kCluster), to);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      *this, loc, to, map, coordinates, barrier, ValueRange(), blocks, Value(),
      NVVM::TMALoadMode::TILE, /*isCTAOnly=*/!blocks, {}, Value());
}

void HopperBuilder::storeBox(Value map, Value from, ArrayRef<Value> coordinates) {
  NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(*this, loc, map, from, coordinates, Value(),
                                                     NVVM::TMAStoreMode::TILE, Value());
}

void HopperBuilder::commitStores() { NVVM::CpAsyncBulkCommitGroupOp::create(*this, loc); }

void HopperBuilder::waitStores(bool read) {
  NVVM::CpAsyncBulkWaitGroupOp::create(*this, loc, 0u, read ? getUnitAttr() : UnitAttr());
}

void HopperBuilder::storeMatrices(Value row, ArrayRef<Value> words, bool transposed) {
  auto shape = NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8);
  NVVM::StMatrixOp::create(*this, loc, row, words,
                           transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row, shape,
                           NVVM::LdStMatrixEltType::B16);
}

void HopperBuilder::initBarrier(Value barrier, int64_t arrivals) {
  NVVM::MBarrierInitOp::create(*this, loc, barrier, word(arrivals), Value());
}

void HopperBuilder::fenceBarriers() { NVVM::FenceMbarrierInitOp::create(*this, loc); }

void HopperBuilder::arriveExpecting(Value barrier, Value bytes) {
  NVVM::MBarrierArriveExpectTxOp::create(*this, loc, Type(), barrier, bytes,
                                         NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
}

void HopperBuilder::arriveAt(Value barrier, Value block, Value predicate) {
  Value there =
      NVVM::InlinePtxOp::create(*this, loc, TypeRange{getI32Type()}, ValueRange{barrier, block},
                                ValueRange(), "mapa.shared::cluster.u32 $0, $1, $2;", Value())
          .getResult(0);
  NVVM::InlinePtxOp::create(*this, loc, TypeRange(), ValueRange{there}, ValueRange(),
                            "mbarrier.arrive.shared::cluster.b64 _, [$0];", predicate);
}

void HopperBuilder::arrive(Value barrier, Value predicate) {
  NVVM::InlinePtxOp::create(*this, loc, TypeRange(), ValueRange{barrier}, ValueRange(),
                            "mbarrier.arrive.shared::cta.b64 _, [$0];", predicate);
}

void HopperBuilder::wait(Value barrier, Value parity, int64_t first, Value number) {
  constexpr int64_t kNanoseconds = 10000000; // after which the hardware looks again
  if (!stuck) {
    NVVM::MBarrierTryWaitParityOp::create(*this, loc, barrier, parity, word(kNanoseconds));
    return;
  }
  constexpr StringLiteral kText = R"({
.reg .pred done;
.reg .b64 begun, now;
mbarrier.try_wait.parity.shared.b64 done, [$0], $1, $2;
@done bra DONE;
mov.u64 begun, %globaltimer;
AGAIN:
mbarrier.try_wait.parity.shared.b64 done, [$0], $1, $2;
@done bra DONE;
mov.u64 now, %globaltimer;
sub.s64 now, now, begun;
setp.lt.u64 done, now, 2000000000;
@done bra AGAIN;
ld.global.b64 now, [$3];
setp.ne.s64 done, now, 0;
@done st.relaxed.sys.global.b32 [now], $4;
membar.sys;
trap;
DONE:
})";
  SmallVector<Value> operands = {barrier, parity, word(kNanoseconds), stuck,
                                 add(number, first + 1)};
  // Inline PTX of the dialect nvvm cannot name %globaltimer.
  LLVM::InlineAsmOp::create(*this, loc, TypeRange(), operands, kText, "l,r,r,l,r,~{memory}",
                            /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
}

Value HopperBuilder::descriptor(Value address, const Operand &operand) {
  // PTX ISA, "Matrix Descriptor Format" of wgmma: bits 0–13 are the address, 16–29 the leading and 32–45 the
  // stride byte offset, all shifted right by 4; bits 62–63 are the swizzle, 1 for 128 bytes.
  constexpr uint64_t kSwizzle = uint64_t(1) << 62;
  uint64_t leading = operand.alongK ? 16 : 8192, stride = 1024;
  Value low = LLVM::PtrToIntOp::create(*this, loc, getI32Type(), address);
  low = arith::ExtUIOp::create(*this, loc, getI64Type(), right(bitAnd(low, 0x3ffff), 4));
  return arith::OrIOp::create(
      *this, loc, low, constant(int64_t(kSwizzle | (stride >> 4) << 32 | (leading >> 4) << 16)));
}

Value HopperBuilder::step(Value descriptor, const Operand &operand, int64_t steps) {
  return steps == 0 ? descriptor : add(descriptor, constant(operand.step() * steps));
}

LLVM::LLVMStructType HopperBuilder::sumsType(int64_t columns) {
  return LLVM::LLVMStructType::getLiteral(getContext(),
                                          SmallVector<Type>(columns / 2, getF32Type()));
}

void HopperBuilder::fenceProducts() { NVVM::WgmmaFenceAlignedOp::create(*this, loc); }

Value HopperBuilder::multiply(Value sums, Value left, const Operand &leftForm, Value right,
                              const Operand &rightForm, int64_t columns, bool isFirst) {
  auto type = [](Type element) {
    return element.isF16() ? NVVM::WGMMATypes::f16 : NVVM::WGMMATypes::bf16;
  };
  auto shape = NVVM::MMAShapeAttr::get(getContext(), 64, int(columns), 16);
  return NVVM::WgmmaMmaAsyncOp::create(
      *this, loc, sumsType(columns), sums, left, right, shape, type(leftForm.type),
      type(rightForm.type), NVVM::WGMMATypes::f32,
      isFirst ? NVVM::WGMMAScaleOut::zero : NVVM::WGMMAScaleOut::one, NVVM::WGMMAScaleIn::one,
      NVVM::WGMMAScaleIn::one, leftForm.alongK ? NVVM::MMALayout::row : NVVM::MMALayout::col,
      rightForm.alongK ? NVVM::MMALayout::col : NVVM::MMALayout::row, NVVM::MMAIntOverflowAttr());
}

void HopperBuilder::commitProducts() { NVVM::WgmmaGroupSyncAlignedOp::create(*this, loc); }

void HopperBuilder::waitProducts(int64_t groups) {
  NVVM::WgmmaWaitGroupSyncOp::create(*this, loc, uint64_t(groups));
}

std::pair<Value, Value> HopperBuilder::extendPair(Type type, Value pair) {
  if (type.isF16()) {
    Value halves = LLVM::BitcastOp::create(*this, loc, VectorType::get({2}, type), pair);
    Value both = arith::ExtFOp::create(*this, loc, VectorType::get({2}, getF32Type()), halves);
    return {vector::ExtractOp::create(*this, loc, both, 0),
            vector::ExtractOp::create(*this, loc, both, 1)};
  }
  auto number = [&](Value bits) -> Value {
    return arith::BitcastOp::create(*this, loc, getF32Type(), bits);
  };
  return {number(left(pair, 16)), number(bitAnd(pair, word(int32_t(0xffff0000u))))};
}

Value HopperBuilder::narrowPair(Type type, Value low, Value high) {
  auto pair = VectorType::get({2}, type);
  Value halves =
      type.isF16() ? Value(NVVM::ConvertF32x2ToF16x2Op::create(*this, loc, pair, high, low, Value(),
                                                               NVVM::FPRoundingMode::RN))
                   : Value(NVVM::ConvertF32x2ToBF16x2Op::create(*this, loc, pair, high, low,
                                                                Value(), NVVM::FPRoundingMode::RN));
  return LLVM::BitcastOp::create(*this, loc, getI32Type(), halves);
}

} // namespace stepc::kernels

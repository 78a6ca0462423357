//===- WarpgroupProduct.cpp - Products of warpgroups -----------------------===//
//
// A GPU block has three warpgroups. One thread of the first loads; the two others multiply, each 64 rows of a
// tile. Shared memory has a ring of stages, each with 64 steps of k of both operands. The blocks of a cluster
// have tiles of the same columns, so each loads a part of the right operand for both. Results of 16 bits and
// of f32 are stored in two ways (WarpgroupResults.cpp, WarpgroupWideResults.cpp).
//
//===----------------------------------------------------------------------===//

#include "passes/cost/ProductRates.h"
#include "passes/kernels/gpu/WarpgroupKernel.h"
#include "passes/kernels/products/ProductKernels.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace stepc::kernels {

std::string WarpgroupForm::name() const {
  std::string text = "stepc_tiles_" + std::string(plan::name(product.lhs));
  text += isWide() ? "_to_" + std::string(plan::name(product.out)) : "";
  text += product.transposeLhs ? "_lt" : "";
  text += product.transposeRhs ? "_rt" : "";
  text += product.symmetric ? "_symmetric" : "";
  return cluster == plan::kTileBlocks ? text : text + "_cluster" + std::to_string(cluster);
}

std::optional<WarpgroupForm> warpgroupForm(exec::ProductOp op) {
  if (op.getAccumulation() != exec::Accumulation::TensorCore)
    return std::nullopt;
  plan::TiledOperands operands{
      op.getLhs().toPlan(), op.getRhs().toPlan(), {}, op.getOut().toPlan()};
  if (op.getAddend())
    operands.addend = op.getAddend()->toPlan();
  auto [m, n, k] = op.getSizes();
  cost::BlockProduct product{m, n, k, op.getSymmetric()};
  product.isTiled = plan::checkTiles(operands).empty();
  if (cost::kernelOf(cost::ProductKernel::Warpgroup, product) != cost::ProductKernel::Warpgroup)
    return std::nullopt;
  return WarpgroupForm{{operands.lhs.type, operands.rhs.type, operands.out.type,
                        op.getTransposeLhs(), op.getTransposeRhs(), op.getSymmetric()}};
}

bool areOfOneWarpgroupForm(exec::ProductOp one, exec::ProductOp other) {
  std::optional<WarpgroupForm> form = warpgroupForm(one), second = warpgroupForm(other);
  return form && second && form->product == second->product;
}

bool hasWarpgroups(gpu::GPUModuleOp code) {
  std::optional<ArrayAttr> targets = code.getTargets();
  auto target = targets ? dyn_cast<NVVM::NVVMTargetAttr>((*targets)[0]) : NVVM::NVVMTargetAttr();
  return target && target.getChip() == "sm_90a";
}

using plan::kTileColumns, plan::kTilePart, plan::kTileRows, plan::kTileSteps;

WarpgroupProduct::Stage WarpgroupProduct::next(Stage stage) {
  Value following = b.add(stage.number, 1);
  Value wraps = b.equal(following, kStages);
  return {b.select(wraps, b.word(0), following),
          b.select(wraps, b.bitXor(stage.parity, 1), stage.parity)};
}

WarpgroupProduct::Tile WarpgroupProduct::tileAt(Value number) {
  constexpr int64_t kWide = 4;
  auto four = VectorType::get({kWide}, b.getI32Type());
  Value entry = b.at(tiles, b.mul(number, int64_t(sizeof(stepc_product_tile))));
  Values words;
  for (int64_t half : {0, 1}) {
    Value part = b.loadInvariant(four, b.at(entry, half * 16), /*alignment=*/16);
    for (int64_t i = 0; i < kWide; ++i)
      words.push_back(vector::ExtractOp::create(b, b.loc, part, i));
  }
  Tile tile{words[0], words[1], words[2], words[3], words[4], words[5], words[6], words[7]};
  if (rank) {
    tile.row = b.add(tile.row, b.left(rank, 7));
    tile.stores = b.right(tile.stores, b.left(rank, 4));
  }
  return tile;
}

Value WarpgroupProduct::mapOf(Value problem, int64_t which) {
  Value offset = b.add(b.mul(problem, int64_t(sizeof(stepc_product_problem))),
                       which * int64_t(sizeof(stepc_tensor_map)));
  return b.generic(b.at(problems, offset));
}

/// Called once by each thread that uses maps, because a copy wrote them.
void WarpgroupProduct::acquireMaps() {
  b.loop(b.word(0), problemCount, {}, [&](Value problem, ArrayRef<Value>) {
    for (int64_t which = 0; which < 4; ++which)
      b.acquireMap(mapOf(problem, which));
    return Values();
  });
  b.syncWarp();
}

void WarpgroupProduct::setUp(LLVM::GlobalOp memory) {
  Value begin = LLVM::AddressOfOp::create(b, b.loc, memory);
  Value number = LLVM::PtrToIntOp::create(b, b.loc, b.getI32Type(), begin);
  base = b.at(begin, b.bitAnd(b.sub(b.word(0), number), kSwizzleBytes - 1));
  thread = NVVM::ThreadIdXOp::create(b, b.loc, b.getI32Type());
  // The shuffle tells the compiler that the number is equal in all lanes.
  warpgroup = NVVM::ShflOp::create(b, b.loc, b.getI32Type(), b.word(-1), b.right(thread, 7),
                                   b.word(0), b.word(31), NVVM::ShflKind::idx, UnitAttr());
  b.when(b.equal(thread, 0), [&] {
    constexpr int64_t kConsumerWarps = 8;
    for (int64_t stage = 0; stage < kStages; ++stage) {
      b.initBarrier(full(b.word(stage)), 1);
      b.initBarrier(empty(b.word(stage)), kConsumerWarps * form.cluster);
    }
    b.fenceBarriers();
  });
  b.syncWarp();
  Value cluster = NVVM::BlockIdXOp::create(b, b.loc, b.getI32Type());
  if (form.cluster > 1) {
    b.syncCluster();
    rank = NVVM::ClusterId::create(b, b.loc, b.getI32Type());
    cluster = b.right(cluster, 1);
  } else {
    NVVM::Barrier0Op::create(b, b.loc);
  }
  // All of the GPU's memory is read and written behind this.
  b.waitForKernels();
  b.letKernelsBegin();
  Value list = b.loadInvariant(VectorType::get({4}, b.getI32Type()),
                               b.at(lists, b.mul(cluster, int64_t(sizeof(stepc_tile_list)))), 16);
  first = vector::ExtractOp::create(b, b.loc, list, 0);
  last = vector::ExtractOp::create(b, b.loc, list, 1);
  problemCount = vector::ExtractOp::create(b, b.loc, list, 2);
}

void WarpgroupProduct::emit(gpu::GPUFuncOp function, LLVM::GlobalOp memory) {
  problems = function.getArgument(0);
  tiles = function.getArgument(1);
  lists = function.getArgument(2);
  setUp(memory);
  b.when(b.equal(warpgroup, 0), [&] { produce(); }, [&] { consume(); });
}

//===----------------------------------------------------------------------===//
// The thread that loads
//===----------------------------------------------------------------------===//

/// Loads columns of the right operand: the block's own part of them, for all blocks of the cluster.
void WarpgroupProduct::loadRight(Value to, Value map, Value barrier, const Tile &tile, Value step,
                                 int64_t columns) {
  int64_t own = columns / form.cluster;
  Value all;
  if (rank)
    all = arith::ConstantIntOp::create(b, b.loc, (1 << form.cluster) - 1, 16);
  for (int64_t part = 0; part < own / kTilePart; ++part) {
    Value offset = b.word(part * kPartBytes), column = b.add(tile.column, part * kTilePart);
    if (rank) {
      offset = b.add(b.mul(rank, own * kTileSteps * 2), offset);
      column = b.add(b.mul(rank, own), column);
    }
    Values place =
        right.alongK ? Values{step, column, tile.matrix} : Values{column, step, tile.matrix};
    b.loadBox(b.at(to, offset), map, barrier, place, all);
  }
}

WarpgroupProduct::Stage WarpgroupProduct::load(const Tile &tile, Stage stage) {
  Value lhs = mapOf(tile.problem, 0), rhs = mapOf(tile.problem, 1);
  Value isWhole = b.equal(tile.columns, kTileColumns);
  Value bytes = b.select(isWhole, b.word(kStageBytes), b.word(kStageBytes - kRightBytes / 2));
  Values after = b.loop(
      b.word(0), tile.steps, {stage.number, stage.parity}, [&](Value k, ArrayRef<Value> carried) {
        Stage now{carried[0], carried[1]};
        waitEmpty(now);
        Value barrier = full(now.number), to = stageAt(now.number), step = b.mul(k, kTileSteps);
        b.arriveExpecting(barrier, bytes);
        if (left.alongK)
          b.loadBox(to, lhs, barrier, {step, tile.row, tile.matrix});
        else
          for (int64_t part = 0; part < kTileRows / kTilePart; ++part) // the rows of each consumer
            b.loadBox(b.at(to, part * kPartBytes), lhs, barrier,
                      {b.add(tile.row, part * kTilePart), step, tile.matrix});
        Value behind = b.at(to, kLeftBytes);
        b.when(
            isWhole, [&] { loadRight(behind, rhs, barrier, tile, step, kTileColumns); },
            [&] { loadRight(behind, rhs, barrier, tile, step, kHalf); });
        Stage following = next(now);
        return Values{following.number, following.parity};
      });
  Stage following{after[0], after[1]};
  return form.isWide() ? following : loadAddend(tile, following);
}

/// Loads the addend, in stages of 128 columns of both consumers' rows.
WarpgroupProduct::Stage WarpgroupProduct::loadAddend(const Tile &tile, Stage stage) {
  Value addend = mapOf(tile.problem, 3);
  Value runs =
      b.select(b.isSet(tile.options, STEPC_TILE_HAS_ADDEND), b.right(tile.columns, 7), b.word(0));
  Values after = b.loop(
      b.word(0), runs, {stage.number, stage.parity}, [&](Value run, ArrayRef<Value> carried) {
        Stage now{carried[0], carried[1]};
        waitEmpty(now);
        Value barrier = full(now.number), to = stageAt(now.number);
        b.arriveExpecting(barrier, b.word(4 * kPartBytes));
        for (int64_t across = 0; across < 2; ++across)
          for (int64_t down = 0; down < 2; ++down) {
            Value column = b.add(tile.column, b.add(b.mul(run, 2 * kTilePart), across * kTilePart));
            b.loadBox(b.at(to, (2 * across + down) * kPartBytes), addend, barrier,
                      {column, b.add(tile.row, down * kTilePart), tile.matrix});
          }
        Stage following = next(now);
        return Values{following.number, following.parity};
      });
  return {after[0], after[1]};
}

void WarpgroupProduct::produce() {
  b.setRegisters(kFewRegisters, /*more=*/false);
  b.when(b.equal(b.right(thread, 5), 0), [&] {
    acquireMaps();
    b.when(b.elect(), [&] {
      Values after =
          b.loop(first, last, {b.word(0), b.word(0)}, [&](Value number, ArrayRef<Value> carried) {
            Stage stage = load(tileAt(number), {carried[0], carried[1]});
            return Values{stage.number, stage.parity};
          });
      if (!rank)
        return;
      // The other block of the cluster releases stages of this one, so this one stays until all are released.
      Stage stage{after[0], after[1]};
      for (int64_t i = 0; i < kStages; ++i) {
        waitEmpty(stage);
        stage = next(stage);
      }
    });
  });
}

//===----------------------------------------------------------------------===//
// The threads that multiply
//===----------------------------------------------------------------------===//

/// In a result of 64 × n, a warp has 16 rows. In each part of 8 columns, lane i has two neighbours of row
/// i / 4, and two more eight rows further down (PTX ISA, wgmma register fragments).
void WarpgroupProduct::setUpConsumer() {
  consumer = b.sub(warpgroup, 1);
  lane = b.bitAnd(thread, 31);
  warp = b.bitAnd(b.right(thread, 5), 3);
  leads = b.equal(b.bitAnd(thread, kWarpgroup - 1), 0);
  releases = b.below(lane, form.cluster);
  staging = b.at(base, b.add(b.mul(consumer, stagingBytes), kStages * kStageBytes));
  barrier = b.add(consumer, 1);
  // Lane i of a store of matrices brings the address of row i % 8 of matrix i / 8. Rows of the staging
  // have 128 bytes, in units of 16 whose numbers are turned by the row's.
  laneRow = b.bitAnd(lane, 7);
  Value matrix = b.right(lane, 3), low = b.bitAnd(matrix, 1);
  laneHalf = b.right(matrix, 1);
  rowOffset = b.mul(b.add(b.add(b.mul(warp, 16), b.mul(low, 8)), laneRow), 128);
  mirrorOffset = b.add(b.mul(b.add(b.mul(laneHalf, 8), laneRow), 128),
                       b.left(b.bitXor(b.add(b.mul(warp, 2), low), laneRow), 4));
  if (form.isWide())
    return setUpWide();
  Value row = b.right(lane, 2);
  addendTurn = b.left(row, 4);
  addendOffset = b.add(b.add(b.mul(b.add(b.mul(warp, 16), row), 128), b.left(b.bitAnd(lane, 3), 2)),
                       b.mul(consumer, kPartBytes));
}

Value WarpgroupProduct::multiplyStage(Value sums, Stage stage, bool isFirst, int64_t columns) {
  constexpr int64_t kInstruction = 16; // steps of k
  b.fenceProducts();
  Value at = stageAt(stage.number);
  Value lhs = b.descriptor(b.at(at, b.mul(consumer, kPartBytes)), left);
  Value rhs = b.descriptor(b.at(at, kLeftBytes), right);
  for (int64_t i = 0; i < kTileSteps / kInstruction; ++i)
    sums = b.multiply(sums, b.step(lhs, left, i), left, b.step(rhs, right, i), right, columns,
                      isFirst && i == 0);
  b.commitProducts();
  return sums;
}

/// Replaces the elements above the diagonal of a staged box by those below it, which stand at the same
/// places of the mirrored box. The operands may be two matrices, whose sums above the diagonal may round
/// otherwise. Two threads take a row of 64, and four a row of 32.
void WarpgroupProduct::mirrorDiagonal(int64_t box) {
  bool isWide = form.isWide();
  int64_t sharers = isWide ? 2 : 1, units = isWide ? 2 : 4; // sharers: a power of two
  b.syncWarpgroup(barrier);
  Value own = b.bitAnd(thread, kWarpgroup - 1), row = b.right(own, sharers);
  Value line = b.at(staging, b.add(b.mul(row, 128), box * kWideBytes)), turn = b.bitAnd(row, 7);
  Value firstUnit = b.mul(b.bitAnd(own, (1 << sharers) - 1), units);
  auto four = VectorType::get({4}, b.getI32Type());
  b.loop(b.word(0), b.word(units), {}, [&](Value i, ArrayRef<Value>) {
    Value unit = b.add(firstUnit, i);
    Value plain = b.at(line, b.left(b.bitXor(unit, turn), 4));
    Value kept = b.load(four, plain, /*alignment=*/16);
    Value mirrored = b.load(four, b.at(plain, kPartBytes), /*alignment=*/16);
    Values words;
    for (int64_t word = 0; word < 4; ++word) {
      Value one = vector::ExtractOp::create(b, b.loc, kept, word);
      Value other = vector::ExtractOp::create(b, b.loc, mirrored, word);
      if (isWide) {
        Value column = b.add(b.left(unit, 2), word);
        words.push_back(b.select(b.above(column, row), other, one));
        continue;
      }
      Value column = b.add(b.left(unit, 3), 2 * word);
      Value mask = arith::OrIOp::create(
          b, b.loc, b.select(b.above(column, row), b.word(0xffff), b.word(0)),
          b.select(b.above(b.add(column, 1), row), b.word(int32_t(0xffff0000u)), b.word(0)));
      Value changed = b.bitAnd(b.bitXor(one, other), mask);
      words.push_back(b.bitXor(one, changed));
    }
    b.store(vector::FromElementsOp::create(b, b.loc, four, words), plain, /*alignment=*/16);
    return Values();
  });
}

/// Adds the shift to those of `numbers` that are on the diagonal. They are parts of 8 columns, from the
/// tile's part `first` on. A thread has at most one element of the diagonal in each of its rows: in row
/// i / 4 + 8h of its warp, which is column i / 4 of part 2 · warp + h of 64 columns.
void WarpgroupProduct::shiftDiagonal(const Tile &tile, int64_t first,
                                     MutableArrayRef<Value> numbers, Value shift) {
  constexpr int64_t kParts = kTilePart / 8;
  Value row = b.right(lane, 2);
  Value isThread = b.equal(b.bitAnd(lane, 3), b.right(row, 1));
  Value odd = b.bitAnd(row, 1), mine = b.select(isThread, b.mul(warp, 2), b.word(-2));
  Value isHere = b.equal(tile.row, b.add(tile.column, kTilePart * (first / kParts)));
  isHere = arith::AndIOp::create(b, b.loc, isHere, b.isSet(tile.options, STEPC_TILE_HAS_SHIFT));
  Values kept(numbers.begin(), numbers.end());
  Values moved = b.choose(
      isHere,
      [&] {
        Values result = kept;
        for (size_t i = 0; i < result.size(); ++i) {
          int64_t part = (first + int64_t(i) / 4) % kParts, half = i / 2 % 2, e = i % 2;
          Value &number = result[i];
          Value isElement =
              arith::AndIOp::create(b, b.loc, b.equal(mine, part - half), b.equal(odd, e));
          number = b.select(isElement, arith::AddFOp::create(b, b.loc, number, shift), number);
        }
        return result;
      },
      [&] { return kept; });
  llvm::copy(moved, numbers.begin());
}

/// alpha, beta and the shift of a tile's product.
std::array<Value, 3> WarpgroupProduct::factorsOf(const Tile &tile) {
  Value record = b.at(problems, b.mul(tile.problem, int64_t(sizeof(stepc_product_problem))));
  Value factors = b.loadInvariant(VectorType::get({4}, b.getF32Type()),
                                  b.at(record, int64_t(offsetof(stepc_product_problem, alpha))),
                                  /*alignment=*/16);
  std::array<Value, 3> made;
  for (int64_t i = 0; i < 3; ++i)
    made[i] = vector::ExtractOp::create(b, b.loc, factors, i);
  return made;
}

//===----------------------------------------------------------------------===//
// A tile
//===----------------------------------------------------------------------===//

WarpgroupProduct::Values WarpgroupProduct::multiply(const Tile &tile, Stage stage,
                                                    const Results &old, int64_t columns) {
  Type type = b.sumsType(columns);
  Value sums = LLVM::UndefOp::create(b, b.loc, type);
  waitFull(stage);
  sums = multiplyStage(sums, stage, /*isFirst=*/true, columns);
  Value used = stage.number;
  stage = next(stage);
  auto go = [&] {
    waitFull(stage);
    sums = multiplyStage(sums, stage, /*isFirst=*/false, columns);
    // Products before the last group are done, so their stage is free.
    b.waitProducts(1);
    release(used);
  };
  const int64_t chunks = form.isWide() ? 0 : kTileColumns / kTilePart; // of the tile before
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    go();
    store(old, chunk);
    used = stage.number;
    stage = next(stage);
  }
  Values after = b.loop(b.word(chunks + 1), tile.steps, {sums, stage.number, stage.parity, used},
                        [&](Value, ArrayRef<Value> carried) {
                          sums = carried[0];
                          stage = {carried[1], carried[2]};
                          used = carried[3];
                          go();
                          Stage following = next(stage);
                          return Values{sums, following.number, following.parity, stage.number};
                        });
  sums = after[0];
  stage = {after[1], after[2]};
  b.waitProducts(0);
  release(after[3]);
  if (form.isWide()) {
    finishWide(tile, sums, columns);
    return {stage.number, stage.parity};
  }
  Values results = b.choose(
      b.isSet(tile.options, STEPC_TILE_HAS_ADDEND),
      [&] { return finish(tile, sums, stage, columns, /*hasAddend=*/true); },
      [&] { return finish(tile, sums, stage, columns, /*hasAddend=*/false); });
  while (int64_t(results.size()) < 2 + kResultWords)
    results.push_back(LLVM::UndefOp::create(b, b.loc, b.getI32Type()));
  return results;
}

void WarpgroupProduct::consume() {
  b.setRegisters(kManyRegisters, /*more=*/true);
  setUpConsumer();
  acquireMaps();
  Value zero = b.word(0);
  // Results of f32 are stored with their tile, so none are carried.
  Results nothing{zero, zero, zero, zero, zero, Values(form.isWide() ? 0 : kResultWords, zero)};
  Values carried = {zero, zero};
  if (!form.isWide())
    carried.append(nothing.flat());
  Values after = b.loop(first, last, carried, [&](Value number, ArrayRef<Value> given) {
    Stage stage{given[0], given[1]};
    Results old = form.isWide() ? nothing : Results::of(given.drop_front(2));
    Tile tile = tileAt(number);
    tile.row = b.add(tile.row, b.mul(consumer, kTilePart));
    tile.stores = b.right(tile.stores, b.mul(consumer, 8));
    Values made = b.choose(
        b.equal(tile.columns, kTileColumns),
        [&] { return multiply(tile, stage, old, kTileColumns); },
        [&] { return multiply(tile, stage, old, kHalf); });
    Values next = {made[0], made[1]};
    if (!form.isWide())
      next.append(Results{tile.stores, tile.row, tile.column, tile.matrix, tile.problem,
                          Values(ArrayRef(made).drop_front(2))}
                      .flat());
    return next;
  });
  if (!form.isWide()) {
    Results last = Results::of(ArrayRef(after).drop_front(2));
    for (int64_t chunk = 0; chunk < kTileColumns / kTilePart; ++chunk)
      store(last, chunk);
  }
  b.when(leads, [&] { b.waitStores(/*read=*/false); });
}

namespace {

/// The shared memory that a launch asks for. All kernels of the module have it under one name.
LLVM::GlobalOp dynamicMemory(gpu::GPUModuleOp code, HopperBuilder &b) {
  constexpr StringLiteral kName = "stepc_dynamic_memory";
  if (auto known = code.lookupSymbol<LLVM::GlobalOp>(kName))
    return known;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(code.getBody());
  return LLVM::GlobalOp::create(b, b.loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
                                /*isConstant=*/false, LLVM::Linkage::External, kName, Attribute(),
                                /*alignment=*/WarpgroupProduct::kSwizzleBytes,
                                b.shared.getAddressSpace());
}

/// Where the runtime puts the address of a word of the host for a kernel (plan::stuckSymbol).
LLVM::GlobalOp stuckPointer(gpu::GPUModuleOp code, StringRef kernel, HopperBuilder &b) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(code.getBody());
  return LLVM::GlobalOp::create(b, b.loc, b.getI64Type(), /*isConstant=*/false,
                                LLVM::Linkage::External, plan::stuckSymbol(kernel.str()),
                                b.getI64IntegerAttr(0), /*alignment=*/8, kGlobal);
}

} // namespace

plan::LaunchShape warpgroupLaunch(const WarpgroupForm &form) {
  return {.grid = plan::Grid::Lists,
          .threads = 3 * WarpgroupProduct::kWarpgroup,
          .cluster = form.cluster,
          .dynamicBytes = WarpgroupProduct::barriersAt(form) + 16 * WarpgroupProduct::kStages +
                          WarpgroupProduct::kSwizzleBytes};
}

gpu::GPUFuncOp addWarpgroupKernel(gpu::GPUModuleOp code, const WarpgroupForm &form, Location loc) {
  bool isBounded = code->hasAttr(kBoundedAttr);
  std::string name = form.name() + (isBounded ? "_bounded" : "");
  if (auto known = code.lookupSymbol<gpu::GPUFuncOp>(name))
    return known;
  HopperBuilder b(code.getContext(), loc);
  WarpgroupProduct product(b, form);
  SmallVector<Type> arguments(3, b.pointer);
  gpu::GPUFuncOp function = beginGpuKernel(code, name, arguments, b, warpgroupLaunch(form));
  if (isBounded)
    b.stuck = LLVM::AddressOfOp::create(b, b.loc, stuckPointer(code, name, b));
  product.emit(function, dynamicMemory(code, b));
  return function;
}

} // namespace stepc::kernels

//===- WarpgroupWideResults.cpp - Results of f32 --------------------------===//
//
// Results of f32 take twice the registers, so they are stored before the next tile is begun, in chunks of
// half as many columns.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/gpu/WarpgroupKernel.h"

using namespace mlir;

namespace stepc::kernels {

using plan::kTilePart;

/// A chunk has 64 rows and 32 columns, its mirror 32 rows and 64 columns. Both are two boxes of 32 × 32,
/// whose rows have 128 bytes. Lane i has columns 2 (i % 4) and the next of row i / 4, and eight rows further
/// down.
void WarpgroupProduct::setUpWide() {
  Value row = b.right(lane, 2), pair = b.bitAnd(lane, 3);
  wideOffset = b.add(b.mul(b.add(b.mul(warp, 16), row), 128), b.left(b.bitAnd(lane, 1), 3));
  wideTurn = b.left(b.bitXor(b.right(pair, 1), row), 4);
  // In the mirror, the lane's row is a column, and its columns are rows 2 (i % 4) and the next.
  wideMirrorOffset = b.add(b.add(b.mul(b.right(warp, 1), kWideBytes), b.mul(pair, 2 * 128)),
                           b.left(b.bitAnd(row, 3), 2));
  Value unit = b.add(b.left(b.bitAnd(warp, 1), 2), b.right(lane, 4));
  wideMirrorTurn = b.left(b.bitXor(unit, b.left(pair, 1)), 4);
}

/// alpha · sum and the shift, chunk by chunk.
void WarpgroupProduct::finishWide(const Tile &tile, Value sums, int64_t columns) {
  auto [alpha, beta, shift] = factorsOf(tile);
  int64_t count = kWideEdge / 2; // a thread's elements of a chunk
  for (int64_t chunk = 0; chunk < columns / kWideEdge; ++chunk) {
    Values numbers;
    for (int64_t i = 0; i < count; ++i) {
      Value sum = LLVM::ExtractValueOp::create(b, b.loc, sums, chunk * count + i);
      numbers.push_back(arith::MulFOp::create(b, b.loc, sum, alpha));
    }
    if (form.product.symmetric)
      shiftDiagonal(tile, chunk * kWideEdge / 8, numbers, shift);
    storeWide(tile, chunk, numbers);
  }
}

/// Stores a chunk of 32 columns as the tile says. In a part on the diagonal, the last box of the left chunk
/// is also stored above the diagonal, in the place of the first box of the right one.
void WarpgroupProduct::storeWide(const Tile &tile, int64_t chunk, ArrayRef<Value> numbers) {
  constexpr int64_t kMirrored = 4; // the first bit that says so
  bool mirrors = form.product.symmetric;
  int64_t part = chunk / 2, side = chunk % 2;
  int64_t plainBit = 1 << part, mirrorBit = 1 << (part + kMirrored);
  auto pair = VectorType::get({2}, b.getF32Type());
  b.when(b.isSet(tile.stores, mirrors ? plainBit | mirrorBit : plainBit), [&] {
    b.when(leads, [&] { b.waitStores(/*read=*/true); });
    b.syncWarp();
    b.syncWarpgroup(barrier);
    for (int64_t eight = 0; eight < 4; ++eight)
      for (int64_t half = 0; half < 2; ++half) {
        ArrayRef<Value> two = numbers.slice(4 * eight + 2 * half, 2);
        Value plain = b.add(wideOffset, b.bitXor(wideTurn, eight << 5));
        b.store(vector::FromElementsOp::create(b, b.loc, pair, two),
                b.at(staging, b.add(plain, half * 8 * 128)), /*alignment=*/8);
        for (int64_t e = 0; mirrors && e < 2; ++e) {
          Value turned = b.add(wideMirrorOffset, b.bitXor(wideMirrorTurn, half << 5 | e << 4));
          b.store(two[e], b.at(staging, b.add(turned, kPartBytes + (8 * eight + e) * 128)),
                  /*alignment=*/4);
        }
      }
    Value isOnDiagonal;
    if (mirrors) {
      isOnDiagonal = b.equal(tile.row, b.add(tile.column, kTilePart * part));
      b.when(isOnDiagonal, [&] { mirrorDiagonal(/*box=*/side); });
    }
    b.fenceTensorAccess();
    b.syncWarpgroup(barrier);
    Value map = mapOf(tile.problem, 2), column = b.add(tile.column, kWideEdge * chunk);
    b.when(leads, [&] {
      for (int64_t box = 0; box < 2; ++box) {
        Value from = b.at(staging, box * kWideBytes), row = b.add(tile.row, box * kWideEdge);
        Value stores = b.isSet(tile.stores, plainBit);
        if (mirrors && side == 1 && box == 0)
          stores = b.select(isOnDiagonal, b.isFalse(), stores);
        b.when(stores, [&] { b.storeBox(map, from, {column, row, tile.matrix}); });
        if (!mirrors)
          continue;
        stores = b.isSet(tile.stores, mirrorBit);
        if (side == 0 && box == 1)
          stores = arith::OrIOp::create(b, b.loc, stores, isOnDiagonal);
        b.when(stores,
               [&] { b.storeBox(map, b.at(from, kPartBytes), {row, column, tile.matrix}); });
      }
      b.commitStores();
    });
    b.syncWarp();
  });
}

} // namespace stepc::kernels

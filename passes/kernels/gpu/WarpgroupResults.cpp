//===- WarpgroupResults.cpp - Results of 16 bits --------------------------===//
//
// A tile's results stay in registers, two to a word, while the next tile is begun. They are stored between
// the next tile's first stages, so that tensor cores do not wait for them. The addend comes through the
// ring, behind the last stage of its tile.
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/gpu/WarpgroupKernel.h"

using namespace mlir;

namespace stepc::kernels {

using plan::kTilePart;

WarpgroupProduct::Values WarpgroupProduct::finish(const Tile &tile, Value sums, Stage stage,
                                                  int64_t columns, bool hasAddend) {
  auto [alpha, beta, shift] = factorsOf(tile);
  Values words;
  for (int64_t chunk = 0; chunk < columns / kTilePart; ++chunk) {
    bool isEven = chunk % 2 == 0;
    if (hasAddend && isEven)
      waitFull(stage);
    Value at = hasAddend ? stageAt(stage.number) : Value();
    Values numbers;
    for (int64_t part = 0; part < 8; ++part) {
      Value unit =
          hasAddend ? b.at(at, b.add(addendOffset, b.bitXor(addendTurn, part << 4))) : Value();
      for (int64_t half = 0; half < 2; ++half) {
        int64_t number = (chunk * 8 + part) * 4 + 2 * half;
        Value pair[2];
        for (int64_t e = 0; e < 2; ++e) {
          pair[e] = LLVM::ExtractValueOp::create(b, b.loc, sums, number + e);
          pair[e] = arith::MulFOp::create(b, b.loc, pair[e], alpha);
        }
        if (hasAddend) {
          Value word =
              b.load(b.getI32Type(), b.at(unit, (isEven ? 0 : 2 * kPartBytes) + half * 8 * 128));
          auto [low, high] = b.extendPair(type, word);
          pair[0] =
              arith::AddFOp::create(b, b.loc, pair[0], arith::MulFOp::create(b, b.loc, low, beta));
          pair[1] =
              arith::AddFOp::create(b, b.loc, pair[1], arith::MulFOp::create(b, b.loc, high, beta));
        }
        numbers.append({pair[0], pair[1]});
      }
    }
    if (form.product.symmetric)
      shiftDiagonal(tile, 8 * chunk, numbers, shift);
    for (size_t i = 0; i < numbers.size(); i += 2)
      words.push_back(b.narrowPair(type, numbers[i], numbers[i + 1]));
    if (hasAddend && !isEven) {
      // Threads have read the addend, and tensor loads write this stage next.
      b.fenceTensorAccess();
      b.syncWarp();
      release(stage.number);
      stage = next(stage);
    }
  }
  Values all = {stage.number, stage.parity};
  all.append(words);
  return all;
}

/// Stores a chunk of 64 columns as the tile says: as it is, and transposed at the mirrored place.
void WarpgroupProduct::store(const Results &results, int64_t chunk) {
  constexpr int64_t kMirrored = 4; // the first bit that says so
  bool mirrors = form.product.symmetric;
  int64_t both = 1 << chunk | (mirrors ? 1 << (chunk + kMirrored) : 0);
  ArrayRef<Value> words = ArrayRef(results.words).slice(16 * chunk, 16);
  b.when(b.isSet(results.stores, both), [&] {
    b.when(leads, [&] { b.waitStores(/*read=*/true); });
    b.syncWarp();
    b.syncWarpgroup(barrier);
    for (int64_t j = 0; j < 4; ++j) {
      ArrayRef<Value> four = words.slice(4 * j, 4);
      Value unit = b.left(b.bitXor(b.add(laneHalf, 2 * j), laneRow), 4);
      b.storeMatrices(b.at(staging, b.add(rowOffset, unit)), four, /*transposed=*/false);
      if (mirrors)
        b.storeMatrices(b.at(staging, b.add(mirrorOffset, kPartBytes + 2 * j * 8 * 128)), four,
                        /*transposed=*/true);
    }
    if (mirrors)
      b.when(b.equal(results.row, b.add(results.column, kTilePart * chunk)),
             [&] { mirrorDiagonal(/*box=*/0); });
    b.fenceTensorAccess();
    b.syncWarpgroup(barrier);
    Value map = mapOf(results.problem, 2), column = b.add(results.column, kTilePart * chunk);
    b.when(leads, [&] {
      b.when(b.isSet(results.stores, 1 << chunk),
             [&] { b.storeBox(map, staging, {column, results.row, results.matrix}); });
      if (mirrors)
        b.when(b.isSet(results.stores, 1 << (chunk + kMirrored)), [&] {
          b.storeBox(map, b.at(staging, kPartBytes), {results.row, column, results.matrix});
        });
      b.commitStores();
    });
    b.syncWarp();
  });
}

} // namespace stepc::kernels

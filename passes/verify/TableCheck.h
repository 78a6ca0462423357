//===- TableCheck.h - One table on one rank ---------------------*- C++ -*-===//
//
// Compares the rows of a table with the ground truth. Each element that the table visits or fills must be
// covered once. Its packed buffer must hold known elements without a gap.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_TABLECHECK_H
#define STEPC_PASSES_VERIFY_TABLECHECK_H

#include "passes/verify/GroundTruth.h"
#include "runtime/plan/Tables.h"

#include <map>

namespace stepc::verify {

/// How the program uses a table of a stage or copy.
struct TableUse {
  int64_t table = -1;
  bool reads = false;  ///< a stage over shards reads its staged operand
  bool writes = false; ///< a stage over shards writes its staged operand
};

class TableCheck {
public:
  TableCheck(GroundTruth &truth, const TableUse &use, int64_t rank);

  /// Checks the rows of the table. Returns false and sets `error` if they do not do what the table is for.
  bool run(const plan::RankTable &rows);
  /// Checks the rows of a relay: a copy from the buffer that arrived to the one that is sent next. `arrived`
  /// are the pieces that arrived.
  bool runRelay(const plan::RankTable &rows, std::span<const Piece> arrived);

  using Pieces = std::vector<Piece>;
  /// The pieces of the packed buffer that the table reads or writes, sorted by start. They have no gaps,
  /// unless the rank reads only some of what arrived. Empty if nothing is packed.
  Pieces packed;
  /// How far, in elements, the table reaches into its staged operand or source, and into its target.
  int64_t fromEnd = 0, toEnd = 0;
  std::string error;

private:
  bool shardChunks(const std::vector<plan::Chunk> &chunks);
  /// Whether chunks have all elements of the rows or columns that they reduce, and lead to all values of the
  /// line.
  bool wholeLines(const std::vector<plan::Chunk> &chunks);
  /// Whether the rows of sums have all elements of the shards once, and lead to each sum of each line once.
  bool partLines(const std::vector<plan::Chunk> &chunks);
  /// Whether the rows of parts of a number of the model have all elements of the shards once, or none, and
  /// lead to one sum after another.
  bool partsOfModel(const std::vector<plan::Chunk> &chunks);
  /// Whether rows name one such sum after another.
  bool collects(const std::vector<plan::CopyRow> &rows);
  bool leadsToSums(std::span<const plan::Chunk> item, const CopyMap &lines, Piece &values);
  bool blockChunks(const plan::RankTable &rows);
  bool copyRows(const std::vector<plan::CopyRow> &rows);

  /// Appends to `out`, as pieces, the elements that a strip covers of what the rank holds in a place. Returns
  /// false after an error.
  bool decode(const plan::Place &place, const Strip &strip, int64_t parameter, Pieces &out);
  /// Whether two lists of pieces have the same elements in the same order. Sorts both by start.
  bool areEqual(Pieces &read, Pieces &written, int64_t elements);
  const MemoryMap &shardOf(const plan::Place &place);
  /// The elements of one parameter in memory that the trainer has bound on this rank.
  const MemoryMap &boundOf(const plan::Place &place, int64_t indexInGroup);
  const CopyMap &copyOf(const plan::Place &place); // `place`: the table's `from` or `to`
  std::unique_ptr<CopyMap> makeCopy(const plan::Place &place);
  bool namesItsPlace(const plan::Chunk &chunk, const MemoryMap &map);
  /// Checks the number of a chunk's first element. The chunk's block and parameter exist.
  bool isNumbered(const plan::Chunk &chunk);
  bool sumRows(const plan::RankTable &rows);
  bool cutChunks(const std::vector<plan::Chunk> &chunks, const MemoryMap &map);
  /// Whether a chunk leads from each of its elements to what the element's row, column and block have. Always
  /// true where the table has no lines.
  bool leadsToLines(const plan::Chunk &chunk, const MemoryMap &map);
  bool chunkPiece(const Cut &cut, int64_t parameter, bool hasPlace);
  bool standsInSlot(const Cut &cut, int64_t block);
  bool standsAt(const Cut &cut, int64_t block, int64_t row, int64_t col);
  /// For a group with slabs: changes the row or column of a rectangle of the rank's shards to its place in
  /// the slab of its block.
  Cut inSlab(Cut cut) const;
  /// Whether the table moves elements between shards and slabs.
  bool meetsSlabs() const {
    return !group.slabs.factors.empty() && table.from.value == plan::ValueKind::Full &&
           (table.from.isResting(plan::Distribution::Blocks) ||
            table.to.isResting(plan::Distribution::Blocks));
  }
  void pack(const Cut &cut, int64_t block, Pieces &out);
  void cover(const Cut &cut, int64_t block) {
    covered.push_back({0, block, cut.row, cut.col, cut.rows, cut.cols});
  }

  bool fail(std::string message);
  bool isParameter(int64_t parameter) const;
  void findSlots();
  void findBlocks();
  /// The slot of a block of the segment, or -1.
  int64_t slotOf(int64_t block);
  /// Whether every element of the rank's shards in the segment is covered once.
  bool coversShards(const MemoryMap &map);
  /// Whether every element of the rank's computed blocks is covered once. If shards fill slabs that differ in
  /// length, only the elements that the rank's slabs have are meant.
  bool coversBlocks();
  /// Whether `covered` has every element of the expected blocks once. `expected`: their indices in the
  /// segment, ascending. With a shard, only the elements in the shard are meant.
  bool coversOnce(const std::vector<int64_t> &expected, const MemoryMap *shard, const char *what);
  bool unbroken();
  /// Whether each sum of the rank's range is written once.
  bool fillsRange(Pieces &filled);

  GroundTruth &truth;
  const TableUse &use;
  const plan::Table &table;
  int64_t rank, groupIndex, position;
  const plan::Group &group;
  const SegmentView &segment;
  int64_t perParameter;
  plan::View view;               // of computed blocks, or of the rank's slabs of them
  std::vector<int64_t> computed; // blocks by slot
  std::vector<int64_t> slots;    // their indices in the segment, ascending
  size_t lastSlot = 0;           // of the last row; rows mostly come in order
  /// A parameter's number in the group, and the elements that this rank has of its state that stays with
  /// blocks. They are kept for the next row, which mostly has the same parameter.
  std::pair<int64_t, MemoryMap> blockState{-1, {}};
  Pieces covered;
  Pieces filled; ///< those of `covered` that have a place in the staged operand, if this is blocks
  MemoryMap blocks; // the computed blocks
  RangeMap ranges;  // the rank's ranges of sums over slabs
  std::unique_ptr<CopyMap> fromCopy, toCopy;
  std::map<plan::ValueKind, std::unique_ptr<CopyMap>> lineCopies;
};

} // namespace stepc::verify

#endif

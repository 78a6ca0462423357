//===- Chunks.cpp - Kernels over chunks ----------------------------------------===//
//
// A chunk is one list of elements, row after row, cut into strips. So narrow chunks also fill their strips.
//
//===----------------------------------------------------------------------===//
#include "runtime/interpret/BodyCode.h"
#include "runtime/interpret/Code.h"
#include "runtime/interpret/Storage.h"
#include "runtime/sums/Parts.h"
#include "stepc/kernel_abi.h"

#include <algorithm>

namespace stepc::interpret {
namespace {

/// A chunk with the addresses of its operands.
struct Chunk {
  const stepc_chunk *row;
  const int64_t *words; ///< the words behind the chunk in its row
  int64_t rows, cols;
};

/// A run of elements in one row.
struct Run {
  int64_t row, column, count;
  int64_t lane; ///< of the first element in the strip
};

class ChunkCode : public Code {
public:
  explicit ChunkCode(const ChunkKernel &kernel) : kernel(kernel), body(kernel.body) {
    for (bool isShards : kernel.isShards)
      sources.push_back(isShards ? lists++ : words++);
  }

  int64_t arguments() const override { return kBeforeLists + lists; }

  void run(void *const *arguments, int64_t first, int64_t last) const override {
    Registers registers;
    body.begin(registers, body.lanes());
    const auto *rows = static_cast<const int64_t *>(arguments[0]);
    int64_t stride = kChunkWords + words;
    for (int64_t item = first; item < last; ++item) {
      const auto *row = reinterpret_cast<const stepc_chunk *>(rows + item * stride);
      const int64_t *behind = rows + item * stride + kChunkWords;
      Chunk chunk{row, behind, row->rows, row->cols};
      if (kernel.isFlat) {
        chunk.cols *= chunk.rows;
        chunk.rows = 1;
      }
      if (kernel.sums)
        runSums(arguments, chunk, registers);
      else if (std::vector<float> terms = runChunk(arguments, chunk, registers); !terms.empty())
        reduce(arguments, chunk, terms);
    }
  }

private:
  static constexpr int64_t kBeforeLists = 3; // rows, workspace, records
  static constexpr int64_t kChunkWords = sizeof(stepc_chunk) / sizeof(int64_t);

  /// Returns the terms of a kernel that reduces, row by row.
  std::vector<float> runChunk(void *const *arguments, const Chunk &chunk,
                              Registers &registers) const {
    int64_t elements = chunk.rows * chunk.cols, lanes = std::min(body.lanes(), elements);
    std::vector<float> terms;
    if (elements <= 0)
      return terms;
    for (const ScalarColumn &column : kernel.columns) {
      const std::byte *row = operand(arguments, chunk, 0);
      auto value = load<float>(row + column.column * int64_t(sizeof(float)));
      fill(body.at(registers, column.place), lanes, value);
    }
    if (kernel.key) {
      const auto *records = static_cast<const stepc_parameter_record *>(arguments[2]);
      fill(body.at(registers, *kernel.key), lanes, records[chunk.row->parameter].key);
    }
    body.runUniform(registers, lanes);
    Run run{0, 0, 0, 0};
    for (int64_t done = 0; done < elements; done += lanes) {
      int64_t count = std::min(lanes, elements - done);
      for (const ChunkValue &read : kernel.reads)
        eachRun(chunk, run, count, [&](const Run &part) {
          loadRun(arguments, chunk, read, part, body.at(registers, read.place));
        });
      body.run(registers, count);
      if (kernel.reduction) {
        const auto *from =
            reinterpret_cast<const float *>(body.at(registers, kernel.writes[0].place));
        terms.insert(terms.end(), from, from + count);
      } else
        storeAll(arguments, chunk, run, count, registers);
      run.column += count;
      run.row += run.column / chunk.cols;
      run.column %= chunk.cols;
    }
    return terms;
  }

  /// Adds up what an item has: a row of the table, and the rows behind it.
  void runSums(void *const *arguments, const Chunk &first, Registers &registers) const {
    if (first.row->part < 0)
      return;
    const ChunkValue &write = kernel.writes[0];
    bool ofRows = write.reach == Reach::Row, ofColumns = write.reach == Reach::Column;
    int64_t each = sums::bytesOf(*kernel.reduction);
    auto at = [&](int64_t row) {
      int64_t element = elementOf(first, write, Run{row, 0, 1, 0});
      return operand(arguments, first, size_t(write.operand)) +
             (element * kernel.sums + first.row->part) * each;
    };
    for (int64_t i = 0; i < (ofRows ? first.rows : 1); ++i)
      sums::begin(*kernel.reduction, ofColumns ? first.cols : 1, at(i));
    int64_t stride = kChunkWords + words;
    const auto *row = reinterpret_cast<const int64_t *>(first.row);
    for (int64_t further = 0; further <= first.row->more; ++further, row += stride) {
      const auto *next = reinterpret_cast<const stepc_chunk *>(row);
      Chunk chunk{next, row + kChunkWords, next->rows, next->cols};
      std::vector<float> terms = runChunk(arguments, chunk, registers);
      if (terms.empty())
        continue;
      if (!ofRows)
        sums::add(*kernel.reduction,
                  {ofColumns ? sums::Remains::Columns : sums::Remains::One, chunk.rows, chunk.cols,
                   terms.data(), chunk.cols},
                  at(0));
      for (int64_t i = 0; ofRows && i < chunk.rows; ++i)
        sums::add(*kernel.reduction,
                  {sums::Remains::Rows, 1, chunk.cols, terms.data() + i * chunk.cols, chunk.cols},
                  at(i));
    }
  }

  /// Stores what the body computed for `count` elements, which begin at `run`.
  void storeAll(void *const *arguments, const Chunk &chunk, const Run &run, int64_t count,
                Registers &registers) const {
    for (const ChunkValue &write : kernel.writes) {
      // If this replica does not send, it has no place for staged values.
      if (kernel.isOverShards && write.reach == Reach::Staged && chunk.row->staged < 0)
        continue;
      eachRun(chunk, run, count, [&](const Run &part) {
        storeRun(arguments, chunk, write, part, body.at(registers, write.place));
      });
    }
  }

  /// Reduces the terms of each row or column of a chunk.
  void reduce(void *const *arguments, const Chunk &chunk, const std::vector<float> &terms) const {
    const ChunkValue &write = kernel.writes[0];
    bool ofRows = write.reach == Reach::Row;
    sums::BlockReduction reduction{
        *kernel.reduction,
        /*exponent=*/0,    ofRows ? sums::Remains::Rows : sums::Remains::Columns,
        plan::DType::F32,  chunk.rows,
        chunk.cols};
    std::vector<float> lines(size_t(ofRows ? chunk.rows : chunk.cols));
    reduction.run(sums::Phase::Whole, nullptr, terms.data(), lines.data(), 0,
                  reduction.items(sums::Phase::Whole));
    for (int64_t i = 0; i < int64_t(lines.size()); ++i)
      store(address(arguments, chunk, write, ofRows ? Run{i, 0, 1, 0} : Run{0, i, 1, 0}),
            lines[size_t(i)]);
  }

  /// Calls visit(run) for the runs of `count` elements, which begin at `from`.
  template <typename Visit>
  static void eachRun(const Chunk &chunk, Run from, int64_t count, Visit &&visit) {
    while (from.lane < count) {
      from.count = std::min(count - from.lane, chunk.cols - from.column);
      visit(from);
      from.lane += from.count;
      from.column = 0;
      ++from.row;
    }
  }

  /// The address at which an operand that is not shards begins.
  std::byte *operand(void *const *arguments, const Chunk &chunk, size_t index) const {
    return static_cast<std::byte *>(arguments[1]) + chunk.words[sources[index]];
  }

  std::byte *address(void *const *arguments, const Chunk &chunk, const ChunkValue &value,
                     const Run &run) const {
    auto index = size_t(value.operand);
    std::byte *base = nullptr;
    if (value.reach == Reach::Shards) {
      auto *const *list = static_cast<void *const *>(arguments[kBeforeLists + sources[index]]);
      base = static_cast<std::byte *>(list[chunk.row->parameter]);
    }
    return (base ? base : operand(arguments, chunk, index)) +
           elementOf(chunk, value, run) * bytesOf(value.type);
  }

  /// The number of the element, in its operand, where a run begins.
  static int64_t elementOf(const Chunk &chunk, const ChunkValue &value, const Run &run) {
    const stepc_chunk &at = *chunk.row;
    switch (value.reach) {
    case Reach::Shards:
      return at.local + run.row * at.local_stride + run.column;
    case Reach::Staged:
      return at.staged + run.row * at.staged_stride + run.column;
    case Reach::Block:
      return at.per_block;
    case Reach::Row:
      return at.per_row + run.row * at.per_row_stride;
    case Reach::Column:
      return at.per_column + run.column;
    case Reach::RowNumber:
    case Reach::ColumnNumber:
    case Reach::ElementNumber:
      break;
    }
    return 0;
  }

  void loadRun(void *const *arguments, const Chunk &chunk, const ChunkValue &value, const Run &run,
               std::byte *to) const {
    if (value.isNumber())
      return number(*chunk.row, value.reach, run, to);
    const std::byte *from = address(arguments, chunk, value, run);
    int64_t bytes = bytesOf(value.type);
    to += run.lane * bytes;
    if (value.reach != Reach::Block && value.reach != Reach::Row)
      std::memcpy(to, from, size_t(run.count * bytes));
    else if (bytes == 4)
      fill(to, run.count, load<uint32_t>(from));
    else
      fill(to, run.count, load<uint16_t>(from));
  }

  /// The numbers of a run's rows or columns in the block, or of its elements.
  static void number(const stepc_chunk &chunk, Reach reach, const Run &run, std::byte *to) {
    for (int64_t i = 0; i < run.count; ++i) {
      int64_t lane = run.lane + i, column = run.column + i;
      if (reach == Reach::ElementNumber)
        store(to + lane * int64_t(sizeof(int64_t)),
              chunk.element + run.row * chunk.element_stride + column);
      else
        store(to + lane * int64_t(sizeof(float)),
              float(reach == Reach::RowNumber ? chunk.row + run.row : chunk.col + column));
    }
  }

  /// Stores numbers unchanged, and every NaN as one NaN (passes/kernels/ChunkKernel.h).
  void storeRun(void *const *arguments, const Chunk &chunk, const ChunkValue &value, const Run &run,
                const std::byte *from) const {
    std::byte *to = address(arguments, chunk, value, run);
    switch (value.type) {
    case plan::DType::BF16:
      return copyWithOneNaN<uint16_t>(to, from + run.lane * 2, run.count, 0x7f80, 0x7fc0);
    case plan::DType::F16:
      return copyWithOneNaN<uint16_t>(to, from + run.lane * 2, run.count, 0x7c00, 0x7e00);
    default:
      return copyWithOneNaN<uint32_t>(to, from + run.lane * 4, run.count, 0x7f800000, 0x7fc00000);
    }
  }
  template <typename T>
  static void copyWithOneNaN(std::byte *to, const std::byte *from, int64_t count, T infinity,
                             T nan) {
    constexpr T kMagnitude = T(~T(0)) >> 1;
    for (int64_t i = 0; i < count; ++i) {
      T bits = load<T>(from + i * int64_t(sizeof(T)));
      store<T>(to + i * int64_t(sizeof(T)), T(bits & kMagnitude) > infinity ? nan : bits);
    }
  }
  template <typename T> static void fill(std::byte *to, int64_t count, T value) {
    for (int64_t i = 0; i < count; ++i)
      store(to + i * int64_t(sizeof(T)), value);
  }

  ChunkKernel kernel;
  BodyCode body;
  std::vector<int64_t> sources; ///< per operand: the number of its word, or of its list of shards
  int64_t words = 0, lists = 0;
};

} // namespace

std::unique_ptr<Code> ChunkKernel::code() const { return std::make_unique<ChunkCode>(*this); }

} // namespace stepc::interpret

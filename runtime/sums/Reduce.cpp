//===- Reduce.cpp - Reductions of blocks ------------------------------------===//
#include "runtime/sums/Reduce.h"
#include "runtime/sums/Columns.h"
#include "runtime/sums/Maximum.h"
#include "stepc/kernel_abi.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace stepc::sums {

/// IEEE's root. No function of a math library has a say.
static double squareRoot(double value) {
#if __has_builtin(__builtin_elementwise_sqrt)
  return __builtin_elementwise_sqrt(value);
#else
  return std::sqrt(value);
#endif
}

float finish(plan::Reduction kind, double sum, int64_t count, int64_t exponent) {
  if (kind == plan::Reduction::Mean || kind == plan::Reduction::Rms)
    sum /= double(count);
  if (termsOf(kind) == Terms::Squares)
    sum = squareRoot(sum) * powerOfTwo(int(exponent));
  return sum != sum ? std::bit_cast<float>(0x7fc00000) : float(sum);
}

namespace {

/// Elements that make an item of rows worth a thread.
constexpr int64_t kItemElements = 1 << 14;

int64_t rowsPerItem(int64_t cols) {
  return std::max<int64_t>(1, kItemElements / std::max<int64_t>(1, cols));
}

/// Reduces by exact sums.
template <Terms terms> struct BySums {
  using Part = Accumulator<terms>;
  const BlockReduction &reduction;

  float line(const Line &line) const { return finished(total<terms>(line), line.count); }
  void strip(const Strip &strip, float *out) const {
    double sums[kColumns];
    total<terms>(sums, strip);
    for (int64_t c = 0; c < strip.columns; ++c)
      out[c] = finished(sums[c], strip.rows);
  }
  Part part(const Line &line) const {
    Part sum;
    add(sum, line);
    return sum;
  }
  static void combine(Part &sum, const Part &other) { sum.add(other); }
  float result(const Part &sum) const {
    return finished(sum.total(), reduction.rows * reduction.cols);
  }

private:
  float finished(double sum, int64_t count) const {
    return finish(reduction.kind, sum, count, reduction.exponent);
  }
};

struct ByMaximum {
  using Part = Maximum;

  float line(const Line &line) const { return part(line).number(); }
  void strip(const Strip &strip, float *out) const {
    Maximum found[kColumns];
    add(found, strip);
    for (int64_t c = 0; c < strip.columns; ++c)
      out[c] = found[c].number();
  }
  Part part(const Line &line) const {
    Maximum most;
    add(most, line);
    return most;
  }
  static void combine(Part &most, Part other) { most.add(other); }
  float result(Part most) const { return most.number(); }
};

template <typename Way>
void runItem(const BlockReduction &reduction, const Way &way, Phase phase, char *parts,
             const char *block, float *out, int64_t item) {
  const auto &[kind, exponent, remains, type, rows, cols] = reduction;
  int64_t bytes = plan::byteSize(type);
  auto partAt = [&](int64_t i) {
    return reinterpret_cast<typename Way::Part *>(parts + i * kPartBytes);
  };
  if (phase == Phase::Combine) {
    typename Way::Part all = *partAt(0);
    for (int64_t i = 1; i < reduction.parts(); ++i)
      Way::combine(all, *partAt(i));
    *out = way.result(all);
  } else if (phase == Phase::Parts) {
    int64_t begin = item * kPartElements;
    *partAt(item) =
        way.part({block + begin * bytes, std::min(kPartElements, rows * cols - begin), type});
  } else if (remains == Remains::One) {
    *out = way.line({block, rows * cols, type});
  } else if (remains == Remains::Rows) {
    int64_t row = item * rowsPerItem(cols), end = std::min(rows, row + rowsPerItem(cols));
    for (; row < end; ++row)
      out[row] = way.line({block + row * cols * bytes, cols, type});
  } else {
    int64_t column = item * kColumns;
    way.strip({block + column * bytes, rows, std::min(kColumns, cols - column), cols, type},
              out + column);
  }
}

template <typename Way>
void runItems(const BlockReduction &reduction, const Way &way, Phase phase, char *scratch,
              const char *source, float *out, int64_t first, int64_t last) {
  int64_t items = reduction.items(phase);
  int64_t blockBytes = reduction.rows * reduction.cols * plan::byteSize(reduction.type);
  int64_t results = reduction.remains == Remains::One    ? 1
                    : reduction.remains == Remains::Rows ? reduction.rows
                                                         : reduction.cols;
  for (; first < last; ++first) {
    int64_t slot = first / items;
    runItem(reduction, way, phase, scratch + slot * reduction.parts() * kPartBytes,
            source + slot * blockBytes, out + slot * results, first % items);
  }
}

} // namespace

int64_t BlockReduction::items(Phase phase) const {
  if (phase == Phase::Parts)
    return parts();
  if (phase == Phase::Combine || remains == Remains::One)
    return 1;
  int64_t each = remains == Remains::Rows ? rowsPerItem(cols) : kColumns;
  return ((remains == Remains::Rows ? rows : cols) + each - 1) / each;
}

void BlockReduction::run(Phase phase, void *scratch, const void *source, float *out, int64_t first,
                         int64_t last) const {
  auto with = [&](const auto &way) {
    runItems(*this, way, phase, static_cast<char *>(scratch), static_cast<const char *>(source),
             out, first, last);
  };
  if (kind == plan::Reduction::Max)
    with(ByMaximum());
  else if (termsOf(kind) == Terms::Squares)
    with(BySums<Terms::Squares>{*this});
  else
    with(BySums<Terms::Values>{*this});
}

} // namespace stepc::sums

extern "C" void stepc_rt_reduce(int64_t kind, int64_t exponent, int64_t remains, int64_t type,
                                int64_t rows, int64_t cols, int64_t phase, void *const *arguments,
                                int64_t first, int64_t last) {
  using namespace stepc;
  sums::BlockReduction{plan::Reduction(kind), exponent, sums::Remains(remains),
                       plan::DType(type),     rows,     cols}
      .run(sums::Phase(phase), arguments[0], arguments[1], static_cast<float *>(arguments[2]),
           first, last);
}

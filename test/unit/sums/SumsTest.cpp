//===- SumsTest.cpp - Exact sums, beside sums digit by digit ----------------===//

#include "runtime/sums/Parts.h"
#include "runtime/sums/Pieces.h"
#include "runtime/sums/Reduce.h"
#include "test/support/ExactSum.h"
#include "test/support/Tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace stepc;
using namespace stepc::sums;
using namespace stepc::test;

namespace {

using Engine = std::mt19937;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

int64_t draw(Engine &engine, int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(engine);
}

/// What numbers are drawn from.
enum class Kind {
  Normal,
  Squares,
  LogNormal,
  AllExponents,
  Subnormal,
  Cancelling,
  Last = Cancelling
};

std::vector<float> drawNumbers(Engine &engine, Kind kind, int64_t count) {
  std::normal_distribution<double> normal;
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    double z = normal(engine);
    if (kind == Kind::Squares)
      z = 1e-6 * z * z;
    if (kind == Kind::LogNormal)
      z = std::copysign(std::exp(4 * normal(engine)), z);
    if (kind == Kind::AllExponents)
      z = std::ldexp(z, int(draw(engine, -149, 125)));
    if (kind == Kind::Subnormal)
      z = std::ldexp(z, int(draw(engine, -149, -120)));
    if (kind == Kind::Cancelling && i % 2 == 1)
      z = -numbers.back();
    auto number = float(z);
    numbers.push_back(std::isfinite(number) ? number : 1.0f);
  }
  if (kind == Kind::Cancelling)
    std::shuffle(numbers.begin(), numbers.end(), engine);
  return numbers;
}

template <Terms terms> double termOf(float number) {
  return terms == Terms::Squares ? double(number) * number : number;
}

template <Terms terms> ExactSum digitByDigit(const std::vector<float> &numbers) {
  ExactSum sum;
  for (float number : numbers)
    sum.add(termOf<terms>(number));
  return sum;
}

template <Terms terms> void checkLines(Engine &engine, int64_t most) {
  auto kind = Kind(draw(engine, 0, int64_t(Kind::Last)));
  std::vector<float> numbers = drawNumbers(engine, kind, draw(engine, 0, most));
  auto count = int64_t(numbers.size());
  SCOPED_TRACE("kind " + std::to_string(int(kind)) + ", " + std::to_string(count) + " numbers");
  Accumulator<terms> whole;
  add(whole, Line{numbers.data(), count});
  ASSERT_TRUE(digitByDigit<terms>(numbers).isRoundedTo(whole.total()));
  ASSERT_EQ(std::bit_cast<uint64_t>(whole.total()),
            std::bit_cast<uint64_t>(total<terms>(Line{numbers.data(), count})));
  // Any order and any cut give the same bits.
  std::shuffle(numbers.begin(), numbers.end(), engine);
  std::vector<Accumulator<terms>> parts;
  for (int64_t at = 0; at < count;) {
    int64_t some = draw(engine, 1, count - at);
    add(parts.emplace_back(), Line{numbers.data() + at, some});
    at += some;
  }
  std::shuffle(parts.begin(), parts.end(), engine);
  Accumulator<terms> sum;
  for (const Accumulator<terms> &part : parts)
    sum.add(part);
  ASSERT_EQ(sum, whole);
}

template <Terms terms> void checkColumns(Engine &engine) {
  auto kind = Kind(draw(engine, 0, int64_t(Kind::Last)));
  int64_t rows = draw(engine, 0, 9) ? draw(engine, 0, 300) : draw(engine, 4000, 9000);
  int64_t columns = draw(engine, 1, kColumns), stride = columns + draw(engine, 0, 40);
  SCOPED_TRACE("kind " + std::to_string(int(kind)) + ", " + std::to_string(rows) + " rows of " +
               std::to_string(columns));
  std::vector<float> matrix = drawNumbers(engine, kind, rows * stride);
  // Several in a column, too: what they leave in the words of a sweep must not matter.
  if (rows > 0 && draw(engine, 0, 3) == 0)
    for (int64_t count = draw(engine, 1, 40); count > 0; --count)
      matrix[size_t(draw(engine, 0, rows * stride - 1))] = draw(engine, 0, 3)   ? kInfinity
                                                           : draw(engine, 0, 1) ? kNaN
                                                                                : -kNaN;
  Strip strip{matrix.data(), rows, columns, stride};
  std::vector<Accumulator<terms>> sums(static_cast<size_t>(columns));
  double totals[kColumns];
  add(sums.data(), strip);
  total<terms>(totals, strip);
  for (int64_t c = 0; c < columns; ++c) {
    std::vector<float> column;
    for (int64_t r = 0; r < rows; ++r)
      column.push_back(matrix[size_t(r * stride + c)]);
    Accumulator<terms> expected;
    add(expected, Line{column.data(), rows});
    ASSERT_EQ(sums[size_t(c)], expected);
    ASSERT_EQ(std::bit_cast<uint64_t>(totals[c]), std::bit_cast<uint64_t>(expected.total()));
  }
}

TEST(Sums, LinesInAnyOrderAndCut) {
  Engine engine(std::random_device{}());
  for (int64_t i = 0; i < draws(200) && !HasFatalFailure(); ++i) {
    int64_t most = i % 20 == 0 ? 20000 : i % 4 == 0 ? 5000 : 60;
    checkLines<Terms::Values>(engine, most);
    checkLines<Terms::Squares>(engine, most);
  }
}

TEST(Sums, Columns) {
  Engine engine(std::random_device{}());
  for (int64_t i = 0; i < draws(60) && !HasFatalFailure(); ++i) {
    checkColumns<Terms::Values>(engine);
    checkColumns<Terms::Squares>(engine);
  }
}

// A sum that ends just beside the middle of two f64 numbers, by a bit far below.
TEST(Sums, RoundsOnce) {
  auto sumOf = [](std::vector<float> numbers) {
    return total<Terms::Values>(Line{numbers.data(), int64_t(numbers.size())});
  };
  EXPECT_EQ(sumOf({1.0f, 0x1p-53f}), 1.0);
  EXPECT_EQ(sumOf({1.0f, 0x1p-53f, 0x1p-149f}), 1.0 + 0x1p-52);
  EXPECT_EQ(sumOf({1.0f, 0x1p-53f, -0x1p-149f}), 1.0);
  EXPECT_EQ(sumOf({-1.0f, -0x1p-53f, -0x1p-149f}), -1.0 - 0x1p-52);
  EXPECT_EQ(sumOf({0x1p127f, 0x1p-149f, -0x1p127f}), 0x1p-149);
  EXPECT_FALSE(std::signbit(sumOf({-0.0f, -0.0f})));
  EXPECT_FALSE(std::signbit(sumOf({})));
  std::vector<float> squares = {0x1p127f, 0x1p-149f};
  Accumulator<Terms::Squares> sum;
  add(sum, Line{squares.data(), 2});
  sum.add(-1, 254);
  EXPECT_EQ(sum.total(), 0x1p-298);
}

TEST(Sums, WhatIsNotFinite) {
  auto sumOf = [](std::vector<float> numbers) {
    numbers.resize(20, 1.0f);
    return total<Terms::Values>(Line{numbers.data(), 20});
  };
  EXPECT_EQ(sumOf({kInfinity}), double(kInfinity));
  EXPECT_EQ(sumOf({-kInfinity, 2.0f, -kInfinity}), -double(kInfinity));
  EXPECT_TRUE(std::isnan(sumOf({kInfinity, -kInfinity})));
  EXPECT_TRUE(std::isnan(sumOf({-kNaN})));
  EXPECT_TRUE(std::isnan(sumOf({kNaN, kInfinity})));
  float infinite[] = {-kInfinity};
  EXPECT_EQ(total<Terms::Squares>(Line{infinite, 1}), double(kInfinity));
  // Parts that are not finite give the same in any order.
  Accumulator<Terms::Values> plus, minus, nan, one;
  plus.addInfinity(false), minus.addInfinity(true), nan.addNaN(), one.add(1, 0);
  for (auto [a, b] : {std::pair(plus, one), {minus, one}, {nan, one}, {plus, minus}, {plus, nan}}) {
    Accumulator<Terms::Values> first = a, second = b;
    first.add(b), second.add(a);
    EXPECT_EQ(first, second);
    EXPECT_FALSE(std::isfinite(first.total()));
  }
}

// 2^40 of the largest numbers of either sign are within the range, and equal sums have equal bits.
TEST(Sums, RangeOfAccumulators) {
  Accumulator<Terms::Values> sum, part;
  part.add((1 << 24) - 1, 104);
  for (int i = 0; i < 40; ++i)
    part.add(Accumulator(part));
  EXPECT_EQ(part.total(), double(std::numeric_limits<float>::max()) * 0x1p40);
  sum.add(part);
  sum.add(-((1 << 24) - 1), 144);
  EXPECT_EQ(sum, Accumulator<Terms::Values>());
  sum.add(-((1 << 24) - 1), 144);
  EXPECT_EQ(sum.total(), -part.total());
}

template <typename Number> void checkType(Engine &engine, plan::DType type, auto &&toFloat) {
  for (int i = 0; i < 50; ++i) {
    std::vector<Number> stored;
    std::vector<float> numbers;
    for (int64_t left = draw(engine, 1, 300); left > 0; --left) {
      stored.push_back(std::bit_cast<Number>(uint16_t(draw(engine, 0, 65535))));
      if (float number = toFloat(stored.back()); std::isfinite(number))
        numbers.push_back(number);
      else
        stored.pop_back();
    }
    ASSERT_EQ(total<Terms::Values>(Line{stored.data(), int64_t(stored.size()), type}),
              total<Terms::Values>(Line{numbers.data(), int64_t(numbers.size())}));
    ASSERT_EQ(total<Terms::Squares>(Line{stored.data(), int64_t(stored.size()), type}),
              total<Terms::Squares>(Line{numbers.data(), int64_t(numbers.size())}));
  }
}

TEST(Sums, TypesOf16Bits) {
  Engine engine(7);
  checkType<uint16_t>(engine, plan::DType::BF16,
                      [](uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); });
  checkType<_Float16>(engine, plan::DType::F16, [](_Float16 number) { return float(number); });
}

/// Lines in pieces, as a kernel makes their terms, have the results of whole lines.
TEST(Pieces, AddUpToLines) {
  Engine engine(11);
  for (int64_t n = 0, cases = draws(200); n < cases; ++n) {
    bool ofColumns = draw(engine, 0, 1);
    auto kind = plan::Reduction(draw(engine, 0, 4));
    int64_t lines = ofColumns ? draw(engine, 1, kColumns) : 1;
    int64_t count = draw(engine, 1, ofColumns ? 300 : 20000);
    std::vector<float> numbers =
        drawNumbers(engine, Kind(draw(engine, 0, int64_t(Kind::Last))), lines * count);
    if (draw(engine, 0, 9) == 0)
      numbers[size_t(draw(engine, 0, int64_t(numbers.size()) - 1))] =
          draw(engine, 0, 1) ? kNaN : -kInfinity;
    BlockReduction whole{kind,
                         0,
                         ofColumns ? Remains::Columns : Remains::Rows,
                         plan::DType::F32,
                         ofColumns ? count : 1,
                         ofColumns ? lines : count};
    std::vector<float> expected(static_cast<size_t>(lines)),
        found(static_cast<size_t>(lines), 7.0f);
    whole.run(Phase::Whole, nullptr, numbers.data(), expected.data(), 0, whole.items(Phase::Whole));
    std::vector<float> terms(kPieceTerms);
    std::vector<int64_t> state(640);
    for (int64_t done = 0, size; done < count; done += size) {
      size = std::min(count - done, draw(engine, 1, kPieceTerms / (ofColumns ? kPieceStride : 1)));
      for (int64_t i = 0; i < size; ++i)
        for (int64_t c = 0; c < lines; ++c)
          terms[size_t(ofColumns ? i * kPieceStride + c : i)] =
              numbers[size_t(ofColumns ? (done + i) * lines + c : done + i)];
      reduce(kind,
             {ofColumns, count, done, ofColumns ? size : 1, ofColumns ? lines : size, terms.data()},
             state.data(), found.data());
      if (done + size < count)
        ASSERT_EQ(found[0], 7.0f); // nothing is written before the end
    }
    for (int64_t c = 0; c < lines; ++c)
      ASSERT_EQ(std::bit_cast<uint32_t>(found[size_t(c)]),
                std::bit_cast<uint32_t>(expected[size_t(c)]))
          << "case " << n << ", line " << c << " of " << lines << ", " << count << " terms";
  }
}

/// Rows of a matrix that several ranks have, each in several accumulators, have the results of the whole matrix.
TEST(Parts, AddUpToLines) {
  Engine engine(13);
  for (int64_t n = 0, cases = draws(200); n < cases; ++n) {
    auto kind = plan::Reduction(draw(engine, 0, 4));
    auto remains = Remains(draw(engine, 0, 2));
    int64_t rows = draw(engine, 1, 90), cols = draw(engine, 1, 150);
    std::vector<float> numbers =
        drawNumbers(engine, Kind(draw(engine, 0, int64_t(Kind::Last))), rows * cols);
    if (draw(engine, 0, 9) == 0)
      numbers[size_t(draw(engine, 0, rows * cols - 1))] = draw(engine, 0, 1) ? kNaN : kInfinity;
    BlockReduction whole{kind, 0, remains, plan::DType::F32, rows, cols};
    int64_t lines = remains == Remains::One ? 1 : remains == Remains::Rows ? rows : cols;
    std::vector<float> expected(static_cast<size_t>(lines));
    std::vector<char> scratch(size_t(whole.parts() * kPartBytes));
    for (Phase phase : whole.phases())
      whole.run(phase, scratch.data(), numbers.data(), expected.data(), 0, whole.items(phase));
    // A part has some columns of all rows, or some rows of all columns, and as many sums for each line.
    int64_t parts = draw(engine, 1, 5), count = draw(engine, 1, 3), each = bytesOf(kind);
    bool cutsColumns = draw(engine, 0, 1);
    if (remains != Remains::One)
      cutsColumns = remains == Remains::Rows, count = 1;
    std::vector<std::vector<char>> sums;
    for (int64_t part = 0, done = 0, all = cutsColumns ? cols : rows; part < parts; ++part) {
      sums.emplace_back(size_t(lines * count * each), 'x');
      begin(kind, lines * count, sums.back().data());
      int64_t size = part + 1 == parts ? all - done : draw(engine, 0, all - done);
      for (int64_t i = 0, left; i < count; ++i, done += left, size -= left) {
        left = i + 1 == count ? size : draw(engine, 0, size);
        add(kind,
            {remains, cutsColumns ? rows : left, cutsColumns ? left : cols,
             numbers.data() + done * (cutsColumns ? 1 : cols), cols},
            sums.back().data() + i * each);
      }
    }
    for (int64_t line = 0; line < lines; ++line) {
      std::vector<const void *> of;
      for (const std::vector<char> &part : sums)
        of.push_back(part.data() + line * count * each);
      int64_t terms = rows * cols / lines;
      ASSERT_EQ(std::bit_cast<uint32_t>(finish(kind, terms, of, count)),
                std::bit_cast<uint32_t>(expected[size_t(line)]))
          << "case " << n << ", line " << line << " of " << lines << ", " << terms << " terms";
    }
  }
}

} // namespace

//===- PrintValue.cpp - Watched values as tables of numbers ----------------===//

#include "runtime/geometry/Geometry.h"
#include "tools/stepc/Run.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
#include <cmath>

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;
using manifest::TensorType;

static constexpr int64_t kMostShown = 8; // rows, and numbers in a row
static constexpr size_t kMostColumns = 120;

/// The fewest decimal digits that give the same number when they are read in its type: at most 9 for f32.
/// Only the reference has numbers of f64, which are rounded to 8 digits.
static std::string numberText(double value, TensorType type) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  std::vector<uint8_t> bytes = filled(value, type, 1);
  char text[64];
  double read = value;
  for (int digits = 1; digits <= (type == TensorType::F64 ? 8 : 9); ++digits) {
    auto [end, error] =
        std::to_chars(text, std::end(text), value, std::chars_format::scientific, digits - 1);
    std::from_chars(text, end, read);
    if (filled(read, type, 1) == bytes)
      break;
  }
  return {text, std::to_chars(text, std::end(text), read).ptr};
}

/// The indices of an axis that are shown, in order. -1 stands for all indices that are left out.
static std::vector<int64_t> shownPlaces(int64_t size) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < std::min(size, kMostShown); ++i)
    places.push_back(size <= kMostShown || i < kMostShown / 2 ? i : size - kMostShown + i);
  if (size > kMostShown)
    places.insert(places.begin() + kMostShown / 2, -1);
  return places;
}

/// Prints rows of numbers in columns of equal width. A row that is too wide goes on in a line of its own.
static void printTable(llvm::raw_ostream &os, int64_t cols, TensorType type,
                       llvm::ArrayRef<double> values) {
  std::vector<std::vector<std::string>> lines; // an empty text stands for what is left out
  size_t width = 0;
  for (int64_t row : shownPlaces(int64_t(values.size()) / cols)) {
    std::vector<std::string> &line = lines.emplace_back();
    for (int64_t col : row < 0 ? std::vector<int64_t>{-1} : shownPlaces(cols)) {
      line.push_back(col < 0 ? "" : numberText(values[row * cols + col], type));
      width = std::max(width, line.back().size());
    }
  }
  for (const std::vector<std::string> &line : lines) {
    size_t column = 0;
    for (const std::string &number : line) {
      size_t cell = 2 + (number.empty() ? 1 : width);
      if (column + cell > kMostColumns) {
        os << "\n  ";
        column = 2;
      }
      column += cell;
      if (number.empty())
        os << "  …";
      else
        os.indent(cell - number.size()) << number;
    }
    os << '\n';
  }
}

/// Prints least, most, rms, NaNs and infinite numbers, because a table may leave out most numbers.
static void printSummary(llvm::raw_ostream &os, TensorType type, llvm::ArrayRef<double> values) {
  int64_t nans = 0, finite = 0;
  double least = INFINITY, most = -INFINITY, squares = 0;
  for (double value : values) {
    nans += std::isnan(value);
    if (!std::isfinite(value))
      continue;
    ++finite;
    least = std::min(least, value);
    most = std::max(most, value);
    squares += value * value;
  }
  os << "  ";
  if (finite)
    os << "min " << numberText(least, type) << ", max " << numberText(most, type) << ", rms "
       << llvm::format("%.4g, ", std::sqrt(squares / double(finite)));
  os << nans << " NaN, " << int64_t(values.size()) - finite - nans << " infinite of "
     << values.size() << '\n';
}

/// The index of a matrix in its stack, as "[2, 0]". Empty if there is one matrix.
static std::string matrixIndex(const plan::Group &group, int64_t matrix) {
  std::string text;
  for (int64_t axis = group.batchAxes - 1; axis >= 0; --axis) {
    text = std::to_string(matrix % group.shape[axis]) + (text.empty() ? "]" : ", " + text);
    matrix /= group.shape[axis];
  }
  return text.empty() ? "" : "[" + text;
}

void driver::printValue(llvm::raw_ostream &os, int64_t step, StringRef parameter,
                        const WatchedValue &watched, const plan::Group &given, plan::ValueKind kind,
                        TensorType type, llvm::ArrayRef<double> values) {
  auto print = [&](const std::string &index, llvm::ArrayRef<int64_t> shape,
                   llvm::ArrayRef<double> block) {
    os << "step " << step << ", " << parameter << index << ", " << watched.fullName() << ": "
       << (watched.isCondition ? "condition" : manifest::toString(type).lower()) << ' '
       << (watched.isScalar ? "scalar" : plan::name(given, kind));
    if (watched.isScalar || kind == plan::ValueKind::One) {
      os << " = " << numberText(block[0], type) << '\n';
      return;
    }
    os << " [";
    llvm::interleaveComma(shape, os);
    os << "]\n";
    printTable(os, shape.empty() ? 1 : shape.back(), type, block);
    if (watched.isCondition)
      os << "  true for " << llvm::count(block, 1) << " of " << block.size() << '\n';
    else
      printSummary(os, type, block);
  };
  // Print a value whole if the parameter is a vector, or has axes that nothing declares as matrices.
  if (!given.flatten && given.batchAxes == 0 && given.shape.size() != 2)
    return print("", given.shape, values);
  // The whole parameter on one rank, part by part if the rule sees parts.
  plan::Group group = given;
  group.joined = 0;
  for (auto *list : {&group.placements, &group.gradientPlacements, &group.statePlacements,
                     &group.reducedPlacements})
    list->clear();
  int64_t parts = group.parts.empty() ? 0 : int64_t(group.division.parts.size());
  for (int64_t part = 0; part < std::max<int64_t>(1, parts); ++part) {
    group.parts = parts ? std::vector<int64_t>{part} : std::vector<int64_t>();
    plan::View view = geometry::view(group, kind);
    int64_t size = view.rows * view.cols;
    std::vector<double> blocks(view.blocks * size);
    for (const geometry::Rect &rect : geometry::rectangles(group, {}, 0, kind))
      for (int64_t row = 0; row < rect.rows; ++row)
        std::copy_n(values.begin() + rect.offset + row * rect.stride, rect.cols,
                    blocks.begin() + rect.block * size + (rect.row + row) * view.cols + rect.col);
    std::vector<int64_t> shape = {view.rows, view.cols};
    if (kind.isLine())
      shape = {size};
    std::string partIndex = parts ? "[" + std::to_string(part) + "]" : "";
    // A scalar is the same for all matrices of a stack.
    for (int64_t block = 0; block < (watched.isScalar ? 1 : view.blocks); ++block)
      print((watched.isScalar ? "" : matrixIndex(group, block)) + partIndex, shape,
            llvm::ArrayRef<double>(blocks).slice(block * size, size));
  }
}

void driver::printSkipped(llvm::raw_ostream &os, int64_t step, StringRef parameter, bool skipsAll) {
  os << "step " << step << ", " << parameter << ": not stepped, "
     << (skipsAll ? "the model skips the step" : "it has no gradient") << '\n';
}

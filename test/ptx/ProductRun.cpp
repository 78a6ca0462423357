//===- ProductRun.cpp - Runs a product's kernel and checks it --------------===//

#include "test/ptx/ProductRun.h"
#include "test/ptx/Error.h"
#include "test/ptx/Machine.h"
#include "test/ptx/Numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stepc::ptx {
namespace {

/// A normal number, by twelve even ones.
float drawNormal(Random &random) {
  float sum = -6;
  for (int i = 0; i < 12; ++i)
    sum += float(random.next() >> 40) * 0x1p-24f;
  return sum;
}

void fill(Matrices &made, Random &random) {
  for (uint32_t z = 0; z < made.batches; ++z)
    for (uint32_t row = 0; row < made.rows; ++row)
      for (uint32_t column = 0; column < made.columns; ++column)
        made.set(z, row, column, drawNormal(random));
}

/// acc[j] += a * row[j]
__attribute__((target_clones("arch=x86-64-v3", "default"))) void
addScaled(double *acc, double a, const double *row, size_t count) {
  for (size_t j = 0; j < count; ++j)
    acc[j] += a * row[j];
}

TensorMap mapOf(const Matrices &of, uint64_t address, uint32_t inner, uint32_t outer) {
  TensorMap map;
  map.address = address;
  map.elementBytes = bytesOf(of.type);
  map.rank = 3;
  map.dimensions = {of.columns, of.rows, of.batches};
  uint64_t row = uint64_t(of.rowElements()) * map.elementBytes;
  map.strides = {row, row * of.rows};
  map.box = {inner, outer, 1};
  return map;
}

template <class T> void append(std::vector<uint8_t> &bytes, const T &value) {
  auto *from = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), from, from + sizeof(T));
}

/// Relative to the whole matrix, in the Frobenius norm.
double errorOf(const ProductKernel &kernel, const ProductProblem &of, const Matrices &out) {
  const ProductShape &shape = of.shape;
  double wrong = 0, all = 0;
  std::vector<double> rhs(size_t(shape.k) * shape.n), sums(shape.n);
  for (uint32_t z = 0; z < shape.batches; ++z) {
    for (uint32_t k = 0; k < shape.k; ++k)
      for (uint32_t j = 0; j < shape.n; ++j)
        rhs[size_t(k) * shape.n + j] =
            kernel.isRhsTransposed ? of.rhs.at(z, j, k) : of.rhs.at(z, k, j);
    for (uint32_t i = 0; i < shape.m; ++i) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (uint32_t k = 0; k < shape.k; ++k)
        addScaled(sums.data(), kernel.isLhsTransposed ? of.lhs.at(z, k, i) : of.lhs.at(z, i, k),
                  &rhs[size_t(k) * shape.n], shape.n);
      for (uint32_t j = 0; j < shape.n; ++j) {
        double expected = of.alpha * sums[j] +
                          (of.hasAddend ? of.beta * of.addend.at(z, i, j) : 0) +
                          (of.hasShift && i == j ? of.shift : 0);
        double found = out.at(z, i, j);
        // What is undefined is as wrong as can be.
        wrong += found == found ? (found - expected) * (found - expected) : 1e300;
        all += expected * expected;
      }
    }
  }
  return std::sqrt(wrong / all);
}

struct Placed {
  uint64_t lhs, rhs, out, addend;
};

class Runner {
public:
  Runner(const ProductKernel &kernel, const std::vector<ProductProblem> &problems,
         const ProductOptions &options)
      : kernel(kernel), problems(problems), options(options), machine(options.seed) {}

  ProductResult run() {
    place();
    std::vector<Tile> tiles;
    for (size_t p = 0; p < problems.size(); ++p)
      for (uint32_t z = 0; z < problems[p].shape.batches; ++z) {
        uint32_t flags = (problems[p].hasAddend ? TileOptions::Addend : 0) |
                         (problems[p].hasShift ? TileOptions::Shift : 0);
        auto more = tilesOf(problems[p].shape, uint32_t(p), z, kernel.cluster(), kernel.isSymmetric,
                            problems[p].isHalf && kernel.hasHalfTiles, flags);
        tiles.insert(tiles.end(), more.begin(), more.end());
      }
    for (size_t i = tiles.size(); i > 1; --i)
      std::swap(tiles[i - 1], tiles[machine.random.below(uint32_t(i))]);
    if (options.edit)
      options.edit(tiles);
    TileLists lists = shareOut(tiles, options.clusters);
    Launch launch;
    launch.program = &kernel.program;
    launch.clusters = options.clusters;
    launch.dynamicBytes = kernel.sharedBytes;
    launch.parameters = parameters(lists);
    machine.residentClusters = options.resident;
    machine.run(launch);
    return check();
  }

private:
  const ProductKernel &kernel;
  const std::vector<ProductProblem> &problems;
  const ProductOptions &options;
  Machine machine;
  std::vector<Placed> placed;

  uint64_t allocate(const char *name, size_t problem, const Matrices &of, bool isWritable) {
    return machine.memory.allocate(std::string(name) + " of problem " + std::to_string(problem),
                                   of.bytes.data(), of.bytes.size(), isWritable);
  }

  static Matrices emptyOut(const ProductKernel &kernel, const ProductShape &shape) {
    return Matrices(kernel.out, shape.batches, shape.m, shape.n);
  }

  void place() {
    for (size_t p = 0; p < problems.size(); ++p) {
      const ProductProblem &each = problems[p];
      Placed at{};
      at.out = allocate("the result", p, emptyOut(kernel, each.shape), true);
      at.lhs = allocate("lhs", p, each.lhs, false);
      at.rhs = kernel.isSymmetric ? at.lhs : allocate("rhs", p, each.rhs, false);
      at.addend = each.hasAddend ? allocate("the addend", p, each.addend, false) : at.out;
      placed.push_back(at);
    }
    if (options.alias)
      placed[options.alias->first].out = placed[options.alias->second].lhs;
  }

  std::array<TensorMap, 4> mapsOf(size_t p) const {
    const ProductProblem &of = problems[p];
    Matrices out = emptyOut(kernel, of.shape);
    uint32_t outColumns = 128 / bytesOf(kernel.out);
    return {mapOf(of.lhs, placed[p].lhs, 64, kernel.isLhsTransposed ? 64 : 128),
            mapOf(kernel.isSymmetric ? of.lhs : of.rhs, placed[p].rhs, 64, 64),
            mapOf(out, placed[p].out, outColumns, 64),
            of.hasAddend ? mapOf(of.addend, placed[p].addend, 128 / bytesOf(kernel.addend), 64)
                         : mapOf(out, placed[p].out, outColumns, 64)};
  }

  std::vector<uint8_t> parameters(const TileLists &lists) {
    std::vector<uint8_t> table, all;
    for (size_t p = 0; p < problems.size(); ++p) {
      for (const TensorMap &map : mapsOf(p))
        append(table, encode(map));
      append(table, std::array<float, 32>{problems[p].alpha, problems[p].beta, problems[p].shift});
    }
    auto upload = [&](const char *name, const void *bytes, size_t size) {
      return machine.memory.allocate(name, bytes, size, false);
    };
    append(all, upload("the problems", table.data(), table.size()));
    uint64_t tiles = upload("the tiles", lists.tiles.data(), lists.tiles.size() * sizeof(Tile));
    uint64_t begins = upload("the lists", lists.begins.data(), lists.begins.size() * 4);
    append(all, uint64_t(problems.size()));
    append(all, tiles), append(all, begins);
    // A kernel may have an argument more: the number of items of the launch.
    while (all.size() < kernel.program.kernel.parameterBytes)
      append(all, uint64_t(lists.tiles.size()));
    return all;
  }

  ProductResult check() {
    ProductResult result;
    result.instructions = machine.clock;
    for (size_t p = 0; p < problems.size(); ++p) {
      const ProductProblem &of = problems[p];
      Matrices out = emptyOut(kernel, of.shape);
      const GlobalMemory::Allocation &memory = machine.memory.at(placed[p].out);
      out.bytes = memory.bytes;
      checkWrites(p, out, memory);
      double error = errorOf(kernel, of, out);
      if (!(error < 4e-3))
        fail("the result of problem ", p, " has the relative error ", error);
      result.error = std::max(result.error, error);
      if (kernel.isSymmetric)
        checkSymmetry(p, out);
      result.outs.push_back(std::move(out));
    }
    return result;
  }

  static void checkWrites(size_t p, const Matrices &out, const GlobalMemory::Allocation &memory) {
    uint32_t pieces = bytesOf(out.type) / 2, row = out.rowElements() * pieces;
    for (size_t i = 0; i < memory.writes.size(); ++i) {
      uint32_t column = uint32_t(i % row) / pieces;
      if (memory.writes[i] != (column < out.columns ? 1 : 0))
        fail("element ", column, " of row ", i / row, " of problem ", p, "'s results is written ",
             int(memory.writes[i]), " times");
    }
  }

  static void checkSymmetry(size_t p, const Matrices &out) {
    for (uint32_t z = 0; z < out.batches; ++z)
      for (uint32_t i = 0; i < out.rows; ++i)
        for (uint32_t j = 0; j < i; ++j)
          if (out.bits(z, i, j) != out.bits(z, j, i))
            fail("elements (", i, ", ", j, ") and (", j, ", ", i, ") of problem ", p,
                 "'s result differ");
  }
};

} // namespace

Matrices::Matrices(Type type, uint32_t batches, uint32_t rows, uint32_t columns)
    : type(type), batches(batches), rows(rows), columns(columns) {
  // What nothing sets is undefined.
  bytes.assign(size_t(batches) * rows * rowElements() * bytesOf(type), 0xff);
}

uint32_t Matrices::rowElements() const {
  uint32_t multiple = 16 / bytesOf(type);
  return (columns + multiple - 1) / multiple * multiple;
}

uint32_t Matrices::bits(uint32_t batch, uint32_t row, uint32_t column) const {
  size_t index = (size_t(batch) * rows + row) * rowElements() + column;
  uint32_t value = 0;
  std::memcpy(&value, &bytes[index * bytesOf(type)], bytesOf(type));
  return value;
}

double Matrices::at(uint32_t batch, uint32_t row, uint32_t column) const {
  uint32_t value = bits(batch, row, column);
  return type == Type::Bf16  ? fromBf16(uint16_t(value))
         : type == Type::F16 ? fromF16(uint16_t(value))
                             : std::bit_cast<float>(value);
}

void Matrices::set(uint32_t batch, uint32_t row, uint32_t column, float value) {
  size_t index = (size_t(batch) * rows + row) * rowElements() + column;
  uint32_t word = type == Type::Bf16  ? toBf16(value)
                  : type == Type::F16 ? toF16(value)
                                      : std::bit_cast<uint32_t>(value);
  std::memcpy(&bytes[index * bytesOf(type)], &word, bytesOf(type));
}

ProductProblem drawProblem(const ProductKernel &kernel, ProductShape shape, uint64_t seed) {
  Random random(seed);
  ProductProblem made;
  if (kernel.isSymmetric)
    shape.n = shape.m;
  made.shape = shape;
  made.lhs = kernel.isLhsTransposed ? Matrices(kernel.in, shape.batches, shape.k, shape.m)
                                    : Matrices(kernel.in, shape.batches, shape.m, shape.k);
  fill(made.lhs, random);
  if (!kernel.isSymmetric) {
    made.rhs = kernel.isRhsTransposed ? Matrices(kernel.in, shape.batches, shape.n, shape.k)
                                      : Matrices(kernel.in, shape.batches, shape.k, shape.n);
    fill(made.rhs, random);
  } else {
    made.rhs = made.lhs;
  }
  made.alpha = 0.51f;
  if (kernel.hasAddend) {
    made.hasAddend = true;
    made.beta = -2.77f;
    made.addend = Matrices(kernel.addend, shape.batches, shape.m, shape.n);
    fill(made.addend, random);
    if (kernel.isSymmetric)
      for (uint32_t z = 0; z < shape.batches; ++z)
        for (uint32_t i = 0; i < shape.m; ++i)
          for (uint32_t j = 0; j < i; ++j)
            made.addend.set(z, i, j, float(made.addend.at(z, j, i)));
  }
  if (kernel.hasShift) {
    made.hasShift = true;
    made.shift = 3.5f;
  }
  return made;
}

ProductResult runProduct(const ProductKernel &kernel, const std::vector<ProductProblem> &problems,
                         const ProductOptions &options) {
  return Runner(kernel, problems, options).run();
}

} // namespace stepc::ptx

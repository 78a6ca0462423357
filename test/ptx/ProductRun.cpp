//===- ProductRun.cpp - Runs a product's kernel and checks it --------------===//

#include "test/ptx/ProductRun.h"
#include "test/ptx/Error.h"
#include "test/ptx/Machine.h"
#include "test/ptx/Numbers.h"

#include <algorithm>
#include <bit>
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

TensorMap mapOf(const Matrices &of, uint64_t address, uint32_t boxRows) {
  TensorMap map;
  map.address = address;
  map.elementBytes = of.elementBytes();
  map.rank = 3;
  map.dimensions = {of.columns, of.rows, of.batches};
  uint64_t row = uint64_t(of.rowElements()) * map.elementBytes;
  map.strides = {row, row * of.rows};
  map.box = {128 / map.elementBytes, boxRows, 1};
  return map;
}

/// Relative to the whole matrix, in the Frobenius norm. Above the diagonal, a symmetric result has copies of the elements
/// below it.
double errorOf(const ProductKernel &kernel, const ProductProblem &of, const Matrices &out) {
  const ProductShape &shape = of.shape;
  double wrong = 0, all = 0;
  std::vector<double> rhs(size_t(shape.k) * shape.n), products(size_t(shape.m) * shape.n);
  for (uint32_t z = 0; z < shape.batches; ++z) {
    for (uint32_t k = 0; k < shape.k; ++k)
      for (uint32_t j = 0; j < shape.n; ++j)
        rhs[size_t(k) * shape.n + j] =
            kernel.form.transposeRhs ? of.rhs.at(z, j, k) : of.rhs.at(z, k, j);
    for (uint32_t i = 0; i < shape.m; ++i) {
      double *sums = &products[size_t(i) * shape.n];
      std::fill_n(sums, shape.n, 0.0);
      for (uint32_t k = 0; k < shape.k; ++k)
        addScaled(sums, kernel.form.transposeLhs ? of.lhs.at(z, k, i) : of.lhs.at(z, i, k),
                  &rhs[size_t(k) * shape.n], shape.n);
    }
    for (uint32_t i = 0; i < shape.m; ++i)
      for (uint32_t j = 0; j < shape.n; ++j) {
        bool isMirrored = kernel.form.symmetric && j > i;
        double sum = products[isMirrored ? size_t(j) * shape.n + i : size_t(i) * shape.n + j];
        double expected = of.alpha * sum + (of.hasAddend ? of.beta * of.addend.at(z, i, j) : 0) +
                          (of.hasShift && i == j ? of.shift : 0);
        double found = out.at(z, i, j);
        // What is undefined is as wrong as can be.
        wrong += found == found ? (found - expected) * (found - expected) : 1e300;
        all += expected * expected;
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
    std::vector<plan::TiledProduct> products;
    for (const ProductProblem &of : problems)
      products.push_back({of.shape.batches, of.shape.m, of.shape.n, of.shape.k,
                          kernel.form.symmetric, of.hasAddend, of.hasShift});
    plan::TileLists lists = makeLists(products, kernel.cluster(), options.lists, machine.random);
    Launch launch;
    Program program = kernel.program;
    uint64_t stuck = pointToWord(program);
    launch.program = &program;
    launch.isDependent = true;
    launch.clusters = options.lists.lists;
    launch.dynamicBytes = kernel.sharedBytes;
    launch.parameters = parameters(lists);
    machine.residentClusters = options.resident;
    try {
      machine.run(launch);
    } catch (const Error &error) {
      uint32_t number = 0;
      if (stuck)
        std::memcpy(&number, machine.memory.at(stuck).bytes.data(), sizeof number);
      if (!number)
        throw;
      fail(error.what(), "; it waited for barrier ", number - 1);
    }
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
    return Matrices(kernel.form.out, shape.batches, shape.m, shape.n);
  }

  /// Lets a kernel with bounded waits write the number of a barrier to a word, whose address this returns.
  uint64_t pointToWord(Program &program) {
    uint64_t word = 0;
    for (GlobalArray &array : program.kernel.globalArrays)
      if (array.name == plan::stuckSymbol(kernel.name)) {
        word = machine.memory.allocate("the host's word", nullptr, 4, true);
        array.initial.resize(sizeof word);
        std::memcpy(array.initial.data(), &word, sizeof word);
      }
    return word;
  }

  void place() {
    for (size_t p = 0; p < problems.size(); ++p) {
      const ProductProblem &each = problems[p];
      Placed at{};
      at.out = allocate("the result", p, emptyOut(kernel, each.shape), true);
      at.lhs = allocate("lhs", p, each.lhs, false);
      bool isLhs = kernel.form.symmetric && !each.isOwnRhs;
      at.rhs = isLhs ? at.lhs : allocate("rhs", p, each.rhs, false);
      at.addend = each.hasAddend ? allocate("the addend", p, each.addend, false) : at.out;
      placed.push_back(at);
    }
    if (options.readsResult)
      placed.back().lhs = placed.front().out;
  }

  std::vector<uint8_t> parameters(const plan::TileLists &lists) {
    std::vector<stepc_product_problem> table(problems.size());
    for (size_t p = 0; p < problems.size(); ++p) {
      const ProductProblem &of = problems[p];
      Matrices out = emptyOut(kernel, of.shape);
      auto set = [](stepc_tensor_map &to, const TensorMap &map) {
        MapBytes bytes = encode(map);
        std::memcpy(&to, bytes.data(), bytes.size());
      };
      set(table[p].lhs, mapOf(of.lhs, placed[p].lhs, kernel.form.transposeLhs ? 64 : 128));
      set(table[p].rhs, mapOf(of.rhs, placed[p].rhs, 64));
      // A box of a result is square.
      uint32_t edge = 128 / out.elementBytes();
      set(table[p].out, mapOf(out, placed[p].out, edge));
      set(table[p].addend, mapOf(of.hasAddend ? of.addend : out, placed[p].addend, edge));
      table[p].alpha = of.alpha, table[p].beta = of.beta, table[p].shift = of.shift;
    }
    auto upload = [&](const char *name, const void *bytes, size_t size) {
      return machine.memory.allocate(name, bytes, size, false);
    };
    uint64_t arguments[] = {
        upload("the problems", table.data(), table.size() * sizeof table[0]),
        upload("the tiles", lists.tiles.data(), lists.tiles.size() * sizeof(Tile)),
        upload("the lists", lists.lists.data(), lists.lists.size() * sizeof lists.lists[0])};
    std::vector<uint8_t> bytes(sizeof arguments);
    std::memcpy(bytes.data(), arguments, sizeof arguments);
    return bytes;
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
      if (!(error < (kernel.form.out == Type::F32 ? 4e-4 : 4e-3)))
        fail("the result of problem ", p, " has the relative error ", error);
      result.error = std::max(result.error, error);
      if (kernel.form.symmetric)
        checkSymmetry(p, out);
      result.outs.push_back(std::move(out));
    }
    return result;
  }

  static void checkWrites(size_t p, const Matrices &out, const GlobalMemory::Allocation &memory) {
    // Writes are counted in pieces of 16 bits.
    uint32_t pieces = out.elementBytes() / 2, row = out.rowElements();
    for (size_t i = 0; i < memory.writes.size(); ++i) {
      size_t element = i / pieces, column = element % row;
      if (memory.writes[i] != (column < out.columns ? 1 : 0))
        fail("element ", column, " of row ", element / row, " of problem ", p,
             "'s results is written ", int(memory.writes[i]), " times");
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
  bytes.assign(size_t(batches) * rows * rowElements() * elementBytes(), 0xff);
}

uint32_t Matrices::rowElements() const {
  uint32_t access = 16 / elementBytes();
  return (columns + access - 1) / access * access;
}

uint32_t Matrices::bits(uint32_t batch, uint32_t row, uint32_t column) const {
  size_t index = (size_t(batch) * rows + row) * rowElements() + column;
  uint32_t value = 0;
  std::memcpy(&value, &bytes[index * elementBytes()], elementBytes());
  return value;
}

double Matrices::at(uint32_t batch, uint32_t row, uint32_t column) const {
  uint32_t value = bits(batch, row, column);
  return type == Type::F32   ? std::bit_cast<float>(value)
         : type == Type::F16 ? fromF16(uint16_t(value))
                             : fromBf16(uint16_t(value));
}

void Matrices::set(uint32_t batch, uint32_t row, uint32_t column, float value) {
  // Only operands are set, whose elements have 16 bits.
  size_t index = (size_t(batch) * rows + row) * rowElements() + column;
  uint16_t word = type == Type::F16 ? toF16(value) : toBf16(value);
  std::memcpy(&bytes[index * 2], &word, 2);
}

/// Copies the part above the diagonal below it.
static void makeSymmetric(Matrices &made) {
  for (uint32_t z = 0; z < made.batches; ++z)
    for (uint32_t i = 0; i < made.rows; ++i)
      for (uint32_t j = 0; j < i; ++j)
        made.set(z, i, j, float(made.at(z, j, i)));
}

ProductProblem drawProblem(const ProductKernel &kernel, ProductShape shape, uint64_t seed) {
  Random random(seed);
  ProductProblem made;
  bool isSquare = kernel.form.symmetric && kernel.form.transposeLhs == kernel.form.transposeRhs;
  if (kernel.form.symmetric)
    shape.n = shape.m;
  if (isSquare)
    shape.k = shape.m;
  made.shape = shape;
  auto matrices = [&](uint32_t rows, uint32_t columns, bool isTransposed) {
    Matrices drawn(kernel.form.lhs, shape.batches, isTransposed ? columns : rows,
                   isTransposed ? rows : columns);
    fill(drawn, random);
    return drawn;
  };
  made.lhs = matrices(shape.m, shape.k, kernel.form.transposeLhs);
  if (isSquare)
    makeSymmetric(made.lhs);
  made.isOwnRhs = isSquare && seed % 2 == 1;
  made.rhs = kernel.form.symmetric && !made.isOwnRhs
                 ? made.lhs
                 : matrices(shape.k, shape.n, kernel.form.transposeRhs);
  if (made.isOwnRhs)
    makeSymmetric(made.rhs);
  made.addend = matrices(shape.m, shape.n, false);
  if (kernel.form.symmetric)
    makeSymmetric(made.addend);
  made.alpha = 0.51f, made.beta = -2.77f;
  made.hasAddend = kernel.form.out == kernel.form.lhs;
  made.hasShift = kernel.form.symmetric;
  if (made.hasShift)
    made.shift = 3.5f;
  return made;
}

ProductResult runProduct(const ProductKernel &kernel, const std::vector<ProductProblem> &problems,
                         const ProductOptions &options) {
  return Runner(kernel, problems, options).run();
}

} // namespace stepc::ptx

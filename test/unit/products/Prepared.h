//===- Prepared.h - Products of random operands ------------------*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_PRODUCTS_PREPARED_H
#define STEPC_TEST_UNIT_PRODUCTS_PREPARED_H

#include "test/unit/products/Random.h"

#include <gtest/gtest.h>

namespace stepc::test {

struct Case {
  ReferenceProduct product;
  bool special;
  bool isAligned = false; ///< buffers, at 16 bytes
};

inline std::string describe(const Case &c) {
  const ReferenceProduct &p = c.product;
  std::string text = "slots " + std::to_string(p.slots) + ", " + std::to_string(p.m) + " x " +
                     std::to_string(p.n) + " x " + std::to_string(p.k) + ", " + nameOf(p.lhs) +
                     " · " + nameOf(p.rhs) + " -> " + nameOf(p.out);
  if (p.hasAddend)
    text += std::string(" plus ") + nameOf(p.addend);
  text += p.transposeLhs ? ", lhs transposed" : "";
  text += p.transposeRhs ? ", rhs transposed" : "";
  text += p.symmetric ? ", symmetric" : "";
  text += p.shift != 0 ? ", shifted" : "";
  return text + (c.special ? ", special values" : "") + (c.isAligned ? ", aligned" : "");
}

/// By the kernels of a GPU where no target is given, in the product's order.
inline Code compileProduct(const ReferenceProduct &p, const TargetShape *target,
                           Fault fault = Fault::None) {
  std::vector<std::string> types = {
      p.transposeLhs ? memref(p.lhs, p.k, p.m) : memref(p.lhs, p.m, p.k),
      p.transposeRhs ? memref(p.rhs, p.n, p.k) : memref(p.rhs, p.k, p.n), memref(p.out, p.m, p.n)};
  if (p.hasAddend)
    types.push_back(memref(p.addend, p.m, p.n));
  char flags[160];
  std::snprintf(flags, sizeof(flags), "alpha = %.17e : f64, beta = %.17e : f64%s%s%s}", p.alpha,
                p.beta, p.transposeLhs ? ", transpose_lhs" : "",
                p.transposeRhs ? ", transpose_rhs" : "", p.symmetric ? ", symmetric" : "");
  std::string shift = p.shift == 0 ? "" : "shift = " + std::to_string(p.shift) + " : f64, ";
  std::string text = "optim.product %0, %1 " + std::string(p.hasAddend ? "plus %3 " : "") +
                     "outs(%2 : " + types[2] + ") {" + shift + flags + " : " + types[0] + ", " +
                     types[1] + (p.hasAddend ? ", " + types[3] : "");
  return target ? compile(text, types, *target)
                : compileEmulated(text, types, fault, p.order == Order::TensorCore);
}

inline bool uses(Storage storage) { return storage == Storage::F16; }

/// What a product is given and should make.
struct Prepared {
  Prepared(const Case &c, Engine &engine)
      : p(c.product), lhs(p.lhs, p.slots * p.m * p.k, c.isAligned),
        rhs(p.rhs, p.slots * p.k * p.n, c.isAligned),
        addend(p.addend, p.slots * p.m * p.n, c.isAligned), isAligned(c.isAligned) {
    lhs.fill(engine, c.special);
    rhs.fill(engine, c.special);
    addend.fill(engine, c.special);
    // The symmetric product that Newton–Schulz asks for: X · Xᵀ.
    bool same = p.symmetric && p.lhs == p.rhs && p.transposeLhs != p.transposeRhs;
    rhsData = same ? lhs.data() : rhs.data();
  }
  /// Whether its kernels make it, and write nothing else.
  testing::AssertionResult run(const Code &code, Order order, Engine &engine) {
    if (!code.error.empty())
      return testing::AssertionFailure() << code.error;
    p.order = order;
    Buffer expected(p.out, p.slots * p.m * p.n), actual(p.out, expected.elements, isAligned);
    p.run(lhs.data(), rhsData, addend.data(), expected.data());
    Buffer scratch(Storage::F32, p.slots * code.scratchBytesPerBlock / 4);
    runInPieces(code, {lhs.data(), rhsData, actual.data(), addend.data()}, scratch.data(), p.slots,
                engine);
    int64_t at = actual.firstDifference(expected);
    if (at != -1)
      return testing::AssertionFailure()
             << "expected " << readNumber(expected.data(), p.out, at) << ", found "
             << readNumber(actual.data(), p.out, at) << " in block " << at / (p.m * p.n) << " row "
             << at % (p.m * p.n) / p.n << " column " << at % p.n;
    if (!actual.guardsIntact() || !scratch.guardsIntact() || !lhs.guardsIntact())
      return testing::AssertionFailure() << "something outside of the result was written";
    return testing::AssertionSuccess();
  }

  ReferenceProduct p;
  Buffer lhs, rhs, addend;
  bool isAligned;
  void *rhsData;

  Prepared(const Prepared &) = delete;
};

inline Storage drawStorage(Engine &engine) { return Storage(draw(engine, 0, 2)); }

inline float drawFactor(Engine &engine) {
  return draw(engine, 0, 1) ? 1.0f : std::normal_distribution<float>()(engine);
}

inline int64_t drawExtent(Engine &engine) {
  switch (draw(engine, 0, 3)) {
  case 0:
    return draw(engine, 1, 8);
  case 1:
    return draw(engine, 9, 40);
  case 2:
    return draw(engine, 41, 160);
  default:
    return 16 * draw(engine, 1, 9);
  }
}

inline ReferenceProduct plain(int64_t slots, int64_t m, int64_t n, int64_t k) {
  return {slots, m,     n,     k,     Storage::F32, Storage::F32, Storage::F32, Storage::F32,
          false, false, false, false, Order::Fused, 1.0f,         1.0f};
}

} // namespace stepc::test

#endif

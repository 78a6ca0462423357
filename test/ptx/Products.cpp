//===- Products.cpp - wgmma -------------------------------------------------===//

#include "test/ptx/Error.h"
#include "test/ptx/Machine.h"
#include "test/ptx/Multiply.h"

#include <algorithm>
#include <cstring>

namespace stepc::ptx {
namespace {

/// A matrix in the block's memory, as its descriptor says.
struct Descriptor {
  uint32_t start, leading, stride;

  Descriptor(uint64_t bits, bool isTransposed) {
    start = uint32_t(bits & 0x3fff) << 4;
    leading = uint32_t(bits >> 16 & 0x3fff) << 4;
    stride = uint32_t(bits >> 32 & 0x3fff) << 4;
    if (bits >> 62 != 1)
      fail("expected the 128-byte swizzle (1) in a descriptor, found ", bits >> 62);
    if (bits & ~0x40003fff3fff3fff)
      fail("expected zeros in a descriptor's other bits, its base offset included, found ", bits);
    if (stride % SharedMemory::kAtom || !stride)
      fail("expected a stride of whole swizzle patterns of 1024 bytes in a descriptor, found ",
           stride);
    if (isTransposed && (leading % SharedMemory::kAtom || !leading))
      fail("expected a leading stride of whole swizzle patterns of 1024 bytes in a descriptor, "
           "found ",
           leading);
    // Steps of k go on within a row of 128 bytes, or by whole patterns.
    uint32_t within = start % SharedMemory::kAtom;
    if (isTransposed ? within : within > 96 || within % 32)
      fail("expected a matrix that begins with 16 steps of a swizzle pattern, found it at byte ",
           within);
  }
};

/// Calls `chunk` with the place of each 16 bytes: the row (of M or N), the step of k, and how the eight elements go on.
/// K-major: one row, eight steps. Transposed: one step, eight rows.
template <class Chunk>
void eachChunk(const Descriptor &at, uint32_t rows, bool isTransposed, Chunk chunk) {
  if (!isTransposed) {
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t half = 0; half < 2; ++half)
        chunk(swizzle128(at.start + row / 8 * at.stride + row % 8 * 128 + half * 16), row,
              half * 8);
  } else {
    for (uint32_t step = 0; step < 16; ++step)
      for (uint32_t row = 0; row < rows; row += 8)
        chunk(swizzle128(at.start + row / 64 * at.leading + step / 8 * at.stride + step % 8 * 128 +
                         row % 64 * 2),
              row, step);
  }
}

void addAtoms(std::vector<uint32_t> &atoms, const Descriptor &at, uint32_t rows, bool isTransposed,
              const SharedMemory &shared) {
  uint32_t begin = at.start / SharedMemory::kAtom * SharedMemory::kAtom;
  auto add = [&](uint32_t address) {
    shared.checkRange(address, SharedMemory::kAtom);
    atoms.push_back(address / SharedMemory::kAtom);
  };
  if (!isTransposed)
    for (uint32_t row = 0; row < rows; row += 8)
      add(begin + row / 8 * at.stride);
  else
    for (uint32_t row = 0; row < rows; row += 64)
      for (uint32_t step = 0; step < 2; ++step)
        add(begin + row / 64 * at.leading + step * at.stride);
}

/// Elements of some rows, from the view of the asynchronous proxy.
void gather(SharedMemory &shared, const Descriptor &at, uint32_t rows, uint32_t first,
            uint32_t count, bool isTransposed, uint16_t (*elements)[16]) {
  eachChunk(at, rows, isTransposed, [&](uint32_t address, uint32_t row, uint32_t step) {
    if (row < first || row >= first + count)
      return;
    shared.checkAsyncRead16(address);
    uint16_t eight[8];
    std::memcpy(eight, shared.data() + address, 16);
    for (uint32_t e = 0; e < 8; ++e)
      (isTransposed ? elements[row - first + e][step] : elements[row - first][step + e]) = eight[e];
  });
}

uint64_t common(Warp &warp, Slot slot, const char *what) {
  const uint64_t *lanes = warp.at<uint64_t>(slot);
  for (int lane = 1; lane < 32; ++lane)
    if (lanes[lane] != lanes[0])
      fail("expected one ", what, " for all lanes");
  return lanes[0];
}

bool fence(Warp &warp, const Instruction &, uint32_t) {
  ++warp.fences;
  return true;
}

/// a: columns, b: whether elements are f16.
bool begin(Warp &warp, const Instruction &i, uint32_t mask) {
  // The predicate tells whether the accumulators count. Behind it stand factors of 1 and the two transposes.
  uint32_t adds = warp.predicate(i.sources[2]);
  if (adds != 0 && adds != mask)
    fail("expected one scale-d for all lanes");
  if (i.immediates[0] != 1 || i.immediates[1] != 1)
    fail("expected factors of 1, others are not modelled");
  for (Slot source : i.sources)
    if (!warp.written[source.index])
      fail("expected a register with a value");
  Product product{&i,
                  common(warp, i.sources[0], "descriptor"),
                  common(warp, i.sources[1], "descriptor"),
                  adds != 0,
                  {}};
  const Instruction *last = !warp.openProducts.empty() ? warp.openProducts.back().instruction
                            : !warp.products.empty()
                                ? warp.products.back().products.back().instruction
                                : nullptr;
  for (size_t n = 0; n < i.destinations.size(); ++n) {
    uint32_t index = i.destinations[n].index;
    if (warp.busy[index]) {
      // A row of products on the same accumulators needs no wait between them.
      if (!last || last->destinations.size() != i.destinations.size() ||
          last->destinations[n].index != index)
        fail("an accumulator is of another wgmma in flight");
    } else if (warp.written[index] == warp.fences || warp.read[index] == warp.fences) {
      fail("an accumulator was ", warp.read[index] == warp.fences ? "read" : "written",
           " behind the last wgmma.fence");
    } else if (product.adds && !warp.written[index]) {
      fail("an accumulator counts that nothing has written");
    }
  }
  if (warp.fences == 1)
    fail("expected wgmma.fence before the first wgmma");
  for (Slot each : i.destinations)
    ++warp.busy[each.index];
  addAtoms(product.atoms, Descriptor(product.left, i.immediates[2]), 64, i.immediates[2],
           warp.cta->shared);
  addAtoms(product.atoms, Descriptor(product.right, i.immediates[3]), i.a, i.immediates[3],
           warp.cta->shared);
  for (uint32_t atom : product.atoms)
    warp.cta->shared.beginProduct(atom);
  ++warp.productCount;
  warp.productHash =
      (warp.productHash ^ product.left * 31 ^ product.right * 17 ^ i.a) * 0x9e3779b97f4a7c15;
  warp.openProducts.push_back(std::move(product));
  return true;
}

bool commit(Warp &warp, const Instruction &, uint32_t) {
  warp.products.push_back({std::move(warp.openProducts), warp.machine().dueTime(), false});
  warp.openProducts.clear();
  return true;
}

bool wait(Warp &warp, const Instruction &i, uint32_t) {
  while (warp.products.size() > size_t(i.immediates[0]))
    retire(warp);
  return true;
}

} // namespace

void carryOut(Warp &warp, const Product &product) {
  const Instruction &i = *product.instruction;
  uint16_t left[16][16], right[256][16];
  static thread_local float sums[16 * 256];
  SharedMemory &shared = warp.cta->shared;
  uint32_t columns = i.a;
  gather(shared, Descriptor(product.left, i.immediates[2]), 64, warp.number % 4 * 16, 16,
         i.immediates[2], left);
  gather(shared, Descriptor(product.right, i.immediates[3]), columns, 0, columns, i.immediates[3],
         right);
  if (!product.adds)
    std::memset(sums, 0, sizeof sums);
  auto each = [&](auto move) {
    for (size_t n = 0; n < i.destinations.size(); ++n) {
      uint32_t *words = warp.at<uint32_t>(i.destinations[n]);
      size_t column = n / 4 * 8 + n % 2, row = n / 2 % 2 * 8;
      for (size_t lane = 0; lane < 32; ++lane)
        move(words[lane], sums[(row + lane / 4) * columns + column + lane % 4 * 2]);
    }
  };
  if (product.adds)
    each([](uint32_t word, float &sum) { sum = std::bit_cast<float>(word); });
  multiply(left, right, sums, int(columns), i.b);
  each([](uint32_t &word, float sum) { word = std::bit_cast<uint32_t>(sum); });
}

void retire(Warp &warp) {
  ProductGroup &group = warp.products.front();
  if (!group.isDone)
    for (const Product &product : group.products)
      carryOut(warp, product);
  for (const Product &product : group.products) {
    for (Slot each : product.instruction->destinations) {
      --warp.busy[each.index];
      warp.written[each.index] = std::max<uint32_t>(1, warp.written[each.index]);
    }
    for (uint32_t atom : product.atoms)
      warp.cta->shared.endProduct(atom);
  }
  warp.products.pop_front();
}

void addProducts(Table &table) {
  for (uint32_t columns = 8; columns <= 256; columns += 8)
    for (bool half : {false, true}) {
      std::string type = half ? "f16" : "bf16";
      Meaning meaning{"v" + std::to_string(columns / 2) + "d32 s64 s64 sp i i i i", begin, columns,
                      half};
      meaning.isAligned = meaning.ownsRegisters = true;
      table["wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k16.f32." + type +
            "." + type] = meaning;
    }
  auto aligned = [](Meaning meaning) {
    meaning.isAligned = true;
    return meaning;
  };
  table["wgmma.fence.sync.aligned"] = aligned({"", fence});
  table["wgmma.commit_group.sync.aligned"] = aligned({"", commit});
  table["wgmma.wait_group.sync.aligned"] = aligned({"i", wait});
}

} // namespace stepc::ptx

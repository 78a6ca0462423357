//===- Shadow.cpp - Who touched which bytes last ---------------------------===//

#include "runtime/emulated/Shadow.h"

#include <algorithm>

namespace stepc::runtime {

void Clocks::join(const Clocks &other) {
  for (size_t i = 0; i < kOrders; ++i)
    known[i] = std::max(known[i], other.known[i]);
}

/// Whether `by` is ordered after an earlier access. `known` are the clocks of the stream of `by`.
static bool isOrdered(const Access &earlier, const Access &by, const Clocks &known) {
  if (earlier.command != by.command)
    return earlier.command.n() <= known.known[earlier.command.stream()];
  // Blocks of a launch run in any order.
  if (earlier.block != by.block || earlier.barriers == kUnderWay)
    return false;
  return earlier.thread == by.thread || earlier.barriers < by.barriers;
}

/// Adds a reader of the first stream.
static void addReader(Access &read, Access &other, const Access &by) {
  if (read.command != by.command) {
    read = by;
    other = {};
    return;
  }
  bool two = other.command.n() != 0;
  if (two && read.block != other.block)
    return; // no writer is in both blocks, so each conflicts with one of these
  if (read.block != by.block) {
    other = read;
    read = by;
  } else if (read.barriers != by.barriers) {
    read = by;
    other = {};
  } else if (!two && read.thread != by.thread) {
    other = by;
  }
}

bool Shadow::touch(Cell &cell, const Access &by, bool writes, bool isOfBlock, const Clocks &known,
                   Conflict &found) const {
  bool isFirst = true;
  auto check = [&](const Access &earlier, bool earlierWrites) {
    // Memory of a GPU block: accesses of other blocks were to their own memory at the same address.
    bool isNone = earlier.command.n() == 0 ||
                  (isOfBlock && (earlier.command != by.command || earlier.block != by.block));
    if (isNone || isOrdered(earlier, by, known) || !isFirst)
      return;
    isFirst = false;
    found = {earlier, by, earlierWrites, writes, 0};
  };
  check(cell.write, true);
  if (writes) {
    check(cell.read, false);
    check(cell.other, false);
    Access copied;
    copied.command = cell.copied;
    check(copied, false);
    cell = {};
    cell.write = by;
  } else if (by.command.stream() != 0) {
    cell.copied = by.command;
  } else {
    addReader(cell.read, cell.other, by);
  }
  return isFirst;
}

Shadow::Cell &Shadow::cellAt(uintptr_t address) {
  if (isOfBlock(address))
    return ofBlock[(address - memory) / kGrain];
  uintptr_t number = address / kGrain / kPage;
  auto &[known, page] = recent[number % recent.size()];
  if (!page || known != number) {
    std::unique_ptr<Page> &found = pages[number];
    if (!found)
      found.reset(new Page{age, {}});
    known = number;
    page = found.get();
  }
  if (page->age != age) {
    page->age = age;
    page->cells.fill({});
  }
  return page->cells[address / kGrain % kPage];
}

bool Shadow::touch(uintptr_t address, size_t bytes, const Access &by, bool writes,
                   const Clocks &known, Conflict &found) {
  bool isFirst = true;
  for (uintptr_t at = address / kGrain * kGrain; at < address + bytes; at += kGrain) {
    Conflict here;
    if (touch(cellAt(at), by, writes, isOfBlock(at), known, here) || !isFirst)
      continue;
    isFirst = false;
    found = here;
    found.address = std::max(at, address);
  }
  return isFirst;
}

void Shadow::arrive(uintptr_t address, size_t bytes, const Access &by) {
  for (uintptr_t at = address / kGrain * kGrain; at < address + bytes; at += kGrain) {
    Access &write = cellAt(at).write;
    if (write.command == by.command && write.block == by.block && write.thread == by.thread &&
        write.barriers == kUnderWay)
      write.barriers = by.barriers;
  }
}

void Shadow::beginBlock(uintptr_t given, size_t bytes) {
  memory = given;
  memoryBytes = bytes;
  size_t cells = (bytes + kGrain - 1) / kGrain;
  if (ofBlock.size() < cells)
    ofBlock.resize(cells);
}

void Shadow::forget() {
  ++age;
  // Later steps may not touch these pages again. Therefore all are dropped once there are many.
  constexpr size_t kMany = size_t(1) << 14;
  if (pages.size() <= kMany)
    return;
  pages.clear();
  recent.fill({});
}

} // namespace stepc::runtime

//===- Races.cpp - What nothing orders, and what nobody declared -----------===//

#include "runtime/emulated/Races.h"
#include "runtime/text/Text.h"

#include "stepc/kernel_abi.h"

#include <algorithm>
#include <cstring>

namespace stepc::runtime {

thread_local Races *Races::running = nullptr;

static uintptr_t numberOf(const void *data) { return reinterpret_cast<uintptr_t>(data); }

void Races::leave() {
  trainer.join(clocks[0]);
  trainer.join(clocks[1]);
}

void Races::begin() {
  clocks[0].join(trainer);
  clocks[1].join(trainer);
  // Once each stream is ordered after all that the other did, no earlier access can be in a conflict.
  for (size_t stream : {0, 1})
    for (size_t other : {0, 1})
      if (clocks[stream].known[other] != clocks[other].known[other])
        return;
  shadow.forget();
  names.clear();
}

void Races::beginCommand(size_t stream, MemoryUses given, const std::string &kernel) {
  command = CommandNumber(stream, ++clocks[stream].known[stream]);
  uses = std::move(given);
  if (!kernel.empty())
    uses.command += (uses.command.empty() ? "kernel '" : ", kernel '") + kernel + "'";
  names[command.bits] = uses.command;
  barriers = 0;
  beginBlock(nullptr, 0);
  std::vector<MemoryUse> &all = uses.declared;
  std::sort(all.begin(), all.end(), [](const MemoryUse &one, const MemoryUse &other) {
    return numberOf(one.data) < numberOf(other.data);
  });
  ends.clear();
  for (const MemoryUse &use : all)
    ends.push_back(
        std::max(ends.empty() ? 0 : ends.back(), numberOf(use.data) + uintptr_t(use.bytes)));
}

Access Races::accessOf(int64_t block, int64_t thread) const {
  Access by;
  by.command = command;
  by.block = int32_t(block);
  by.thread = uint32_t(thread);
  by.barriers = barriers;
  return by;
}

void Races::touch(const void *data, int64_t bytes, const Access &by, bool writes) {
  Conflict found;
  if (bytes > 0 &&
      !shadow.touch(numberOf(data), size_t(bytes), by, writes, clocks[command.stream()], found))
    tell(found);
}

void Races::touch(const void *data, int64_t bytes, bool writes) {
  Access by = accessOf(-1, 0);
  if (bytes > 0 && !find(data, bytes, writes))
    tellUndeclared(data, bytes, by, writes);
  touch(data, bytes, by, writes);
}

void *Races::access(void *address, int64_t bytes, bool writes, int64_t block, int64_t thread) {
  alignas(64) static thread_local char nobodys[64];
  Access by = accessOf(block, thread);
  if (isOfBlock(address, bytes) || find(address, bytes, writes)) {
    touch(address, bytes, by, writes);
    return address;
  }
  tellUndeclared(address, bytes, by, writes);
  std::memset(nobodys, 0, sizeof(nobodys));
  return nobodys;
}

void Races::beginBlock(const void *given, int64_t bytes) {
  memory = numberOf(given);
  memoryBytes = uintptr_t(bytes);
  barriers = 0;
  shadow.beginBlock(memory, memoryBytes);
}

void *Races::beginCopy(void *to, int64_t bytes, int64_t block, int64_t thread) {
  Access by = accessOf(block, thread);
  by.barriers = kUnderWay;
  if (!isOfBlock(to, bytes))
    return access(to, bytes, true, block, thread);
  touch(to, bytes, by, true);
  return to;
}

void Races::endCopy(const void *to, int64_t bytes, int64_t block, int64_t thread) {
  if (isOfBlock(to, bytes))
    shadow.arrive(numberOf(to), size_t(bytes), accessOf(block, thread));
}

void Races::readStaging(const void *staging, int64_t bytes) {
  stagingReaders[staging] = {bytes, clocks[command.stream()]};
}

void Races::writeStaging(const void *staging) {
  auto reader = stagingReaders.upper_bound(staging);
  if (reader == stagingReaders.begin() || !problem.empty())
    return;
  --reader;
  if (numberOf(staging) - numberOf(reader->first) >= uintptr_t(reader->second.bytes))
    return;
  for (size_t stream : {0, 1})
    if (reader->second.clocks.known[stream] > clocks[kHostOrder].known[stream])
      problem =
          "race: the host writes staging memory whose last copy may still read it, expected to "
          "wait for that, found nothing that does";
}

const MemoryUse *Races::find(const void *data, int64_t bytes, bool writes) const {
  static constexpr MemoryUse kAnything;
  const std::vector<MemoryUse> &all = uses.declared;
  if (all.empty())
    return &kAnything;
  uintptr_t first = numberOf(data), last = first + uintptr_t(bytes);
  auto next =
      std::upper_bound(all.begin(), all.end(), first, [](uintptr_t address, const MemoryUse &use) {
        return address < numberOf(use.data);
      });
  for (size_t i = size_t(next - all.begin()); i-- > 0 && ends[i] >= last;) {
    const MemoryUse &use = all[i];
    if ((writes ? use.writes : use.reads) && last <= numberOf(use.data) + uintptr_t(use.bytes))
      return &use;
  }
  return nullptr;
}

bool Races::isOfBlock(const void *data, int64_t bytes) const {
  uintptr_t offset = numberOf(data) - memory;
  return offset < memoryBytes && uintptr_t(bytes) <= memoryBytes - offset;
}

// --- messages ---

std::string Races::placeOf(uintptr_t address) const {
  if (address - memory < memoryBytes)
    return format("byte %llu of the block's memory", (unsigned long long)(address - memory));
  for (const MemoryUse &use : uses.declared) {
    uintptr_t offset = address - numberOf(use.data);
    if (offset >= uintptr_t(use.bytes))
      continue;
    std::string text = format("byte %llu of %s", (unsigned long long)offset, use.what);
    if (use.name)
      text += " '" + *use.name + "'";
    return use.operand < 0 ? text : text + format(" (operand %lld)", (long long)use.operand);
  }
  return format("address %#llx", (unsigned long long)address);
}

std::string Races::nameOf(CommandNumber number) const {
  auto found = names.find(number.bits);
  std::string name = found == names.end() ? "a command of an earlier step" : found->second;
  return name + " on the stream of " + (number.stream() ? "messages" : "kernels");
}

std::string Races::whoOf(const Access &access) const {
  if (access.block < 0)
    return "it";
  return format("block %d, thread %u", int(access.block), unsigned(access.thread));
}

void Races::tell(const Conflict &conflict) {
  if (!problem.empty())
    return;
  auto does = [](bool writes) { return writes ? " writes" : " reads"; };
  const Access &first = conflict.first, &second = conflict.second;
  problem = "race in " + nameOf(second.command) + ": " + whoOf(second) +
            does(conflict.secondWrites) + " " + placeOf(conflict.address);
  if (first.command != second.command) {
    problem += ", which " + nameOf(first.command) + does(conflict.firstWrites);
    if (first.block >= 0)
      problem += " (" + whoOf(first) + ")";
    problem += ", expected an event between the streams, found none";
    return;
  }
  problem += ", which " + whoOf(first) + does(conflict.firstWrites);
  if (first.barriers == kUnderWay || second.barriers == kUnderWay)
    problem += " by a copy that is under way, expected a wait for it, found none";
  else if (first.block != second.block)
    problem += ", expected blocks that share nothing which one of them writes";
  else
    problem += ", expected a barrier between them, found none";
}

void Races::tellUndeclared(const void *data, int64_t bytes, const Access &by, bool writes) {
  if (!problem.empty())
    return;
  problem = nameOf(by.command) + ": " + whoOf(by) + (writes ? " writes " : " reads ") +
            format("%lld bytes at ", (long long)bytes) + placeOf(numberOf(data)) +
            ", expected memory that the command declares to " + (writes ? "write" : "read");
}

} // namespace stepc::runtime

extern "C" void *stepc_rt_emulated_access(void *address, int64_t bytes, int32_t writes,
                                          int64_t block, int64_t thread) {
  stepc::runtime::Races *races = stepc::runtime::Races::running;
  return races ? races->access(address, bytes, writes, block, thread) : address;
}

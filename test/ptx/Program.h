//===- Program.h - A kernel whose instructions have a meaning ----*- C++ -*-===//
#ifndef STEPC_TEST_PTX_PROGRAM_H
#define STEPC_TEST_PTX_PROGRAM_H

#include "test/ptx/Text.h"

#include <bit>
#include <type_traits>
#include <unordered_map>

namespace stepc::ptx {

struct Warp;
struct Instruction;

/// Carries out an instruction for the lanes of `mask`. Returns false if they must wait first: the same instruction is then
/// carried out again.
using Execute = bool (*)(Warp &warp, const Instruction &instruction, uint32_t mask);

/// Where a register lies in a warp's file: 32 lanes of 32 or 64 bits. A predicate is one word, a bit per lane.
struct Slot {
  uint32_t offset = 0; ///< in 32-bit words
  uint32_t index = 0;
};

/// The operand [base + offset].
struct Address {
  Slot base;
  bool isWide = false; ///< the base has 64 bits
  int64_t offset = 0;
};

struct Instruction {
  enum class Control : uint8_t { None, Branch, Exit };
  Execute execute = nullptr;
  Control control = Control::None;
  /// All lanes of the warp must carry it out together.
  bool isAligned = false;
  /// Lanes wait here until all of the warp's lanes have come.
  bool isMeeting = false;
  /// Sources may be registers that nothing has written: the destination is then one, too.
  bool passesUndefined = false;
  /// wgmma looks after its registers by itself.
  bool ownsRegisters = false;
  bool hasGuard = false, isGuardNegated = false;
  Slot guard;
  int target = -1;
  std::vector<Slot> destinations, sources;
  std::vector<Address> addresses;
  std::vector<int64_t> immediates;
  uint32_t a = 0, b = 0, c = 0; ///< what the opcode's suffixes say
  int line = 0;
};

enum class Special {
  Lane,
  Warp,
  Thread,
  Block,
  Blocks,
  ClusterRank,
  ClusterBlocks,
  ClusterNumber,
  Threads
};

struct Program {
  Kernel kernel;
  std::vector<Instruction> instructions;
  struct Constant {
    Slot slot;
    RegisterKind kind;
    uint64_t value;
    int global = -1; ///< the module's variable to whose address the value is added
  };
  std::vector<Constant> constants;
  std::vector<std::pair<Slot, Special>> specials;
  uint32_t fileWords = 0, registerCount = 0;
  bool readsTime = false;
  uint32_t dynamicBegin = 0; ///< the address of the launch's dynamic memory
};

/// What an opcode means. The signature names its operands in their order:
///   dp d16 d32 d64   a register that it writes (`_` is allowed)
///   sp s16 s32 s64   a register that it reads, or an immediate
///   d32|             one with an optional predicate behind it
///   v4s32 v2d16      a vector
///   m                an address
///   mc               an address with coordinates, which are sources behind it
///   i                an immediate
struct Meaning {
  std::string signature;
  Execute execute = nullptr;
  uint32_t a = 0, b = 0, c = 0;
  bool isAligned = false, isMeeting = false, passesUndefined = false, ownsRegisters = false;
};
using Table = std::unordered_map<std::string, Meaning>;

void addArithmetic(Table &table);
void addConversions(Table &table);
void addAccesses(Table &table);
void addSynchronization(Table &table);
void addCopies(Table &table);
void addProducts(Table &table);

/// Throws an error that names the line of an instruction that is not modelled.
Program decode(const Kernel &kernel);

} // namespace stepc::ptx

#endif

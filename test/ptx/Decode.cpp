//===- Decode.cpp - From statements to instructions ------------------------===//

#include "test/ptx/Error.h"
#include "test/ptx/Machine.h"

#include <sstream>

namespace stepc::ptx {
namespace {

const Table &table() {
  static const Table made = [] {
    Table table;
    addArithmetic(table);
    addConversions(table);
    addAccesses(table);
    addSynchronization(table);
    addCopies(table);
    addProducts(table);
    return table;
  }();
  return made;
}

const std::map<std::string, Special> kSpecials = {
    {"%laneid", Special::Lane},
    {"%warpid", Special::Warp},
    {"%tid.x", Special::Thread},
    {"%ntid.x", Special::Threads},
    {"%ctaid.x", Special::Block},
    {"%nctaid.x", Special::Blocks},
    {"%cluster_ctarank", Special::ClusterRank},
    {"%cluster_ctaid.x", Special::ClusterRank},
    {"%cluster_nctarank", Special::ClusterBlocks},
    {"%cluster_nctaid.x", Special::ClusterBlocks},
    {"%clusterid.x", Special::ClusterNumber},
};

class Decoder {
public:
  explicit Decoder(const Kernel &kernel) : kernel(kernel) {
    program.kernel = kernel;
    if (!kernel.threads || kernel.threads % 32 || kernel.threads > 1024)
      fail("expected .reqntid or .maxntid with whole warps, found ", kernel.threads, " threads");
    if (kernel.clusterBlocks > 8)
      fail("expected clusters of at most 8 blocks, found ", kernel.clusterBlocks);
    for (const Register &each : kernel.registers)
      slots.push_back(newSlot(each.kind));
    layOutShared();
    for (const Statement &statement : kernel.statements)
      program.instructions.push_back(instruction(statement));
    // A kernel may end without an instruction that says so.
    Instruction end;
    end.control = Instruction::Control::Exit;
    end.line = kernel.statements.empty() ? 0 : kernel.statements.back().line;
    program.instructions.push_back(end);
  }

  Program take() {
    program.registerCount = nextIndex;
    return std::move(program);
  }

private:
  const Kernel &kernel;
  Program program;
  std::vector<Slot> slots;
  uint32_t nextIndex = 0;
  std::map<std::pair<RegisterKind, uint64_t>, Slot> constants;
  std::map<std::string, Slot> specials;
  std::map<std::string, uint32_t> sharedAddresses;

  Slot newSlot(RegisterKind kind) {
    // Lanes of 64 bits are aligned to them.
    uint32_t words = kind == RegisterKind::Predicate ? 2 : kind == RegisterKind::Bits64 ? 64 : 32;
    Slot slot{program.fileWords, nextIndex++};
    program.fileWords += words;
    return slot;
  }

  void layOutShared() {
    uint32_t at = SharedMemory::kBegin;
    auto place = [&](const SharedArray &array) {
      at = (at + array.alignment - 1) / array.alignment * array.alignment;
      sharedAddresses[array.name] = at;
      at += array.bytes;
    };
    for (const SharedArray &array : kernel.sharedArrays)
      if (array.bytes)
        place(array);
    program.dynamicBegin = at;
    for (const SharedArray &array : kernel.sharedArrays)
      if (!array.bytes) {
        uint32_t end = at;
        place(array);
        program.dynamicBegin = at;
        at = end;
      }
  }

  Slot constant(RegisterKind kind, uint64_t value) {
    if (kind == RegisterKind::Bits16)
      value &= 0xffff;
    if (kind == RegisterKind::Bits32)
      value &= 0xffffffff;
    if (kind == RegisterKind::Predicate)
      value = value ? ~uint32_t(0) : 0;
    auto [found, isNew] = constants.try_emplace({kind, value});
    if (isNew) {
      found->second = newSlot(kind);
      program.constants.push_back({found->second, kind, value});
    }
    return found->second;
  }

  Slot special(const std::string &name) {
    auto [found, isNew] = specials.try_emplace(name);
    if (isNew) {
      found->second = newSlot(RegisterKind::Bits32);
      program.specials.emplace_back(found->second, kSpecials.at(name));
    }
    return found->second;
  }

  const Parameter *parameter(const std::string &name) const {
    for (const Parameter &each : kernel.parameters)
      if (each.name == name)
        return &each;
    return nullptr;
  }

  [[noreturn]] void refuse(const Operand &operand, const char *expected) const {
    fail("expected ", expected, ", found ",
         operand.name.empty() ? "another operand" : operand.name);
  }

  Slot registerSlot(const Operand &operand, RegisterKind kind) const {
    if (operand.kind != Operand::Kind::Register)
      refuse(operand, "a register");
    if (kernel.registers[operand.index].kind != kind)
      refuse(operand, "a register of the instruction's type");
    return slots[operand.index];
  }

  Slot destination(const Operand &operand, RegisterKind kind) {
    return operand.kind == Operand::Kind::Sink ? newSlot(kind) : registerSlot(operand, kind);
  }

  Slot source(const Operand &operand, RegisterKind kind) {
    if (operand.kind == Operand::Kind::Immediate)
      return constant(kind, uint64_t(operand.value));
    if (operand.kind == Operand::Kind::Name) {
      if (kSpecials.count(operand.name)) {
        if (kind != RegisterKind::Bits32)
          refuse(operand, "a register of the instruction's type");
        return special(operand.name);
      }
      if (auto found = sharedAddresses.find(operand.name); found != sharedAddresses.end())
        return constant(kind, found->second + uint64_t(operand.value));
      for (size_t g = 0; g < kernel.globalArrays.size(); ++g)
        if (kernel.globalArrays[g].name == operand.name && kind == RegisterKind::Bits64) {
          Slot slot = newSlot(kind);
          program.constants.push_back({slot, kind, uint64_t(operand.value), int(g)});
          return slot;
        }
      if (const Parameter *found = parameter(operand.name))
        return constant(kind, kParameterWindow + found->offset + uint64_t(operand.value));
      refuse(operand, "a register or a number");
    }
    return registerSlot(operand, kind);
  }

  static RegisterKind kindOf(std::string_view bits) {
    return bits == "p"    ? RegisterKind::Predicate
           : bits == "16" ? RegisterKind::Bits16
           : bits == "32" ? RegisterKind::Bits32
                          : RegisterKind::Bits64;
  }

  void address(Instruction &made, const Operand &operand, bool hasCoordinates) {
    if (operand.kind != Operand::Kind::Address)
      refuse(operand, "an address");
    if (operand.parts.size() != (hasCoordinates ? 2 : 1))
      fail("expected an address ", hasCoordinates ? "with" : "without", " coordinates");
    const Operand &base = operand.parts[0];
    RegisterKind kind = RegisterKind::Bits64;
    if (base.kind == Operand::Kind::Register)
      kind = kernel.registers[base.index].kind;
    if (kind != RegisterKind::Bits64 && kind != RegisterKind::Bits32)
      refuse(base, "an address register of 32 or 64 bits");
    made.addresses.push_back({source(base, kind), kind == RegisterKind::Bits64, operand.value});
    if (hasCoordinates)
      for (const Operand &part : operand.parts[1].parts)
        made.sources.push_back(source(part, RegisterKind::Bits32));
  }

  /// Binds an operand as a part of a signature says.
  void bind(Instruction &made, const Operand &operand, std::string_view token) {
    if (token == "m" || token == "mc")
      return address(made, operand, token == "mc");
    if (token == "i") {
      if (operand.kind != Operand::Kind::Immediate)
        refuse(operand, "a number");
      made.immediates.push_back(operand.value);
      return;
    }
    if (token[0] == 'v') {
      size_t count = 0, at = 1;
      while (std::isdigit((unsigned char)token[at]))
        count = count * 10 + size_t(token[at++] - '0');
      if (operand.kind != Operand::Kind::Vector || operand.parts.size() != count)
        fail("expected a vector of ", count);
      for (const Operand &part : operand.parts)
        bind(made, part, token.substr(at));
      return;
    }
    if (token == "d32|") {
      bool isPair = operand.kind == Operand::Kind::Pair;
      made.destinations.push_back(
          destination(isPair ? operand.parts[0] : operand, RegisterKind::Bits32));
      made.destinations.push_back(isPair ? destination(operand.parts[1], RegisterKind::Predicate)
                                         : newSlot(RegisterKind::Predicate));
      return;
    }
    RegisterKind kind = kindOf(token.substr(1));
    if (token[0] == 'd')
      made.destinations.push_back(destination(operand, kind));
    else
      made.sources.push_back(source(operand, kind));
  }

  Instruction instruction(const Statement &statement) {
    Instruction made;
    made.line = statement.line;
    made.target = statement.target;
    if (statement.guard >= 0) {
      made.hasGuard = true;
      made.isGuardNegated = statement.isGuardNegated;
      made.guard = slots[statement.guard];
    }
    try {
      if (statement.opcode == "bra" || statement.opcode == "bra.uni") {
        made.control = Instruction::Control::Branch;
      } else if (statement.opcode == "ret" || statement.opcode == "exit") {
        made.control = Instruction::Control::Exit;
      } else {
        operate(made, statement);
      }
    } catch (const Error &error) {
      fail("line ", statement.line, ": ", error.what(), "\n  ", statement.text);
    }
    return made;
  }

  void operate(Instruction &made, const Statement &statement) {
    std::string opcode = statement.opcode;
    // A vector or a clock gives `mov` another meaning.
    if (opcode.starts_with("mov.") && statement.operands.size() == 2) {
      const Operand &to = statement.operands[0], &from = statement.operands[1];
      if (to.kind == Operand::Kind::Vector)
        opcode += " unpack" + std::to_string(to.parts.size());
      else if (from.kind == Operand::Kind::Vector)
        opcode += " pack" + std::to_string(from.parts.size());
      else if (from.name.starts_with("%globaltimer") || from.name.starts_with("%clock"))
        opcode += " " + from.name;
      program.readsTime |= from.name.starts_with("%globaltimer");
    }
    // An opcode may have forms with different numbers of operands.
    auto found = table().find(opcode + "/" + std::to_string(statement.operands.size()));
    if (found == table().end())
      found = table().find(opcode);
    if (found == table().end())
      fail("the instruction '", opcode, "' is not modelled");
    const Meaning &meaning = found->second;
    made.execute = meaning.execute;
    made.a = meaning.a, made.b = meaning.b, made.c = meaning.c;
    made.isAligned = meaning.isAligned;
    made.isMeeting = meaning.isMeeting;
    made.passesUndefined = meaning.passesUndefined;
    made.ownsRegisters = meaning.ownsRegisters;
    std::istringstream tokens(meaning.signature);
    size_t next = 0;
    for (std::string token; tokens >> token; ++next) {
      if (next == statement.operands.size())
        fail("expected more than ", next, " operands");
      if (token != "-")
        bind(made, statement.operands[next], token);
    }
    if (next != statement.operands.size())
      fail("expected ", next, " operands, found ", statement.operands.size());
  }
};

} // namespace

Program decode(const Kernel &kernel) { return Decoder(kernel).take(); }

} // namespace stepc::ptx

//===- Text.h - PTX as it is written -----------------------------*- C++ -*-===//
//
// The parser knows the shape of PTX: functions, parameters, registers, labels, blocks with names of their own, guards,
// vectors and addresses. It does not know instructions: Decode.h gives each of them its meaning.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_PTX_TEXT_H
#define STEPC_TEST_PTX_TEXT_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepc::ptx {

enum class RegisterKind { Predicate, Bits16, Bits32, Bits64 };

struct Register {
  std::string name;
  RegisterKind kind;
};

struct Operand {
  enum class Kind {
    Register,  ///< `index` of the kernel's registers
    Immediate, ///< `value`
    Name,      ///< a special register, a parameter or memory of the block, plus `value` bytes
    Vector,    ///< {parts}
    Address,   ///< [parts[0] + value], and behind it a vector of coordinates if there is one
    Pair,      ///< parts[0] | parts[1]
    Sink,      ///< _
  };
  Kind kind = Kind::Sink;
  int index = -1;
  int64_t value = 0;
  std::string name;
  std::vector<Operand> parts;
};

struct Statement {
  std::string opcode; ///< with all its suffixes
  std::vector<Operand> operands;
  int guard = -1; ///< a predicate's register
  bool isGuardNegated = false;
  int target = -1; ///< of a branch: the number of a statement
  int line = 0;
  std::string text;
};

struct Parameter {
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

/// Memory of the block that has a name. One without a size is the launch's dynamic memory.
struct SharedArray {
  std::string name;
  uint32_t bytes = 0, alignment = 1;
};

/// A variable of the module in the GPU's memory.
struct GlobalArray {
  std::string name;
  uint32_t bytes = 0;
  std::vector<uint8_t> initial; ///< zeros follow
};

struct Kernel {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<Register> registers;
  std::vector<Statement> statements;
  std::vector<SharedArray> sharedArrays; ///< those of its module
  std::vector<GlobalArray> globalArrays; ///< those of its module
  uint32_t threads = 0;                  ///< as .reqntid or .maxntid says
  uint32_t clusterBlocks = 1;
  uint32_t parameterBytes = 0;
};

/// The kernels of a module. Throws an error that names the line of what it cannot read.
std::vector<Kernel> parse(std::string_view text);

} // namespace stepc::ptx

#endif

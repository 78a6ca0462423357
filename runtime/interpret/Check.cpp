//===- Check.cpp - Whether a kernel can be carried out ----------------------===//
#include "runtime/interpret/Kernels.h"

namespace stepc::interpret {

int64_t operandsOf(Operation operation) {
  switch (operation) {
  case Operation::NegF:
  case Operation::AbsF:
  case Operation::Floor:
  case Operation::Sqrt:
  case Operation::ExtendF:
  case Operation::TruncateF:
  case Operation::ExtendUnsigned:
  case Operation::ExtendSigned:
  case Operation::TruncateI:
  case Operation::FloatToSigned:
  case Operation::SignedToFloat:
    return 1;
  case Operation::Fma:
  case Operation::Select:
    return 3;
  default:
    return 2;
  }
}

namespace {

bool isFloat(Type type) { return type == Type::F32 || type == Type::F64; }
bool isWord(Type type) { return !isFloat(type); }
int64_t bitsOf(Type type) {
  return type == Type::I1                         ? 1
         : type == Type::I16                      ? 16
         : type == Type::I32 || type == Type::F32 ? 32
                                                  : 64;
}

bool typesFit(const Instruction &each) {
  switch (each.operation) {
  case Operation::Select:
    return true;
  case Operation::ExtendF:
    return each.type == Type::F32 && each.to == Type::F64;
  case Operation::TruncateF:
    return each.type == Type::F64 && each.to == Type::F32;
  case Operation::ExtendUnsigned:
  case Operation::ExtendSigned:
    return isWord(each.type) && isWord(each.to) && bitsOf(each.type) < bitsOf(each.to);
  case Operation::TruncateI:
    return isWord(each.type) && isWord(each.to) && bitsOf(each.type) > bitsOf(each.to);
  case Operation::FloatToSigned:
    return isFloat(each.type) && (each.to == Type::I32 || each.to == Type::I64);
  case Operation::SignedToFloat:
    return (each.type == Type::I32 || each.type == Type::I64) && isFloat(each.to);
  default:
    return each.operation < Operation::AddI ? isFloat(each.type) : isWord(each.type);
  }
}

class Checker {
public:
  explicit Checker(int64_t registers) : registers(registers) {}

  std::string body(const Body &body) {
    if (registers < 0 || registers > kMostRegisters)
      return expected("at most " + std::to_string(kMostRegisters) + " registers", registers);
    for (const Constant &each : body.constants)
      if (std::string wrong = place(each.result); !wrong.empty())
        return wrong;
    for (const auto *list : {&body.uniform, &body.each})
      for (const Instruction &each : *list)
        if (std::string wrong = instruction(each); !wrong.empty())
          return wrong + " in an instruction " + std::string(plan::name(each.operation));
    return {};
  }
  std::string place(int64_t number) const {
    return number >= 0 && number < registers
               ? std::string()
               : expected("a register below " + std::to_string(registers), number);
  }

private:
  std::string instruction(const Instruction &each) const {
    if (!typesFit(each))
      return "expected types of the operation, found " + std::string(plan::name(each.type)) +
             " and " + std::string(plan::name(each.to));
    if (std::string wrong = place(each.result); !wrong.empty())
      return wrong;
    int64_t operands[] = {each.first, each.second, each.third};
    for (int64_t i = 0; i < operandsOf(each.operation); ++i) {
      if (std::string wrong = place(operands[i]); !wrong.empty())
        return wrong;
      if (operands[i] == each.result)
        return expected("a result in another register than the operands", each.result);
    }
    int64_t predicates = each.operation == Operation::CompareF   ? 16
                         : each.operation == Operation::CompareI ? 10
                                                                 : 1;
    if (each.predicate < 0 || each.predicate >= predicates)
      return expected("a predicate below " + std::to_string(predicates), each.predicate);
    return {};
  }

  int64_t registers;
};

} // namespace

std::string checkSizes(std::initializer_list<int64_t> sizes) {
  constexpr int64_t kMost = int64_t(1) << 40;
  for (int64_t size : sizes)
    if (size < 0 || size > kMost)
      return expected("a size from 0 to 2^40", size);
  return {};
}

std::string ChunkKernel::check() const {
  Checker checker(body.registers);
  if (std::string wrong = checker.body(body); !wrong.empty())
    return wrong;
  for (const auto *list : {&reads, &writes})
    for (const ChunkValue &value : *list) {
      if (value.isNumber()) {
        if (list == &writes || isFlat || value.operand != -1 || value.type != plan::DType::F32)
          return "expected a number of rows, columns or elements to be read without an operand, "
                 "of chunks with rows, found " +
                 std::string(plan::name(value.reach));
        if (std::string wrong = checker.place(value.place); !wrong.empty())
          return wrong;
        continue;
      }
      if (value.operand < 0 || value.operand >= int64_t(isShards.size()))
        return expected("an operand below " + std::to_string(isShards.size()), value.operand);
      if (isShards[size_t(value.operand)] != (value.reach == Reach::Shards))
        return "expected operand " + std::to_string(value.operand) +
               (value.reach == Reach::Shards ? " to be shards" : " to be no shards");
      if (value.type == plan::DType::F64)
        return "expected values of at most 32 bits, found f64";
      bool hasAll = value.reach == Reach::Shards || value.reach == Reach::Staged;
      if (list == &writes && !hasAll && !reduction)
        return "expected results with every element, found reach " +
               std::string(plan::name(value.reach));
      if (std::string wrong = checker.place(value.place); !wrong.empty())
        return wrong;
    }
  for (const ScalarColumn &column : columns) {
    if (std::string wrong = checker.place(column.place); !wrong.empty())
      return wrong;
    if (std::string wrong = checkSizes({column.column}); !wrong.empty())
      return wrong;
  }
  if (std::string wrong = key ? checker.place(*key) : std::string(); !wrong.empty())
    return wrong;
  if (!columns.empty() && (isShards.empty() || isShards[0]))
    return "expected scalars as operand 0, found shards or none";
  bool reducesToLine = writes.size() == 1 && writes[0].type == plan::DType::F32 &&
                       (writes[0].reach == Reach::Row || writes[0].reach == Reach::Column ||
                        (sums > 0 && writes[0].reach == Reach::Block));
  if (reduction && (!reducesToLine || isFlat))
    return "expected a reduction to one value of f32 per row or column, found another result";
  if (sums < 0 || (sums > 0 && !reduction))
    return expected("exact sums of a reduction", sums);
  return {};
}

std::string ParameterKernel::check() const {
  int64_t given = 4;
  for (int64_t count : numbers) {
    if (count < 0 || count > kMostRegisters)
      return expected("numbers of an operand", count);
    given += count;
  }
  if (int64_t(inputs.size()) < given)
    return expected("at least " + std::to_string(given) + " inputs", int64_t(inputs.size()));
  Checker checker(body.registers);
  if (std::string wrong = checker.body(body); !wrong.empty())
    return wrong;
  if (inputs.size() < 4)
    return expected("at least 4 inputs", int64_t(inputs.size()));
  for (const auto *list : {&inputs, &outputs})
    for (int64_t place : *list)
      if (std::string wrong = checker.place(place); !wrong.empty())
        return wrong;
  return {};
}

} // namespace stepc::interpret

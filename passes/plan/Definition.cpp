//===- Definition.cpp - What a rule computes, as one number ----------------===//
//
// Each value's hash is made of its operation and its operands' hashes, so that neither
// the order of operations nor their sharing enters: only what the results are
// computed from, and how.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Definition.h"
#include "runtime/plan/Fnv1a.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace stepc;

namespace {

/// Part of every hash. Must be raised if an operation gets another meaning, so that a rule compiled before
/// and a rule of equal text compiled after have different hashes.
constexpr uint64_t kVersion = 2;

/// FNV-1a over numbers and texts. The length of a text is hashed before it, so that different lists of texts
/// never give the same bytes.
struct Hash : plan::Fnv1a {
  Hash &number(uint64_t value) {
    plan::Fnv1a::number(value);
    return *this;
  }
  Hash &text(StringRef value) {
    number(value.size());
    bytes(value);
    return *this;
  }
  /// Hashes a type or attribute by its printed text. This text has all bits of literals.
  template <typename T> Hash &printed(T value) {
    std::string buffer;
    llvm::raw_string_ostream os(buffer);
    value.print(os);
    return text(buffer);
  }
};

/// The hash of each value of a body. Returns that of its yield.
uint64_t hashBody(Block &body, llvm::DenseMap<Value, uint64_t> &hashes) {
  for (BlockArgument argument : body.getArguments())
    hashes[argument] = Hash().number(argument.getArgNumber()).printed(argument.getType()).state;
  uint64_t results = 0;
  for (Operation &op : body) {
    Hash hash;
    hash.text(op.getName().getStringRef()).number(op.getNumOperands());
    for (Value operand : op.getOperands())
      hash.number(hashes.lookup(operand));
    // Passes add discardable attributes (spaces, writes). They are decisions and not part of the rule.
    for (NamedAttribute attribute : op.getAttrs())
      if (!op.getDiscardableAttr(attribute.getName()))
        hash.text(attribute.getName()).printed(attribute.getValue());
    for (Type type : op.getResultTypes())
      hash.printed(type);
    for (OpResult result : op.getResults())
      hashes[result] = Hash(hash).number(result.getResultNumber()).state;
    results = hash.state; // after the loop: the hash of the yield
  }
  return results;
}

} // namespace

uint64_t stepc::definitionHash(optim::RuleOp rule) {
  llvm::DenseMap<Value, uint64_t> hashes;
  uint64_t results = hashBody(rule.getBody().front(), hashes);
  Hash hash;
  hash.number(kVersion).text(rule.getSymName()).number(rule.getNeedsMatrix());
  hash.printed(rule.getHyperparameters()).printed(rule.getStates());
  return hash.number(results).state;
}

uint64_t stepc::definitionHash(optim::ModelOp model) {
  llvm::DenseMap<Value, uint64_t> hashes;
  uint64_t results = hashBody(model.getBody().front(), hashes);
  Hash hash;
  hash.number(kVersion).printed(model.getHyperparameters()).printed(model.getValues());
  hash.printed(model.getStates()).number(results);
  // Rules name numbers alone. So it counts which operation has which number.
  for (Operation *number : model.getNumbers())
    hash.number(hashes.lookup(number->getResult(0)));
  return hash.state;
}

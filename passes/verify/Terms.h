//===- Terms.h - What a value is computed from ------------------*- C++ -*-===//
//
// A term is an expression over what a step begins with: the shards as they were, and the scalars of a
// parameter. Equal expressions get the same number. A term does not say where its value stands: the proof of
// the tables does. It has literal numbers: an edit of one in the text of a level needs the same edit in the
// rule.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_TERMS_H
#define STEPC_PASSES_VERIFY_TERMS_H

#include "dialects/optim/Optim.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace stepc::verify {

/// The number of an expression. Two terms are equal exactly if their expressions are equal.
using Term = int64_t;

/// Rows and columns of a matrix.
struct Extents {
  int64_t rows, cols;
};

class Terms {
public:
  explicit Terms(mlir::MLIRContext *context) : context(context) {}

  /// A value that a step begins with, such as the old parameter.
  Term leaf(llvm::StringRef name, mlir::Type element);
  /// A scalar that has one value for all blocks of a group, such as rows.
  Term size(llvm::StringRef name, double value);
  /// A new term that equals no other term.
  Term unknown(mlir::Type element);
  /// A value rounded or widened to another type; the value itself if it has that type.
  Term convert(Term value, mlir::Type element);
  /// What a parameter of f32 stores of its new value. If `value` is the result of an optim.stochastic of the
  /// parameter, that is its source, because f32 is not rounded by chance. Otherwise it is `value`.
  Term beforeStochastic(Term value) const;
  /// The result of an elementwise operation. A broadcast has no term of its own: callers pass on the term of
  /// its source. What follows from sizes and literals alone has a value. A select by such a condition is the
  /// term of what it chooses, and an `and` or `or` of which one operand leaves the result to the other is the
  /// term of the other.
  Term elementwise(mlir::Operation *op, llvm::ArrayRef<Term> operands);
  /// A literal number or boolean, together with its type.
  Term constant(mlir::Attribute value);
  Term number(mlir::Type element, double value) {
    return constant(mlir::FloatAttr::get(element, value));
  }
  /// The contributions of ranks, added up, divided and rounded to their type.
  Term sum(Term contribution, int64_t divisor);
  /// A slab with zeros after its end, because other slabs are longer.
  Term padded(Term slab);
  /// A slab that is written over `before`. The result is known only if `before` is zero everywhere.
  Term written(Term slab, Term before) {
    return before == number(elementOf(slab), 0.0) ? padded(slab) : unknown(elementOf(slab));
  }
  /// The result of a function of whole blocks. `from` are the extents of the sources, whose elements are
  /// converted to f32. `to` are the extents of the result.
  Term apply(optim::BlockFunctionAttrInterface function, llvm::ArrayRef<Term> sources,
             llvm::ArrayRef<Extents> from, Extents to, mlir::Type element);
  /// The reduction of a matrix, in f32, times 2 to `exponent`.
  Term reduce(optim::Reduction kind, Term source, Extents from, Extents to, int64_t exponent = 0) {
    return apply(optim::BlockReduceAttr::get(context, kind, exponent), source, from, to,
                 mlir::Float32Type::get(context));
  }

  /// What a rank adds up exactly of its own terms of such a reduction, as exact sums.
  Term linePart(optim::Reduction kind, Term source, Extents from, Extents to, mlir::Type element);
  /// The parts of all ranks added up: the reduction, if it is of this kind and each line has so many terms.
  Term finish(Term part, optim::Reduction kind, int64_t terms);

  /// What a rank adds up exactly of its own terms of a number of the whole model.
  Term modelPart(optim::Reduction kind, Term source, mlir::Type element);
  /// Such parts of several segments, added up. Each is a segment and the term of its part.
  Term collected(optim::Reduction kind, llvm::ArrayRef<std::pair<int64_t, Term>> parts,
                 mlir::Type element);
  /// A number of the whole model: the reduction of the elements of these segments, `terms` in all. `sources`
  /// has the term of an element in each segment.
  Term modelNumber(optim::Reduction kind, llvm::ArrayRef<int64_t> segments,
                   llvm::ArrayRef<Term> sources, int64_t terms);

  struct Product {
    Term lhs, rhs;
    std::optional<Term> addend;
    bool transposeLhs, transposeRhs;
    int64_t rows, cols, inner;
    double alpha = 1, beta = 0; ///< rounded to f32; beta counts only with an addend
    double shift = 0;           ///< on the diagonal, rounded to f32
    bool isMirrored = false;    ///< the half above the diagonal is that below
  };
  Term product(const Product &product, mlir::Type element);
  /// The documented sequence of products of optim.orthogonalize, on whole blocks or on slabs. On slabs a term
  /// is that of one slab, or a sum of what all slabs of a block add to it.
  Term orthogonalize(optim::OrthogonalizeOp op, Term source, Extents extents,
                     const plan::Slabs &slabs);

  /// Whether the value is known to equal its transpose bit by bit.
  bool isSymmetric(Term term) const { return nodes[term].symmetric; }
  mlir::Type elementOf(Term term) const { return nodes[term].element; }
  /// The value of a scalar that follows from sizes and literals alone.
  std::optional<double> numberOf(Term term) const { return nodes[term].value; }
  /// Returns the first pair of subterms in which two terms differ. The terms must be different.
  std::pair<Term, Term> findDifference(Term a, Term b) const;
  std::string describe(Term term) const;

private:
  /// Parts of orthogonalize: the Gram form of the normalized X, the source divided by its norm, the least
  /// norm to divide by, and a block's norm computed from those of its slabs.
  Term gramForm(optim::OrthogonalizeOp op, Term x, Extents extents, int64_t small, bool tall,
                bool cut);
  Term scaled(optim::OrthogonalizeOp op, Term source, Term norm);
  Term leastNorm(optim::OrthogonalizeOp op);
  Term normOfSlabs(optim::OrthogonalizeOp op, Term norm);

  struct Node {
    llvm::StringRef what; // interned
    mlir::Attribute detail;
    mlir::Type element;
    llvm::SmallVector<Term, 3> operands;
    bool symmetric = false;
    /// The value of a term that follows from sizes and literals alone. That of a condition is 1 or 0.
    std::optional<double> value;
  };
  Term add(llvm::StringRef what, mlir::Attribute detail, mlir::Type element,
           llvm::ArrayRef<Term> operands, bool symmetric = false);
  Term withValue(Term term, std::optional<double> value);
  /// The value of an elementwise operation's result, and the operand that is its result.
  std::optional<double> valueOf(mlir::Operation *op, llvm::ArrayRef<Term> operands) const;
  std::optional<Term> chosenOf(mlir::Operation *op, llvm::ArrayRef<Term> operands) const;

  mlir::MLIRContext *context;
  std::vector<Node> nodes;
  llvm::DenseMap<size_t, llvm::SmallVector<Term, 1>> byHash;
};

/// The terms of a rule for a group of parameters.
struct RuleTerms {
  Term gradient;            ///< what its shards hold; if it is partial, a contribution
  std::vector<Term> before; ///< the parameter, then the states, as their shards hold them
  std::vector<Term> after;
};
/// `planned` is the same rule in the plan. Together with `group` it says which states exist. If the group has
/// a master copy, the rule reads the master as the parameter.
/// `numbers` are those of the model, by number, in f32.
RuleTerms ruleTerms(Terms &terms, optim::RuleOp rule, const plan::Group &group,
                    const plan::Rule &planned, const plan::Contributions &contributions,
                    llvm::ArrayRef<Term> numbers);

/// What one group's shards hold as a step begins, for modelTerms.
struct GroupStart {
  optim::RuleOp rule;
  const plan::Group *group;
  const plan::Rule *planned;
  plan::Contributions contributions;
};
/// What the model's operations make of the elements of all groups.
struct ModelTerms {
  std::vector<Term> numbers;   ///< by number, in f32
  std::vector<Term> states;    ///< what the model's states hold after the step
  std::optional<Term> skipped; ///< not 0 if the model skips the step; nullopt if it skips none
};
/// `groups` has an entry for each group of the plan.
ModelTerms modelTerms(Terms &terms, optim::ModelOp model, const plan::Plan &plan,
                      llvm::ArrayRef<GroupStart> groups);

/// The i-th scalar argument of a rule for a group. The rule's comm.scalars have the same arguments.
Term scalarArgument(Terms &terms, optim::RuleOp rule, const plan::Group &group, unsigned index);

} // namespace stepc::verify

#endif

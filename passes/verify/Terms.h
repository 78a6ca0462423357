//===- Terms.h - What a value is computed from ------------------*- C++ -*-===//
//
// A term is an expression over what a step begins with: the shards as they were, and the scalars of a
// parameter. Equal expressions have one number. A term does not say where its value stands: the proof of the
// tables does. It has literal numbers: an edit of one in the text of a level needs the same edit in the rule.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_TERMS_H
#define STEPC_PASSES_VERIFY_TERMS_H

#include "dialects/optim/Optim.h"

#include "llvm/ADT/DenseMap.h"

#include <vector>

namespace stepc::verify {

/// Equal exactly for equal expressions.
using Term = int64_t;

/// Rows and columns of a matrix.
struct Extents {
  int64_t rows, cols;
};

class Terms {
public:
  explicit Terms(mlir::MLIRContext *context) : context(context) {}

  /// Something that a step begins with.
  Term leaf(llvm::StringRef name, mlir::Type element);
  /// A value like no other.
  Term unknown(mlir::Type element);
  /// A value rounded or widened to another type; the value itself if it has that type.
  Term convert(Term value, mlir::Type element);
  /// An elementwise operation on these operands. A broadcast is none: its element is its source's.
  Term elementwise(mlir::Operation *op, llvm::ArrayRef<Term> operands);
  /// A literal number or condition, of its own type.
  Term constant(mlir::Attribute value);
  Term number(mlir::Type element, double value) {
    return constant(mlir::FloatAttr::get(element, value));
  }
  /// The contributions of ranks, added up, divided and rounded to their type.
  Term sum(Term contribution, int64_t divisor);
  /// A slab with zeros after its end, because others are longer.
  Term padded(Term slab);
  /// A slab that is written over what stood there before.
  Term written(Term slab, Term before) {
    return before == number(elementOf(slab), 0.0) ? padded(slab) : unknown(elementOf(slab));
  }
  /// A function of matrices of these extents, whose elements are extended to f32.
  Term apply(optim::BlockFunctionAttrInterface function, llvm::ArrayRef<Term> sources,
             llvm::ArrayRef<Extents> from, Extents to, mlir::Type element);
  /// The reduction of a matrix, in f32, times 2 to `exponent`.
  Term reduce(optim::Reduction kind, Term source, Extents from, Extents to, int64_t exponent = 0) {
    return apply(optim::BlockReduceAttr::get(context, kind, exponent), source, from, to,
                 mlir::Float32Type::get(context));
  }

  struct Product {
    Term lhs, rhs;
    std::optional<Term> addend;
    bool transposeLhs, transposeRhs;
    int64_t rows, cols, inner;
    double alpha = 1, beta = 0; ///< rounded to f32; beta counts only with an addend
  };
  Term product(const Product &product, mlir::Type element);
  /// What optim.orthogonalize is documented to be, of whole blocks or in slabs. The terms in slabs are those
  /// of one slab, and sums of what all slabs of a block add to it.
  Term orthogonalize(optim::OrthogonalizeOp op, Term source, Extents extents,
                     const plan::Slabs &slabs);

  /// Known to be equal to its transpose, in bits.
  bool isSymmetric(Term term) const { return nodes[term].symmetric; }
  mlir::Type elementOf(Term term) const { return nodes[term].element; }
  /// Where two different terms first differ.
  std::pair<Term, Term> findDifference(Term a, Term b) const;
  std::string describe(Term term) const;

private:
  /// Parts of orthogonalize: the source over its norm, the least norm, and the block's norm from those of its
  /// slabs.
  Term scaled(optim::OrthogonalizeOp op, Term source, Term norm);
  Term leastNorm(optim::OrthogonalizeOp op);
  Term normOfSlabs(optim::OrthogonalizeOp op, Term norm);

  struct Node {
    llvm::StringRef what; // interned
    mlir::Attribute detail;
    mlir::Type element;
    llvm::SmallVector<Term, 3> operands;
    bool symmetric = false;
  };
  Term add(llvm::StringRef what, mlir::Attribute detail, mlir::Type element,
           llvm::ArrayRef<Term> operands, bool symmetric = false);

  mlir::MLIRContext *context;
  std::vector<Node> nodes;
  llvm::DenseMap<size_t, llvm::SmallVector<Term, 1>> byHash;
};

/// The terms of a rule for a group of parameters.
struct RuleTerms {
  Term gradient;            ///< what its shards hold: of a partial one a contribution
  std::vector<Term> before; ///< the parameter, then the states, as their shards hold them
  std::vector<Term> after;
};
/// `planned` and `group` tell which states exist. If the group has a master, the rule reads that as the
/// parameter.
RuleTerms ruleTerms(Terms &terms, optim::RuleOp rule, const plan::Group &group,
                    const plan::Rule &planned, const plan::Contributions &contributions);

/// The i-th scalar argument of a rule, which is also that of its comm.scalars.
Term scalarArgument(Terms &terms, optim::RuleOp rule, unsigned index);

} // namespace stepc::verify

#endif

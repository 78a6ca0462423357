//===- Optim.h - The optim dialect ------------------------------*- C++ -*-===//
//
// The public header of the dialect: operations, attributes, enumerations, and functions with which passes
// look up facts about parameters, rules and groups.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIM_H
#define STEPC_DIALECTS_OPTIM_OPTIM_H

#include "dialects/optim/MatrixBuilder.h"
#include "dialects/optim/NamePattern.h"
#include "dialects/optim/NewtonSchulz.h"
#include "dialects/optim/PlanEnums.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Plan.h"
#include "runtime/random/Philox.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>

namespace stepc::plan {
// MLIR needs these functions to use a Factor as a parameter of an attribute.
inline llvm::hash_code hash_value(const Factor &factor) {
  return llvm::hash_combine(factor.axis, factor.stride, factor.size);
}
mlir::AsmPrinter &operator<<(mlir::AsmPrinter &printer, const Factor &factor);
} // namespace stepc::plan
template <> struct mlir::FieldParser<stepc::plan::Factor> {
  static FailureOr<stepc::plan::Factor> parse(AsmParser &parser);
};

namespace stepc::optim {
using plan::MissingGrad, plan::Reduction, plan::ValueKind;

/// Parses a number of `optim.cluster`. In IR it is written as the value of an f64 is.
mlir::FailureOr<llvm::APFloat> parseFigure(mlir::AsmParser &parser);

/// The facts from which a strategy says whether it is legal, and gives its hops: the blocks of a group, and
/// the ranks that hold them.
struct StrategyQuery {
  const plan::Group &group; ///< the group, without hops and without its list of parameters
  int64_t parameters;       ///< how many parameters the group has
  const plan::Mesh &mesh;
  plan::ShardsKind home; ///< the shards that the blocks come from
  /// Per position and block of a parameter, how many elements the position holds at home.
  const std::vector<std::vector<int64_t>> &held;
  std::vector<plan::ValueKind>
      states;                   ///< kinds of the rule's states, and of what stages on shards read
  std::vector<int64_t> domains; ///< ranks in a domain of each level of the cluster but the last,
                                ///< innermost first: ranks r with equal r / ranks share a domain
  int64_t maxPeers = 0;         ///< the most peers of a rank in a hop; 0: any number
  /// True if every rank that holds an element of a block holds the whole block, after the pieces of ranks
  /// that differ along the `resolved` factors came together.
  bool areWhole(const std::vector<plan::Factor> &resolved = {}) const;
};
} // namespace stepc::optim

#include "dialects/optim/OptimAttrInterfaces.h.inc"
#include "dialects/optim/OptimDialect.h.inc"
#include "dialects/optim/OptimEnums.h.inc"
#include "dialects/optim/OptimOpInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/optim/OptimAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/optim/OptimOps.h.inc"

namespace stepc::optim {

/// The plan's storage type of an MLIR float type. Returns nullopt for other types.
std::optional<plan::DType> toPlan(mlir::Type type);
/// The MLIR type of a storage type.
mlir::Type toType(mlir::MLIRContext *context, plan::DType type);
/// The attribute for a placement of the plan.
mlir::Attribute toAttribute(mlir::MLIRContext *context, const plan::Placement &placement);
/// The plan's form of a list of placement attributes.
std::vector<plan::Placement> toPlan(mlir::ArrayAttr placements);
/// A list of placement attributes as PyTorch writes it: "[S(0), R]".
inline std::string describe(mlir::ArrayAttr placements) { return toString(toPlan(placements)); }
/// The plan's form of a mesh.
plan::Mesh toPlan(MeshOp mesh);
/// The plan's form of a rule: name, hyperparameters and states, without the body.
plan::Rule toPlan(RuleOp rule);

/// The interface by which a dialect lists its strategies. optim-assign-strategies chooses among the listed
/// strategies, and users can force one of them by name.
class StrategyListInterface : public mlir::DialectInterface::Base<StrategyListInterface> {
public:
  explicit StrategyListInterface(mlir::Dialect *dialect) : Base(dialect) {}
  virtual llvm::SmallVector<StrategyAttrInterface> strategies() const = 0;
};
/// The strategies of all loaded dialects, sorted by the name of the dialect. Strategies of one dialect keep
/// the order of its list.
llvm::SmallVector<StrategyAttrInterface> strategies(mlir::MLIRContext *context);
/// The new name of a strategy that had another one: "slabs" of "gram". Empty for other names.
inline llvm::StringRef newNameOf(llvm::StringRef strategy) {
  return strategy == "gram" ? "slabs" : "";
}

/// The kind of a rule's tensor type: tensor<?x?> full, tensor<?x1> rows, tensor<1x?> cols, tensor<1x1>
/// one. A batch axis in front changes nothing. Static sizes other than 1 count as dynamic ones. Tensors of
/// other kinds have an encoding (KindAttr). Returns nullopt for types with less than two axes.
std::optional<ValueKind> kindOf(mlir::Type type);
/// The extents of a value, for comparison with other values' extents. For a tensor of a rule they are the
/// extents of its kind (ValueKind), for a batch of blocks its sizes.
llvm::SmallVector<int64_t> extentsOf(mlir::ShapedType type);
/// The tensor type of a kind in a rule.
mlir::RankedTensorType tensorType(ValueKind kind, mlir::Type element);

/// The mesh, route or parameter of that name in the module around `op`, or null. A look-up takes time linear
/// in the number of operations in the module.
MeshOp lookupMesh(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
RouteOp lookupRoute(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
ParameterOp lookupParameter(mlir::Operation *op, mlir::FlatSymbolRefAttr name);

/// The rule that a parameter takes by its route: that of the route or, for a matrix with more rows than
/// columns, its `tall` rule. The first block of a divided parameter decides. Null if there is no such route.
RuleOp ruleOf(ParameterOp parameter);
/// The name of a rule's `tall` rule is that of the rule and this suffix, which no name in a file has.
inline constexpr llvm::StringLiteral kTallSuffix = ".tall";

/// The optim.model of a module, or of the module around an operation. Null if there is none.
ModelOp findModel(mlir::Operation *op);
/// Set on operations of an optim.model, an integer: the number by which rules know the result (level 2).
inline constexpr llvm::StringLiteral kNumberAttr = "optim.number";
/// The name of the parameter, rule, route and mesh that stand for the model (`optim-expand-model`).
inline constexpr llvm::StringLiteral kModelName = "model";

/// Verifies an operation in a rule or model. It has no fast-math flags. Tensors have two axes and the one
/// type of their kind, and constants have one number for all elements.
llvm::LogicalResult verifyInRule(mlir::Operation *op);
/// Verifies that the body of a rule or a model has these types of arguments and yields values of these types.
llvm::LogicalResult verifyBodyTypes(mlir::Operation *op, mlir::TypeRange arguments,
                                    mlir::TypeRange yields);

/// Whether the pattern matches the parameter's name or an alias. `Named`: a ParameterOp or a
/// FrozenOp.
template <typename Named> bool matches(const NamePattern &pattern, Named named) {
  return pattern.matches(named.getSymName()) ||
         llvm::any_of(named.getAliases().template getAsValueRange<mlir::StringAttr>(),
                      [&](llvm::StringRef alias) { return pattern.matches(alias); });
}

/// Set on the module: "exact", or "fast" if the bits of results may depend on the ranks.
inline constexpr llvm::StringLiteral kNumericsAttr = "stepc.numerics";
bool isFast(mlir::ModuleOp module);

/// The numbers of waves are below this limit. No model needs as many waves, and edited IR text cannot ask for
/// more.
inline constexpr int64_t kMostWaves = int64_t(1) << 20;
/// The most elements of a parameter: 4 TiB of f32 are more than any device holds, and sums over a million
/// parameters still fit int64.
inline constexpr int64_t kMostElements = int64_t(1) << 40;

/// Verifies the shift of a product of level 3, 4 or 5.
template <typename Op> llvm::LogicalResult checkShift(Op op) {
  double shift = op.getShift().convertToDouble();
  if (shift != 0 && !op.getSymmetric())
    return op.emitOpError("expected a shift of symmetric products alone, found ") << shift;
  if (!std::isfinite(float(shift)))
    return op.emitOpError("expected a shift that is finite in f32, found ") << shift;
  return mlir::success();
}

/// The least eps of optim.orthogonalize. Multiplied by 2^-24 it is still a normal f32.
inline constexpr double kLeastEps = 0x1p-100;
/// optim.orthogonalize multiplies the norm by 2 to this exponent, which keeps the norm finite: 2^40 elements
/// of the largest f32 have a norm below 2^148.
inline constexpr int kNormExponent = -24;

/// Set on the module: the most other ranks with which a rank may exchange in a hop. The user chooses it.
inline constexpr llvm::StringLiteral kMaxPeersAttr = "optim.max_peers";
/// The most bytes of states that a rank may have, on the module.
inline constexpr llvm::StringLiteral kStateLimitAttr = "optim.state_limit";
/// On the module, a dictionary: for parameters by name, the global rank that computes each block in the
/// previous plan, -1 if none does.
inline constexpr llvm::StringLiteral kKeptOwnersAttr = "optim.kept_owners";
/// Attribute name of an operation's space (level 2), a SpaceAttr.
inline constexpr llvm::StringLiteral kSpaceAttr = "optim.space";
/// The space of an operation of a decided rule. Returns nullopt if `op` is null or has no space.
std::optional<Space> spaceOf(mlir::Operation *op);

/// Set on a reduction that runs on shards although its lines are cut between ranks, a unit: each rank adds up
/// what it has, and one rank adds up these parts (level 2).
inline constexpr llvm::StringLiteral kCutAttr = "optim.cut";

/// Whether an operation of a rule has a space. Matrix operations have one, and elementwise operations with a
/// full result, or with one of other sizes than the parameter's: such a value is in matrix space alone.
/// Splats, conditions, broadcasts, widenings and what is computed from values per row, column or block alone
/// are computed wherever they are used: every rank knows the scalars, conditions are never sent, and the
/// narrow value travels instead of the wide one.
bool hasSpace(mlir::Operation *op);
/// Whether an operation on elements asks where its element stands: in its block, or among all of its
/// parameter.
bool dependsOnPlace(mlir::Operation *op);
/// The placed tensors that an operation of a rule reads. A tensor is placed if it is an argument of the rule,
/// the result of an operation with a space, or in `placed`. Each is listed once, in the order of operands. An
/// operand that is not placed is replaced by the placed tensors that its operation reads.
llvm::SmallVector<mlir::Value> placedOperands(mlir::Operation *op,
                                              const llvm::DenseSet<mlir::Value> &placed = {});
/// The placed tensor that `operand` is, or those that its operation reads.
llvm::SmallVector<mlir::Value> placedOperands(mlir::Value operand,
                                              const llvm::DenseSet<mlir::Value> &placed = {});
/// Set on the yield of a decided rule: per yielded value, the SpaceAttr in which it is stored, or unit if the
/// value does not change.
inline constexpr llvm::StringLiteral kWritesAttr = "optim.writes";
using Writes = llvm::SmallVector<std::optional<Space>>;
/// The attribute kWritesAttr of the rule's yield: nullopt for a value that does not change. Empty if the rule
/// is not decided.
Writes writesOf(RuleOp rule);

} // namespace stepc::optim

#endif

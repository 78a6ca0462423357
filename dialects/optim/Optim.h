//===- Optim.h - The optim dialect ------------------------------*- C++ -*-===//
//
// The public header of the dialect: operations, attributes, enumerations and the
// questions that passes ask about parameters, rules and groups.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIM_H
#define STEPC_DIALECTS_OPTIM_OPTIM_H

#include "dialects/optim/MatrixBuilder.h"
#include "dialects/optim/NamePattern.h"
#include "dialects/optim/PlanEnums.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Plan.h"

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
#include <optional>
#include <string>

namespace stepc::plan {
// What the parameters of an attribute need.
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

/// A finite number of `optim.cluster`, in IR as an f64's value is.
mlir::FailureOr<llvm::APFloat> parseFigure(mlir::AsmParser &parser);

/// What a strategy is asked about: the blocks of a group, and the machines that hold them.
struct StrategyQuery {
  const plan::Group &group; ///< without hops, of one of its parameters
  int64_t parameters;       ///< how many it has
  const plan::Mesh &mesh;
  plan::ShardsKind home; ///< the shards that the blocks come from
  /// Per position and block of a parameter, how many elements the position holds at home.
  const std::vector<std::vector<int64_t>> &held;
  std::vector<plan::ValueKind> states; ///< kinds of the rule's states
  std::vector<int64_t> domains;        ///< of the cluster's levels but the last, innermost first:
                                       ///< ranks r with equal r / domain share one
  int64_t maxPeers = 0;                ///< that a rank may exchange with in a hop; 0: any number
  /// True when every rank that holds any of a block holds it whole, once what differs along the
  /// `resolved` factors came together.
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

/// The plan's storage type of an MLIR float type; nothing for other types.
std::optional<plan::DType> toPlan(mlir::Type type);
/// The MLIR type of a storage type.
mlir::Type toType(mlir::MLIRContext *context, plan::DType type);
/// The placement attribute of the geometry's form.
mlir::Attribute toAttribute(mlir::MLIRContext *context, const plan::Placement &placement);
/// The geometry's form of a list of placement attributes.
std::vector<plan::Placement> toPlan(mlir::ArrayAttr placements);
/// "[S(0), R]", as in PyTorch.
inline std::string describe(mlir::ArrayAttr placements) { return toString(toPlan(placements)); }
/// The plan's form of a mesh.
plan::Mesh toPlan(MeshOp mesh);
/// The plan's form of a rule, without what it computes.
plan::Rule toPlan(RuleOp rule);

/// The interface by which a dialect lists strategies, so that they are judged and can be forced.
class StrategyListInterface : public mlir::DialectInterface::Base<StrategyListInterface> {
public:
  explicit StrategyListInterface(mlir::Dialect *dialect) : Base(dialect) {}
  virtual llvm::SmallVector<StrategyAttrInterface> strategies() const = 0;
};
/// The strategies of all loaded dialects: dialects by their names, strategies in their order.
llvm::SmallVector<StrategyAttrInterface> strategies(mlir::MLIRContext *context);

/// The kind of a rule's tensor type: tensor<?x?> full, tensor<?x1> rows, tensor<1x?> cols, tensor<1x1>
/// one. A batch axis in front changes nothing. Static sizes other than 1 count as dynamic ones. Other
/// shapes are told by an encoding (KindAttr). Nothing for other types.
std::optional<ValueKind> kindOf(mlir::Type type);
/// The extents of a value, to be compared: those of its kind in a rule, and numbers in a batch of blocks.
llvm::SmallVector<int64_t> extentsOf(mlir::ShapedType type);
/// The tensor type of a kind in a rule.
mlir::RankedTensorType tensorType(ValueKind kind, mlir::Type element);

/// The mesh, route or parameter of that name in the module around `op`, or null. Linear.
MeshOp lookupMesh(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
RouteOp lookupRoute(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
ParameterOp lookupParameter(mlir::Operation *op, mlir::FlatSymbolRefAttr name);

/// Whether the pattern matches the parameter's name or an alias. `Named`: a ParameterOp or a
/// FrozenOp.
template <typename Named> bool matches(const NamePattern &pattern, Named named) {
  return pattern.matches(named.getSymName()) ||
         llvm::any_of(named.getAliases().template getAsValueRange<mlir::StringAttr>(),
                      [&](llvm::StringRef alias) { return pattern.matches(alias); });
}

/// Set on the module: "exact", or "fast" where bits may depend on the ranks.
inline constexpr llvm::StringLiteral kNumericsAttr = "stepc.numerics";
bool isFast(mlir::ModuleOp module);

/// Waves are below it: far more than blocks to divide, and a bound on what an edited text can ask
/// for.
inline constexpr int64_t kMostWaves = int64_t(1) << 20;
/// Elements of a parameter: 4 TiB of f32 are more than any device holds, and sums over a million
/// parameters still fit int64.
inline constexpr int64_t kMostElements = int64_t(1) << 40;

/// The least eps of optim.orthogonalize: 2^-24 of it is a normal f32.
inline constexpr double kLeastEps = 0x1p-100;
/// optim.orthogonalize scales its norm by 2 to this: 2^40 elements of the largest f32 have a norm
/// below 2^148.
inline constexpr int kNormExponent = -24;

/// Set on the module: with how many others the user lets a rank exchange in a hop.
inline constexpr llvm::StringLiteral kMaxPeersAttr = "optim.max_peers";
/// Attribute name of an operation's space (level 2), a SpaceAttr.
inline constexpr llvm::StringLiteral kSpaceAttr = "optim.space";
/// The space of an operation of a decided rule. Nothing for null, and for an operation that has none.
std::optional<Space> spaceOf(mlir::Operation *op);

/// Whether an operation of a rule has a space. Operations with a tensor result have one, except splats and
/// conditions. These two are computed wherever they are used: a scalar is known everywhere, and no condition
/// travels.
bool hasSpace(mlir::Operation *op);
/// The tensors that an operation of a rule reads and that stand somewhere: arguments, and results of
/// operations with a space. Each is listed once, in the order of operands. Conditions among the operands
/// stand for what they read.
llvm::SmallVector<mlir::Value> placedOperands(mlir::Operation *op);
/// The placed tensors that an operand of the yield reads.
llvm::SmallVector<mlir::Value> placedOperands(mlir::Value operand);
/// Set on the yield of a decided rule: per yielded value, the SpaceAttr in which it is stored, or unit if the
/// value does not change.
inline constexpr llvm::StringLiteral kWritesAttr = "optim.writes";
using Writes = llvm::SmallVector<std::optional<Space>>;
/// What the rule's yield says; empty before it is decided.
Writes writesOf(RuleOp rule);

} // namespace stepc::optim

#endif

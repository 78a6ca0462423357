//===- BodyEmitter.h - The bodies of rules and the model --------*- C++ -*-===//
//
// Private to this folder. Expressions become values of the types that
// OptimBase.td lists; a scalar meets a tensor in `toShape`, where it is rounded
// once to f32, and a bf16 or f16 value is extended in `toF32`.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_FRONTENDS_LANGUAGE_BODYEMITTER_H
#define STEPC_FRONTENDS_LANGUAGE_BODYEMITTER_H

#include "frontends/language/Emit.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace stepc::lang {

/// Emits the statements that rules and the model have in common.
class BodyEmitter {
protected:
  BodyEmitter(const Body &body, const Source &source, mlir::ModuleOp module)
      : body(body), source(source), builder(module.getBodyRegion()) {
    builder.setInsertionPointToEnd(module.getBody());
    for (const LetStatement *let : body.sizes)
      sizes.try_emplace(let->sizeName, sizes.size());
  }

  // Declarations and statements, in Emit.cpp.
  mlir::ArrayAttr hyperparameterNames();
  void addHyperparameters(mlir::Block &block);
  /// The attributes of the declared states, without a master, and behind them those of the metrics.
  llvm::SmallVector<mlir::Attribute> stateAttributes();
  void emitStatements(const Statements &statements);
  void emitLet(const LetStatement &let);
  void emitAssignment(const AssignStatement &assign);
  void emitSkip(const SkipStatement &skip);

  // Types and conversions.
  mlir::Location locate(SourceRange range) const;
  mlir::Type elementType(ElementType element);
  optim::ValueKind valueKind(Shape shape) const;
  mlir::RankedTensorType tensorType(Shape shape, mlir::Type element);
  mlir::Value constant(mlir::Location loc, double value);
  /// A constant of the type of `like`.
  mlir::Value constantLike(mlir::Location loc, double value, mlir::Value like);
  mlir::Value toF32(mlir::Location loc, mlir::Value value);
  mlir::Value toElement(mlir::Location loc, mlir::Value value, ElementType element);
  /// Broadcasts a number, as f32, or a condition to a tensor shape. For
  /// Shape::Scalar returns the value itself, which must be a scalar.
  mlir::Value toShape(mlir::Location loc, mlir::Value value, Shape shape);
  mlir::Value emitTo(const Expr &expr, Shape shape);

  // Expressions, in EmitExpressions.cpp.
  mlir::Value emit(const Expr &expr);
  mlir::Value emitName(const NameExpr &name);
  mlir::Value emitUnary(const UnaryExpr &unary);
  mlir::Value emitBinary(const BinaryExpr &binary);
  mlir::Value emitLink(const BinaryExpr &binary, mlir::Value lhs);
  mlir::Value emitPower(const BinaryExpr &binary, mlir::Value base);
  mlir::Value emitModelValue(const ModelValueExpr &value);
  /// The number of each row (column) of a matrix, from 0, as one value per row (column).
  mlir::Value emitPosition(mlir::Location loc, plan::Division::Axis axis, Size size);
  /// 1 where the numbers of row and column are equal, and otherwise 0.
  mlir::Value emitIdentity(mlir::Location loc, Shape shape);
  mlir::Value emitProduct(const BinaryExpr &binary, mlir::Value lhs);
  /// The value of a tensor in another element type. A product is rounded to it at once.
  mlir::Value emitRounded(const Expr &expr, ElementType element);
  mlir::Value emitSize(mlir::Location loc, Size size);
  /// The numbers of rows and columns, as the body sees them.
  mlir::Value seenRows() const { return isTall ? cols : rows; }
  mlir::Value seenCols() const { return isTall ? rows : cols; }
  mlir::Value emitCall(const CallExpr &call);
  mlir::Value emitInlined(const CallExpr &call);
  /// Emits a part of which only the sizes are read, if functions are called in it: they may declare sizes.
  void emitSizesIn(const Expr &expr);
  /// The upper and lower 16 bits of a scalar, rounded down and modulo 2^32, as tensors of one value.
  std::pair<mlir::Value, mlir::Value> emitHalves(mlir::Location loc, mlir::Value count);
  /// Random numbers of this step, drawn if the condition, of one value, is null or holds.
  mlir::Value emitRandom(mlir::Location loc, plan::Draw draw, Shape shape,
                         mlir::Value condition = {});
  mlir::Value emitFinite(mlir::Location loc, mlir::Value value);
  mlir::Value emitSign(mlir::Location loc, mlir::Value value);
  mlir::Value emitLerp(mlir::Location loc, mlir::ValueRange operands);
  mlir::Value emitSelect(const CallExpr &call);
  mlir::Value emitReduction(const CallExpr &call);
  mlir::Value emitOrthogonalize(const CallExpr &call);

  const Body &body;
  const Source &source;
  /// Whether each value is stored as the transpose of what the body says: then rows of the body are columns
  /// of the parameter.
  bool isTall = false;
  mlir::OpBuilder builder;
  std::vector<mlir::Location>
      calls; ///< Where the text that is emitted is called, the outermost first.
  /// The values of the names. An assignment to `param` or `grad` replaces theirs.
  mlir::Value param, grad, step, rows, cols, numel;
  /// Whether the step is skipped, by the statements so far: one condition. Null if none of them says so.
  mlir::Value skipped;
  llvm::DenseMap<const Hyperparameter *, mlir::Value> hyperparameters;
  llvm::DenseMap<const StateDeclaration *, mlir::Value> states; ///< Current values.
  /// The values that the step stores in states. An assignment changes the value only if no statement above it
  /// skips the step.
  llvm::DenseMap<const StateDeclaration *, mlir::Value> kept;
  llvm::DenseMap<const LetStatement *, mlir::Value> lets;
  llvm::StringMap<int64_t> sizes;          ///< The numbers of the `let`s that are sizes.
  llvm::StringMap<mlir::Value> sizeValues; ///< What those `let`s have as value, by name.
  llvm::SmallVector<mlir::Value> metrics;  ///< In the order of the statements.
  int64_t draws = 0;                       ///< How often the rule draws random numbers, so far.
};

} // namespace stepc::lang

#endif // STEPC_FRONTENDS_LANGUAGE_BODYEMITTER_H

//===- Target.h - What targets differ in ------------------------*- C++ -*-===//
#ifndef STEPC_PASSES_KERNELS_TARGET_H
#define STEPC_PASSES_KERNELS_TARGET_H

#include "passes/kernels/products/Products.h"

#include <memory>

namespace stepc::kernels {

/// Answers what levels 5 and 6 may not know by themselves. A new target is a class of this kind in a
/// file of its own, and a line in Target.cpp.
class Target {
public:
  explicit Target(std::string chip) : text(std::move(chip)) {}
  virtual ~Target() = default;

  /// The chip, with all that decides what its code may use. It stands on the module and in the
  /// plan.
  const std::string &chip() const { return text; }

  /// The kernels of a product, of a reduction, and the scratch that they need per block. The order
  /// in which a product accumulates is the target's, the same for a shape whatever the batch or the
  /// rank.
  virtual mlir::FailureOr<BatchKernels> product(mlir::SymbolTable &symbols,
                                                optim::ProductOp op) const = 0;
  virtual mlir::FailureOr<BatchKernels> blockReduce(mlir::SymbolTable &symbols,
                                                    optim::BlockReduceOp op) const = 0;

  /// Whether the chip has fused multiply-adds of f32 and f64.
  virtual bool fuses() const = 0;
  /// Whether it converts between f16 and f32 by itself, denormal numbers included.
  virtual bool convertsHalf() const = 0;

private:
  std::string text;
};

/// The target of a text as users write it: "cpu" (this machine), "cpu:<llvm cpu>". Errors say what
/// is known.
llvm::Expected<std::unique_ptr<Target>> targetOfText(llvm::StringRef text);

/// The target that a module at level exec or later is for.
mlir::FailureOr<std::unique_ptr<Target>> targetOfModule(mlir::ModuleOp module);

/// A processor of this machine's architecture, from its chip (TargetShape.h).
llvm::Expected<std::unique_ptr<Target>> makeCpuTarget(llvm::StringRef chip);

} // namespace stepc::kernels

#endif

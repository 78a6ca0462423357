//===- OptimModel.td - What a step does for all parameters at once *- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMMODEL_TD
#define STEPC_DIALECTS_OPTIM_OPTIMMODEL_TD

include "dialects/optim/OptimTensorOps.td"
include "dialects/optim/OptimAttrs.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Optim_StateArray : TypedArrayAttrBase<Optim_State, "states">;

def Optim_ModelOp : Optim_Op<"model", [IsolatedFromAbove, HasParent<"::mlir::ModuleOp">,
                                       SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "what a step computes of all parameters together, before the rules";
  let description = [{
    The body's arguments are, in order: the parameter and its gradient (full, f32), the hyperparameters (f64),
    and `step` (f64), the number of this step among those of the model. All parameters count as one vector.
    So an `optim.reduce` to one value is over all elements of all parameters that the step takes. The body
    yields the gradient that the rules see in the place of the parameter's, and the values that they may read
    (`optim.model_value`). Behind them it yields the new value of each state, which `optim.model_state` reads
    as it was. With `skips` it yields one value more. If this is not 0, the step changes nothing but these
    states.

    ```mlir
    optim.model hyperparameters ["max_norm"] defaults [1.0] values ["total"] {
    ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %max_norm: f64, %step: f64):
      %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
      %most = optim.splat %max_norm : tensor<1x1xf32>
      %factor = arith.divf %most, %total : tensor<1x1xf32>
      %factors = optim.broadcast %factor : tensor<1x1xf32> to tensor<?x?xf32>
      %scaled = arith.mulf %factors, %grad : tensor<?x?xf32>
      optim.yield %scaled, %total : tensor<?x?xf32>, tensor<1x1xf32>
    }
    ```
    `optim-expand-model` gives numbers to the reductions, to the states, and to the splats of scalars that are
    no literals (`optim.number`). These are all that a step must know of the model: rules compute the rest
    again.
    Constraints: one per module; argument and yield types as above; names distinct; as many defaults as
    hyperparameters; elementwise operations without regions, and reductions to one value; no
    `optim.model_value` and no `optim.model_number`; states are of f32 and kind one, and no master; numbers
    are of i64, distinct, and below their count.
  }];
  let arguments = (ins StrArrayAttr:$hyperparameters, DenseF64ArrayAttr:$defaults, StrArrayAttr:$values,
                       DefaultValuedAttr<Optim_StateArray, "{}">:$states, UnitAttr:$skips);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `hyperparameters` $hyperparameters `defaults` custom<Defaults>($defaults) `values` $values
    (`states` $states^)? (`skips` $skips^)? attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// The operations that have numbers, by number.
    ::llvm::SmallVector<::mlir::Operation *> getNumbers();
    ::mlir::BlockArgument getParameterArgument() { return getBody().getArgument(0); }
    ::mlir::BlockArgument getGradientArgument() { return getBody().getArgument(1); }
    /// The value that is not 0 if the step is skipped. Null if the model skips no step.
    ::mlir::Value getSkipped();
    /// The new values of the states.
    ::mlir::OperandRange getNewStates();
    unsigned getNumHyperparameters() { return getHyperparameters().size(); }
    /// The number of the first scalar argument: the hyperparameters, then the step.
    static constexpr unsigned kFirstScalarArgument = 2;
    /// Builds what the model computes of a parameter and its gradient, with `optim.model_number` in the place
    /// of operations that have numbers. Returns the new values by those in the model.
    ::mlir::IRMapping inlineFor(::mlir::OpBuilder &builder, ::mlir::Value parameter,
                                ::mlir::Value gradient);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Optim_ModelValueOp : Optim_Op<"model_value", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a value of the model, in a rule (level 1)";
  let description = [{
    ```mlir
    %total = optim.model_value "total" : tensor<1x1xf32>
    ```
    `optim-expand-model` replaces it by what the model computes.
    Constraints: the module has an `optim.model` that yields a value of this name; the type is that of one
    value.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def Optim_ModelStateOp : Optim_Op<"model_state", [Pure, HasParent<"ModelOp">,
                                                  DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a state of the model as it is before the step";
  let description = [{
    ```mlir
    %ema = optim.model_state "ema" : tensor<1x1xf32>
    ```
    Constraints: the model has a state of this name that is no metric; the type is that of one value.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// The number of the state; -1 if the model has none of this name.
    int64_t getIndex();
    /// Whether anything but the state itself needs the old value.
    bool isRead();
  }];
}

def Optim_ModelNumberOp : Optim_Op<"model_number", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a number of the model, in a rule (level 2)";
  let description = [{
    The result of the operation of `optim.model` that has this number. Every rank knows the number before it
    computes a rule. It is an f32, widened to f64.
    ```mlir
    %n = optim.model_number 0 : f64
    %total = optim.splat %n : tensor<1x1xf32>
    ```
    Constraints: an operation of the module's `optim.model` has the number.
  }];
  let arguments = (ins I64Attr:$number);
  let results = (outs F64:$result);
  let assemblyFormat = "$number attr-dict `:` type($result)";
}

#endif

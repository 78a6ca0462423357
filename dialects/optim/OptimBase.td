//===- OptimBase.td - The optim dialect ------------------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMBASE_TD
#define STEPC_DIALECTS_OPTIM_OPTIMBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Optim_Dialect : Dialect {
  let name = "optim";
  let cppNamespace = "::stepc::optim";
  let summary = "Optimizer rules on whole parameters, and the parameters with their placements";
  let description = [{
    Levels 1 and 2 of the ladder. An `optim.rule` holds what a user wrote: a function of one logical
    parameter, its gradient, its states and run-time scalars. Placements never appear in a rule. Parameters,
    meshes and routes are operations of their own in the module, found by name.

    Values inside a rule are builtin types, so that `arith` and `math` compute on them:

    | kind | type | meaning |
    |---|---|---|
    | scalar | `f64` | hyperparameters, `step`, `rows`, `cols`, `numel` and what is computed from them |
    | full | `tensor<?x?xT>` | shaped like the parameter's matrix block; a vector of n is 1 × n |
    | rows | `tensor<?x1xT>` | one value per row |
    | cols | `tensor<1x?xT>` | one value per column |
    | one | `tensor<1x1xT>` | one value per block |
    | any other | `tensor<?x8xT, #optim.kind<[cols, 8]>>` | values of matrix space alone |

    An extent of other kinds is `rows`, `cols`, `smaller` (the smaller of the two), a number, or a size of the
    rule (`size0` is that of `optim.size 0`).
    `T` is f32, except for operands of `optim.orthogonalize` and `optim.matmul`, and explicit casts;
    conditions are `i1`. `optim.splat` makes a tensor of a scalar and rounds the scalar once to f32. In the
    matrix space of level 3, these operations also work on tensors with a batch axis of blocks in front.

    Discardable attributes of a decided rule: `optim.space` on an operation says where it runs:
    `#optim.space<in>`, `<matrix>` or `<out>`. `optim.writes` on the yield says per value in which space it is
    stored, or `unit` for a value that does not change. `optim.cut`, a unit, stands on a reduction that runs
    on shards although ranks have parts of the same lines. `optim.number` is the number of an operation of
    an `optim.model`. On the module, `optim.max_peers` is the most other
    ranks with which the user lets a rank exchange in a hop, an i64 above 0. `optim.state_limit`, also one, is
    the most bytes of states that a rank may have. `optim.kept_owners` is a dictionary: it says which global
    rank computed each block of a parameter in the previous plan (`optim-balance-owners`).
    Constraints: no other attributes of this dialect, and no other values.
  }];
  let extraClassDeclaration = "void registerAttributes();";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

// The number that a product adds to the diagonal of its result.
def Optim_Shift : DefaultValuedOptionalAttr<F64Attr, "::llvm::APFloat(0.0)">;

class Optim_Op<string mnemonic, list<Trait> traits = []> : Op<Optim_Dialect, mnemonic, traits>;

#endif

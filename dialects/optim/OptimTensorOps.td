//===- OptimTensorOps.td - Operations inside of rules ----------*- tablegen -*-===//
//
// Operations on whole tensors, for levels 1 and 2.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMTENSOROPS_TD
#define STEPC_DIALECTS_OPTIM_OPTIMTENSOROPS_TD

include "dialects/optim/OptimAttrs.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def AnyTensorOf : AnyTypeOf<[RankedTensorOf<[F32, BF16, F16, I1]>]>;
def FloatTensor : RankedTensorOf<[F32, BF16, F16]>;

def Optim_SplatOp : Optim_Op<"splat", [Pure]> {
  let summary = "a scalar, rounded once to the tensor's type, as a tensor";
  let arguments = (ins F64:$scalar);
  let results = (outs FloatTensor:$result);
  let assemblyFormat = "$scalar attr-dict `:` type($result)";
}

def Optim_BroadcastOp : Optim_Op<"broadcast", [Pure]> {
  let summary = "a rows, cols or one value as a full, rows or cols tensor";
  let description = [{
    ```mlir
    %f = optim.broadcast %v : tensor<?x1xf32> to tensor<?x?xf32>
    ```
    Constraints: same element type and rank; each axis equal or 1 in the source. (In a rule, this operation
    and the others compare extents by name: rows, cols, smaller or a constant.)
  }];
  let arguments = (ins AnyTensorOf:$source);
  let results = (outs AnyTensorOf:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Optim_PositionOp : Optim_Op<"position", [Pure]> {
  let summary = "where an element stands in its block: the number of its row or column, from 0";
  let description = [{
    ```mlir
    %r = optim.position rows : tensor<?x1xf32>
    ```
    Rounded to f32: numbers above 2^24 may be a neighbour. In the region of a comm.stage, and in kernels over
    chunks, the result is a scalar: the row or column of the element that the region computes. The block is
    the whole one, wherever its elements lie. A value of another shape than the block has rows and columns of
    its own.
    Constraints: a tensor has one value per row for rows, and one per column for columns.
  }];
  let arguments = (ins Optim_BlockAxis:$axis);
  let results = (outs AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$result);
  let assemblyFormat = "custom<Word>($axis) attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Optim_RandomOp : Optim_Op<"random", [Pure, AllTypesMatch<["high", "low", "stepHigh", "stepLow"]>,
                                         AttrSizedOperandSegments]> {
  let summary = "random numbers, one for each element (runtime/random/Philox.h)";
  let description = [{
    ```mlir
    %n = optim.random normal seed %high, %low step %zero, %one if %first : tensor<1x1xi1> call 0
        : tensor<1x1xf32> to tensor<?x?xf32>
    %u = optim.random uniform seed %high, %low step %stepHigh, %stepLow call 1
        : tensor<1x1xf32> to tensor<?x?xf32>
    ```
    Numbers of the normal distribution of mean 0 and variance 1, or uniform numbers from 0 to below 1, of 24
    bits or, of `uniform16`, of 16 bits.
    `high` and `low` are halves of the seed, whole numbers from 0 to 65535, and so are those of the step. They
    and the condition have one value for all elements. If the condition does not hold, the results are 0.
    `call` tells the draws of a rule apart.
    In the region of a comm.stage all values are scalars. In a kernel over chunks, the element's number among
    those of its parameter, and the parameter's key, become operands.
    Constraints: a call from 0 to 2^30 - 1; seed, step and condition of one value; a tensor of the result has
    a value for each element of a block.
  }];
  let arguments = (ins Optim_Draw:$draw, AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$high,
                       AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$low,
                       AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$stepHigh,
                       AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$stepLow,
                       Optional<AnyTypeOf<[I1, RankedTensorOf<[I1]>]>>:$condition,
                       I64Attr:$call, Optional<I64>:$element, Optional<I64>:$key);
  let results = (outs AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$result);
  let assemblyFormat = [{
    custom<Word>($draw) `seed` $high `,` $low `step` $stepHigh `,` $stepLow
    (`if` $condition^ `:` type($condition))? `call` $call (`at` $element^ `:` type($element))?
    (`of` $key^ `:` type($key))? attr-dict `:` type($high) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Optim_StochasticOp : Optim_Op<"stochastic", [Pure, AllTypesMatch<["source", "uniform"]>] #
                                               ElementwiseMappable.traits> {
  let summary = "round to bf16, up or down by chance";
  let description = [{
    ```mlir
    %u = optim.random uniform16 seed %high, %low step %stepHigh, %stepLow call 1
        : tensor<1x1xf32> to tensor<?x?xf32>
    %r = optim.stochastic %x, %u of parameter : tensor<?x?xf32> to tensor<?x?xbf16>
    ```
    The result is one of the two neighbours of %x in bf16. It is the one with the larger magnitude if the 16
    bits that bf16 drops of %x, as a whole number, and %u · 2^16, rounded down, add up to 2^16 or more. So for
    a uniform %u the mean of the results is %x. A number of bf16 stays, infinities stay, and a
    NaN is a NaN. Above the largest number of bf16 the other neighbour is infinity.
    `of parameter` marks the result that the parameter takes. If the parameter is f32, nothing is rounded:
    `optim-fold-conditions` drops the operation.
    Constraints: a result of the source's extents. %u is at least 0 and below 1.
  }];
  let arguments = (ins AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$source,
                       AnyTypeOf<[F32, RankedTensorOf<[F32]>]>:$uniform, UnitAttr:$ofParameter);
  let results = (outs AnyTypeOf<[BF16, RankedTensorOf<[BF16]>]>:$result);
  let assemblyFormat = [{
    $source `,` $uniform (`of` `parameter` $ofParameter^)? attr-dict `:` type($source) `to` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$source, "::mlir::Value":$uniform)>];
  let hasVerifier = 1;
}

def Optim_SizeOp : Optim_Op<"size", [HasParent<"RuleOp">]> {
  let summary = "a scalar that is a size of values of the rule";
  let description = [{
    ```mlir
    %x = optim.matmul %m, %q : tensor<?x?xf32>, tensor<?x?xf32, #optim.kind<[cols, size0]>>
        -> tensor<?x?xf32, #optim.kind<[rows, size0]>>
    optim.size 0 "r" = %r
    ```
    Values whose kind names `size0` have %r rows (columns). It follows from rows, cols, numel and literals
    alone, so it is known for each parameter (`sizes` of `optim.parameter`): a whole number from 1 to 2^20.
    Constraints: in a rule, numbered in order from 0, at most 8.
  }];
  let arguments = (ins I64Attr:$number, StrAttr:$name, F64:$value);
  let assemblyFormat = "$number $name `=` $value attr-dict";
}

def Optim_LerpOp : Optim_Op<"lerp", [Pure, AllTypesMatch<["from", "to", "weight", "result"]>]> {
  let summary = "linear interpolation: from + weight · (to − from)";
  let description = [{Rounds as sub, mul, add. Expanded by `optim-expand-named`.}];
  let arguments = (ins FloatTensor:$from, FloatTensor:$to, FloatTensor:$weight);
  let results = (outs FloatTensor:$result);
  let assemblyFormat = "$from `,` $to `,` $weight attr-dict `:` type($result)";
}

def Optim_MomentumOp : Optim_Op<"momentum", [Pure, AllTypesMatch<["state", "gradient", "decay", "result"]>]> {
  let summary = "classical momentum: decay · state + gradient";
  let description = [{Rounds as mul, add. Expanded by `optim-expand-named`.}];
  let arguments = (ins FloatTensor:$state, FloatTensor:$gradient, FloatTensor:$decay);
  let results = (outs FloatTensor:$result);
  let assemblyFormat = "$state `,` $gradient `,` $decay attr-dict `:` type($result)";
}

def Optim_DecayOp : Optim_Op<"decay", [Pure, AllTypesMatch<["parameter", "result"]>]> {
  let summary = "decoupled weight decay: (1 − lr · weight_decay) · parameter";
  let description = [{The factor is a scalar in f64, rounded once. Expanded by `optim-expand-named`.}];
  let arguments = (ins FloatTensor:$parameter, F64:$lr, F64:$weight_decay);
  let results = (outs FloatTensor:$result);
  let assemblyFormat = "$parameter `,` $lr `,` $weight_decay attr-dict `:` type($result)";
}

def Optim_ReduceOp : Optim_Op<"reduce", [Pure, DeclareOpInterfaceMethods<Optim_MatrixOpInterface>]> {
  let summary = "sum, mean, rms, norm or max over a block, its columns or its rows";
  let description = [{
    A reduction over columns gives one value per row, over rows one per column, over both one per block. The
    result's type says which. S is the exact sum of the terms, rounded once to f64, to nearest with ties to
    even. The terms of `norm` and `rms` are the exact squares of the elements. `sum` is S, `mean` is
    S / count, `norm` is √S, `rms` is √(S / count), each operation in f64, and the result is rounded to f32.
    No order of additions is part of the meaning. A NaN, or both infinities, give NaN (0x7fc00000). One
    infinity gives itself, in `norm` and `rms` +∞. A sum of 0 is +0. (S is rounded first so that one routine
    finishes all four. So 1 + 2^-24 + 2^-80 is 1.)

    `max` is IEEE 754's maximum: it propagates NaN (0x7fc00000), and +0 is above −0. The sum of no values is
    0, their max −∞.

    ```mlir
    %v = optim.reduce mean %x : tensor<?x?xf32> to tensor<?x1xf32>
    ```
    Constraints: f32; equal rank (2, or 3 with a batch); each result axis equal to the source's or 1.
  }];
  let arguments = (ins Optim_Reduction:$kind, RankedTensorOf<[F32]>:$source);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "custom<Word>($kind) $source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Optim_BlockReduce : Optim_Attr<"BlockReduce", "block_reduce",
                                   [DeclareAttrInterfaceMethods<Optim_BlockFunctionInterface>]> {
  let summary = "`optim.reduce` of a block, as a function of blocks with kernels of its own";
  let description = [{
    A `norm` or `rms` is multiplied by 2 to the `exponent` before it is rounded, so that f32 can hold a norm
    above the largest f32.
    ```mlir
    #optim.block_reduce<norm, exponent = -24>
    ```
    Constraints: the exponent is between -30 and 30, and 0 unless the kind is `norm` or `rms`. One source. An
    out of f32 with one value per block, row or column.
  }];
  let parameters = (ins "::stepc::plan::Reduction":$kind, DefaultValuedParameter<"int64_t", "0">:$exponent);
  let assemblyFormat = "`<` $kind (`,` `exponent` `=` $exponent^)? `>`";
  let genVerifyDecl = 1;
}

def Optim_MatmulOp : Optim_Op<"matmul", [Pure, DeclareOpInterfaceMethods<Optim_MatrixOpInterface>]> {
  let summary = "the product of two matrices of a block";
  let description = [{
    Each factor may be transposed. The sum over the inner extent is in f32, in the order that
    `optim.product` says, and rounded once to the result's type. The product of a value and its own
    transpose is symmetric in bits, and only its triangle is computed. Extents are compared as names:
    `rows` is not `cols`, not even of a square block.

    ```mlir
    %g = optim.matmul %x, %x {transpose_rhs} : tensor<?x?xbf16>, tensor<?x?xbf16>
        -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
    ```
    Constraints: equal inner extents; factors of one element type; a result of the outer extents.
  }];
  let arguments = (ins FloatTensor:$lhs, FloatTensor:$rhs, UnitAttr:$transpose_lhs,
                       UnitAttr:$transpose_rhs);
  let results = (outs FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Optim_TransposeOp : Optim_Op<"transpose", [Pure, DeclareOpInterfaceMethods<Optim_MatrixOpInterface>]> {
  let summary = "the transpose of a matrix of a block";
  let description = [{
    Elements keep their bits. A factor of a product needs none: `optim.matmul` reads it transposed.

    ```mlir
    %t = optim.transpose %x : tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[cols, rows]>>
    ```
    Constraints: equal element types; the result has the source's extents in the other order.
  }];
  let arguments = (ins FloatTensor:$source);
  let results = (outs FloatTensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$source)>];
  let hasVerifier = 1;
}

def Optim_BlockTranspose : Optim_Attr<"BlockTranspose", "block_transpose",
                                      [DeclareAttrInterfaceMethods<Optim_BlockFunctionInterface>]> {
  let summary = "`optim.transpose` of a block, as a function of blocks with kernels of its own";
  let description = [{
    ```mlir
    #optim.block_transpose
    ```
    Constraints: one source; an out of the same type, with the source's extents in the other order.
  }];
}

def Optim_OrthogonalizeOp : Optim_Op<"orthogonalize",
    [Pure, DeclareOpInterfaceMethods<Optim_MatrixOpInterface, ["takesSlabs"]>]> {
  let summary = "Newton–Schulz orthogonalization of each block";
  let description = [{
    Computes one exact sequence, with X of r × c (transposed first if r > c). First X ← X / max(‖X‖_F,
    eps), with the norm and the division in f32, rounded to the operand type, which is the result's.
    (‖X‖_F is as in `optim.reduce norm`. Both arguments of max, and the quotient, are times 2^-24, so
    that the norm of any finite X is finite.) Then per coefficient (a, b, c): A = X Xᵀ; B = c · (A A) +
    b · A; X = (B X) + a · X, with f32 accumulation over k in increasing order as `optim.product` says.
    The epilogue c · acc + b · A (or acc + a · X) is in f32, and each result is rounded to the operand
    type. If c = 0 there is no product A A, and B is b · X Xᵀ, rounded once. A is symmetric in bits.
    Source: Jordan et al., Muon (2024); coefficients as given.

    The form `gram` computes the same polynomial of X from n × n matrices, with n the shorter side. It is for
    long blocks, where X Xᵀ and B X cost most. It parts the steps into runs: a run begins with the first step
    and after each of `restarts`, the numbers of steps that are done before. A run begins with R = X Xᵀ. All
    that follows is a polynomial of R, so all n × n products are `symmetric` ones: half is computed and
    mirrored, and they are symmetric in bits. A step (a, b, c) makes, each rounded to the operand type:
    1. Z = c · (R R) + b · R. In the second step of a run it is P = c · (R R) + b · R + a · I instead, with
       a as the product's shift.
    2. Q, so that Q X is X after this step. In the second step of a run it is Q = Z' P + a' · P, with Z' and
       a' of the first step. In later ones it is Q = (Q Z) + a · Q.
    3. The next R, but not in the last step of a run: W = (R Z) + a · R; R = (Z W) + a · W. In the second step
       of a run it is W = R P; R = P W.
    At the end of a run X = Q X, or after a run of one step X = (Z X) + a · X. If c = 0 in a step that is not
    the second of its run, Z is b · R without a product of its own: a product of Z and a matrix is b times
    the product of R and that matrix. For a tall X, R is Xᵀ X, and X Q takes the place of Q X.

    The form `auto` is `gram` for a block whose longer side is at least 1.5 times the shorter one, and
    `standard` for others. Source: Zhang, Amsel, Chen, Dao, Gram Newton–Schulz (2026).

    ```mlir
    %o = optim.orthogonalize %u coefficients [[3.4445, -4.775, 2.0315]] eps 1.0e-07 : tensor<?x?xbf16>
    ```
    The source has the operand type, or is f32. f16 holds no number above 65504 and few below 6e-5. So an f32
    source that is orthogonalized in f16 is normalized first and then rounded.
    ```mlir
    %o = optim.orthogonalize %u coefficients [[3.4445, -4.775, 2.0315]] eps 1.0e-07 : tensor<?x?xf32>
        to tensor<?x?xf16>
    ```
    ```mlir
    %o = optim.orthogonalize %u coefficients [[3.4, -4.7, 2.0], [3.4, -4.7, 2.0]] eps 1.0e-07 form gram
        restarts [1] : tensor<?x?xf32> to tensor<?x?xf16>
    ```
    Constraints: at least one step of coefficients, three numbers each, finite in f32; eps at least 2^-100 and
    finite in f32; equal shapes, which are full in a rule; a source of the result's element type, or of f32;
    restarts only of `gram` and `auto`, ascending, each at least 1 and below the number of steps; with a
    result of f16, coefficients that keep all values below 65504 (NewtonSchulz.h has the bound).
  }];
  let arguments = (ins FloatTensor:$source, ArrayAttr:$coefficients, F64Attr:$eps,
                       OptionalAttr<Optim_Form>:$form, OptionalAttr<DenseI64ArrayAttr>:$restarts);
  let results = (outs FloatTensor:$result);
  let assemblyFormat = [{
    $source `coefficients` $coefficients `eps` $eps (`form` custom<Word>($form)^)? (`restarts` $restarts^)?
    attr-dict `:` custom<SourceAndResult>(type($source), type($result))
  }];
  let extraClassDeclaration = [{
    /// The coefficients (a, b, c) of each step.
    ::llvm::SmallVector<::std::array<double, 3>> getSteps();
    /// Whether a block of rows × cols is computed in the Gram form.
    bool isGram(int64_t rows, int64_t cols);
  }];
  let hasVerifier = 1;
}

#endif

//===- OptimBatchOps.td - Operations on batches of blocks ------*- tablegen -*-===//
//
// Operations of matrix space (on whole blocks) at levels 3 and 4, in destination style.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMBATCHOPS_TD
#define STEPC_DIALECTS_OPTIM_OPTIMBATCHOPS_TD

include "dialects/optim/OptimAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"

def FloatTensorOrMemRef : AnyTypeOf<[RankedTensorOf<[F32, BF16, F16]>,
                                     MemRefOf<[F32, BF16, F16]>]>;

class Optim_BatchOp<string mnemonic>
    : Optim_Op<mnemonic, [DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  code batchDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getInitMutable(); }
  }];
}

def Optim_ProductOp : Optim_BatchOp<"product"> {
  let summary = "batched product with epilogue: out = alpha · (lhs · rhs) + beta · addend + shift · I";
  let description = [{
    For each block in the batch, lhs is m × k (k × m with `transpose_lhs`), rhs k × n (n × k with
    `transpose_rhs`), addend and out m × n. Each element is one chain of f32 fused multiply-adds from +0 over
    k in increasing order. If the chip has no fused multiply-add, product and sum are both rounded. On a GPU's
    tensor cores the links of the chain are groups of 16 steps of k. `exec.product` names the order. The
    epilogue in f32 is round(alpha · acc) + round(beta · addend), with alpha and beta rounded to f32
    first (a factor of 1 multiplies nothing). A `shift` other than 0 is rounded to f32, and added last to the
    elements on the diagonal, with one more rounding to f32. The result is rounded to out's type (to nearest
    even, denormals kept, NaN in bf16 as 0x7fc0). With `symmetric` only elements on and below the diagonal
    are computed, with their addends. The others are copies of these, mirrored at the diagonal. So the result
    is symmetric in bits even if lhs · rhs is symmetric only before it is rounded.

    ```mlir
    %a = optim.product %x, %x outs(%init : tensor<?x8x8xbf16>)
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
      : tensor<?x8x16xbf16>, tensor<?x8x16xbf16> -> tensor<?x8x8xbf16>
    ```
    Constraints: operands of rank 3; extents agree; `symmetric` needs m = n; a shift needs `symmetric`, and
    is finite in f32.
  }];
  let arguments = (ins FloatTensorOrMemRef:$lhs, FloatTensorOrMemRef:$rhs,
                       Optional<FloatTensorOrMemRef>:$addend,
                       FloatTensorOrMemRef:$init,
                       F64Attr:$alpha, F64Attr:$beta, UnitAttr:$transpose_lhs,
                       UnitAttr:$transpose_rhs, UnitAttr:$symmetric, Optim_Shift:$shift);
  let results = (outs Optional<RankedTensorOf<[F32, BF16, F16]>>:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`plus` $addend^)? `outs` `(` $init `:` type($init) `)` attr-dict
    `:` type($lhs) `,` type($rhs) (`,` type($addend)^)? (`->` type($result)^)?
  }];
  let extraClassDeclaration = batchDeclaration # [{
    /// m, n and k of the product for one block.
    ::std::array<int64_t, 3> getSizes();
  }];
  let hasVerifier = 1;
}

def Optim_ApplyOp : Optim_BatchOp<"apply"> {
  let summary = "a function of whole blocks, for each block of a batch";
  let description = [{
    ```mlir
    %n = optim.apply #optim.block_reduce<norm> %x outs(%init : tensor<?x1x1xf32>)
      : tensor<?x8x16xf32> -> tensor<?x1x1xf32>
    ```
    The sources may be bf16 or f16: elements are extended to f32.
    Constraints: operands of rank 3; the function has such an out for such sources (`verifyBlocks`).
  }];
  let arguments = (ins Optim_BlockFunctionInterface:$function, Variadic<FloatTensorOrMemRef>:$sources,
                       FloatTensorOrMemRef:$init);
  let results = (outs Optional<RankedTensorOf<[F32, BF16, F16]>>:$result);
  let assemblyFormat = [{
    $function $sources `outs` `(` $init `:` type($init) `)` attr-dict
    `:` type($sources) (`->` type($result)^)?
  }];
  let extraClassDeclaration = batchDeclaration # [{
    /// The types of one block of each source, and of one block of the out.
    ::llvm::SmallVector<::mlir::RankedTensorType> getSourceBlocks();
    ::mlir::RankedTensorType getOutBlock();
  }];
  let hasVerifier = 1;
}

#endif

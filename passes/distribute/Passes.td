//===- Passes.td - Passes from level 2 (decided) to level 3 (comm) *- tablegen -*-===//
#ifndef STEPC_PASSES_DISTRIBUTE_PASSES_TD
#define STEPC_PASSES_DISTRIBUTE_PASSES_TD

include "mlir/Pass/PassBase.td"

def Distribute : Pass<"comm-distribute", "::mlir::ModuleOp"> {
  let summary = "Write the decided step as one program for all ranks";
  let description = [{
    The program has one chain of stages, exchanges and matrix operations per group and wave. Each chain works
    on one `comm.segment`. The pass decides nothing: it reads spaces, hops, owners and waves from attributes.
    What makes a model's numbers stands first. It keeps sums of partial gradients for the chains, unless the
    module has `comm.reduces_again`: then each round of numbers makes them, and each chain once more.

    ```mlir
    optim.group @g0 rule @Muon parameters [@a] strategy #optim.owner
        hops [#optim.hop<owned [<0, 1, 2>] base [0]>] waves [0] …
    // becomes
    comm.segment @g0_w0 group @g0 wave 0 blocks [0]
    func.func @step() {
      …
      %active = comm.active
      %s = comm.stage @g0_w0 over shards active %active …
      %c = comm.communicator <@mesh, [<0, 1, 2>]>
      %r = comm.exchange %c sends(%s : …) …
      %x = comm.copy ins(%r : …) …
      %o = optim.orthogonalize %x … : tensor<?x8x16xbf16, #comm.place<@g0_w0, full, blocks>>
      …
      comm.advance_steps %steps active %active
    ```
  }];
  let dependentDialects = ["::stepc::comm::CommDialect", "::mlir::func::FuncDialect",
                           "::mlir::tensor::TensorDialect", "::mlir::arith::ArithDialect"];
}

def ExpandMatrix : Pass<"optim-expand-matrix", "::mlir::ModuleOp"> {
  let summary = "Expand matrix operations into batched products, functions of blocks and stages";
  let description = [{
    Each operation with MatrixOpInterface on a batch of blocks becomes the operations that its `expand`
    builds. `optim.reduce` becomes a reduction, `optim.orthogonalize` a norm, a scaling and products. X Xᵀ
    and the polynomial in it are marked symmetric.

    If owners send back the results of several segments of a wave, all these segments are normalized before
    the first products (`comm-pipeline-waves`). So the last product of each segment writes into the memory of
    its normalized blocks. A single segment frees this memory after the first step of its iteration.

    ```mlir
    %o = optim.orthogonalize %x coefficients [[3.0, -4.0, 2.0]] eps 1.0e-07
        : tensor<?x8x16xbf16, #comm.place<@g0, full, blocks>>
    // becomes
    %n = optim.apply #optim.block_reduce<norm> %x …
    %0 = comm.stage @g0 over blocks … // x / max(n, eps)
    %a = optim.product %0, %0 … {alpha = 1.0, beta = 0.0, symmetric, transpose_rhs}
    %b = optim.product %a, %a plus %a … {alpha = 2.0, beta = -4.0, symmetric}
    %o = optim.product %b, %0 plus %0 … {alpha = 1.0, beta = 3.0}
    ```

    In a group with slabs, x is a slab. The Gram matrix of a block is the sum of the Gram matrices of all its
    slabs, in f32, in the order of the slabs, with equal bits on all its ranks. The norm ‖X‖ is d · √t,
    with d = max(Σ nᵢ, eps) of the slabs' norms nᵢ, and t = Σ (nᵢ / d)².
    ```mlir
    optim.group @g … strategy #optim.slabs hops [] slabs <rows, [<0, 1, 2>], 4 to 4>
    %p = optim.product %0, %0 outs(… : tensor<?x4x4xf32, #comm.place<@g0, gram, parts>>)
        {…, symmetric, transpose_lhs}
    %s = comm.copy ins(%p : …) outs(… : tensor<?xf32, #comm.place<@g0, gram, parts to ranges, sent>>)
    %r = comm.exchange %c sends(%s : …) receives(…) …
    %k = comm.sum by 1 ins(%r : …) outs(… : tensor<?xf32, #comm.place<@g0, gram, ranges, kept>>)
    %t = comm.copy ins(%k : …) outs(… : tensor<?xf32, #comm.place<@g0, gram, ranges to blocks, sent>>)
    %w = comm.all_gather %c sends(%t : …) receives(…) …
    %g = comm.copy ins(%w : …) outs(… : tensor<?x4x4xf32, #comm.place<@g0, gram, blocks>>)
    %a = comm.stage @g0 over blocks ins(%g : …) … // rounded to the type of x
    ```
  }];
  let dependentDialects = ["::stepc::comm::CommDialect", "::mlir::tensor::TensorDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif

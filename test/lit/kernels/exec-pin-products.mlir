// Products get the algorithms that a table has for them, and the scratch grows to the largest workspace.
// RUN: stepc-opt %s --split-input-file --exec-pin-products | FileCheck %s
// RUN: stepc-opt %s --split-input-file --exec-pin-products --remark-policy=all --remarks-filter=exec-pin-products -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Of two for one machine that with the larger alignment; another version is another machine. sm_90 is not asked for.
// CHECK-LABEL: module @a
// CHECK-NOT: exec.products
// CHECK: exec.program arena 8192 scratch 512
// CHECK-NEXT: exec.product tensorcore of {{.*}} to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
// CHECK-SAME: pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 64, algorithm = 67, workspace = 300>, #exec.pinned_algorithm<cublaslt = 120805, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 6>] {
// A symmetric one keeps its kernels.
// CHECK-NEXT: exec.product tensorcore
// CHECK-NOT: pinned
// CHECK-SAME: symmetric
// With an addend, of other types and extents.
// CHECK: exec.product tensorcore of {{.*}} plus {{.*}} pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 8>]
// None of f16.
// CHECK-NEXT: exec.product tensorcore
// CHECK-NOT: pinned
// CHECK: exec.advance_steps
// REMARK: {{\[Passed\]}} product-pinned {{.*}}algorithms=2
// REMARK: {{\[Missed\]}} product-by-kernel {{.*}}Reason="a symmetric product, whose halves cuBLASLt does not promise to be equal"
// REMARK: {{\[Missed\]}} product-by-kernel {{.*}}Reason="no entry of the table"
module @a attributes {stepc.chip = "cuda:sm_80", exec.products = [
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 66>>,
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 64, algorithm = 67, workspace = 300>>,
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 120805, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 6>>,
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 5>>,
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = bf16, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 9>>,
  #exec.product_entry<m = 6, n = 4, k = 4, lhs = bf16, rhs = bf16, addend = f32, out = f32, leading = [4, 4, 4, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 8>>]} {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<6x4xbf16>>
    by <offset = 384, bytes = 48, block = tensor<4x4xbf16>> plus <offset = 512, bytes = 96, block = tensor<6x4xf32>>
    to <offset = 640, bytes = 96, block = tensor<6x4xf32>> {alpha = 1.0 : f64, beta = 1.0 : f64}
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
  exec.advance_steps
}
}

// -----

// Why an entry of the same product does not stand: rows further apart, another chip, another alignment, too large a workspace.
// CHECK-LABEL: module @b
// CHECK-NOT: pinned
// CHECK: exec.program arena 8192 scratch 64 {
// CHECK-NEXT: exec.product
// REMARK: Reason="an entry that needs 300 bytes of workspace, the limit leaves 511"
module @b attributes {stepc.chip = "cuda:sm_80", comm.workspace_limit = 8703 : i64, exec.products = [
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [7, 6, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 66>>,
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>>,
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 128, algorithm = 66>>,
  #exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 66, workspace = 300>>]} {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 scratch 64 {
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
  exec.advance_steps
}
}

// -----

// REMARK: Reason="an entry for operands at multiples of 128 bytes, these are at 64"
module @c attributes {stepc.chip = "cuda:sm_80", exec.products = [#exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 128, algorithm = 66>>]} {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
  exec.advance_steps
}
}

// -----

// REMARK: Reason="an entry for sm_90, which is not asked for"
module @d attributes {stepc.chip = "cuda:sm_80", exec.products = [#exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [6, 6, 4], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>>]} {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
  exec.advance_steps
}
}

// -----

// REMARK: Reason="an entry for rows further apart"
module @e attributes {stepc.chip = "cuda:sm_80", exec.products = [#exec.product_entry<m = 4, n = 4, k = 6, lhs = bf16, rhs = bf16, out = f32, transpose_rhs = true, leading = [7, 6, 4], algorithm = <cublaslt = 130002, chip = 80, multiprocessors = 132, alignment = 16, algorithm = 66>>]} {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>>
    by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>>
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
  exec.advance_steps
}
}

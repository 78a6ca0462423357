// Every error of algorithms that are pinned for products, and of entries of their tables.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// Both halves of a symmetric result are equal, which cuBLASLt does not promise.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{expected no algorithm of cuBLASLt, found one of a symmetric product, whose halves cuBLASLt does not promise to be equal}}
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>> by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>> pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>]
    {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
}

// -----

// cuBLASLt multiplies operands of one type.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{expected no algorithm of cuBLASLt, found one of types that cuBLASLt does not multiply: f32 by bf16 to f32}}
  exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 96, block = tensor<4x6xf32>> by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>> pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>]
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
}

// -----

// One stands on a machine.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{expected one algorithm for each library and GPU, found another: #exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 64, algorithm = 6>}}
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>> by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>> pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>, #exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 64, algorithm = 6>]
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
}

// -----

// The workspace promises 64 bytes.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
comm.segment @s group @g all
exec.program arena 8192 {
  // expected-error @below {{expected algorithms for operands at multiples of 64 bytes, found #exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 128, algorithm = 66>}}
  exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 320, bytes = 48, block = tensor<4x6xbf16>> by <offset = 320, bytes = 48, block = tensor<4x6xbf16>> to <offset = 448, bytes = 64, block = tensor<4x4xf32>> pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 128, algorithm = 66>]
    {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
}

// -----

// expected-error @below {{expected a version of cuBLASLt from 1 to 2147483647, found 0}}
module attributes {exec.products = [#exec.pinned_algorithm<cublaslt = 0, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>]} {
}

// -----

// expected-error @below {{expected a chip from 80 to 999, found 75}}
module attributes {exec.products = [#exec.pinned_algorithm<cublaslt = 130002, chip = 75, multiprocessors = 132, alignment = 16, algorithm = 66>]} {
}

// -----

// expected-error @below {{expected an alignment that is a power of two, found 48}}
module attributes {exec.products = [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 48, algorithm = 66>]} {
}

// -----

// expected-error @below {{expected a tile from 0 to 4294967295, found -1}}
module attributes {exec.products = [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66, tile = -1>]} {
}

// -----

// expected-error @below {{expected extents of at least 1, found 0 x 5 x 6}}
module attributes {exec.products = [#exec.product_entry<m = 0, n = 5, k = 6, lhs = f32, rhs = f32, out = f32, leading = [6, 5, 5], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 0>>]} {
}

// -----

// expected-error @below {{expected f32, bf16 or f16, found 'i32'}}
module attributes {exec.products = [#exec.product_entry<m = 4, n = 5, k = 6, lhs = i32, rhs = f32, out = f32, leading = [6, 5, 5], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 0>>]} {
}

// -----

// expected-error @below {{expected what cuBLASLt multiplies, found types that cuBLASLt does not multiply: bf16 by f32 to f32}}
module attributes {exec.products = [#exec.product_entry<m = 4, n = 5, k = 6, lhs = bf16, rhs = f32, out = f32, leading = [6, 5, 5], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 0>>]} {
}

// -----

// expected-error @below {{expected 3 leading dimensions, one per operand, found 4}}
module attributes {exec.products = [#exec.product_entry<m = 4, n = 5, k = 6, lhs = f32, rhs = f32, out = f32, leading = [6, 5, 5, 5], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 0>>]} {
}

// -----

// expected-error @below {{expected a leading dimension of at least 5, a row of the operand, found 4}}
module attributes {exec.products = [#exec.product_entry<m = 4, n = 5, k = 6, lhs = f32, rhs = f32, out = f32, leading = [6, 4, 5], algorithm = <cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 0>>]} {
}

// -----

// A field has a known name, and is given once.
// expected-error @below {{expected multiprocessors, alignment, algorithm, tile, stages, swizzling, custom_option, inner_shape, cluster_shape or workspace, found chip}}
// expected-error @below {{failed to parse Exec_PinnedAlgorithm parameter 'value'}}
module attributes {exec.products = [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, chip = 90>]} {
}

// -----

// Each has an algorithm.
// expected-error @below {{expected an algorithm from 0 to 2147483647, found -1}}
module attributes {exec.products = [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16>]} {
}

// -----

// And operands have an alignment.
// expected-error @below {{expected an alignment from 1 to 256, found 0}}
module attributes {exec.products = [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, algorithm = 66>]} {
}

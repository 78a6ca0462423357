// RUN: stepc-opt %s --split-input-file --exec-lower-to-target -verify-diagnostics

// A module that says no target.
// expected-error @+1 {{expected the attribute stepc.chip on the module, found none}}
module {
}

// -----

// Less scratch than the target's kernels write to.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  exec.program arena 8192 scratch 64 {
    // expected-error @+1 {{'exec.product' op expected at least 5120 bytes of scratch per block, which the target needs, found 64}}
    exec.product fused_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 2048, block = tensor<16x32xf32>>
      by <offset = 0, bytes = 2048, block = tensor<16x32xf32>> to <offset = 2048, bytes = 1024, block = tensor<16x16xf32>> scratch 64
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    exec.advance_steps
  }
}

// -----

// A kernel that the target has not made, and that nothing has proven.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  llvm.func @k(%arguments: !llvm.ptr, %first: i64, %last: i64) {
    llvm.return
  }
  exec.program arena 64 {
    // expected-error @+1 {{'exec.advance_steps' op expected no kernel before exec-lower-to-target, found @k}}
    exec.advance_steps {kernel = @k}
  }
}

// -----

// An order of accumulation that the target's products do not have.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  exec.program arena 8192 scratch 5120 {
    // expected-error @+1 {{'exec.product' op expected the target's accumulation, fused_chain, found rounded_chain}}
    exec.product rounded_chain of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 2048, block = tensor<16x32xf32>>
      by <offset = 0, bytes = 2048, block = tensor<16x32xf32>> to <offset = 2048, bytes = 1024, block = tensor<16x16xf32>> scratch 5120
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    exec.advance_steps
  }
}

// -----

// On tensor cores where the target's text says chain; and a text that was written by hand.
module attributes {stepc.chip = "cuda:sm_80,chain"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  exec.program arena 8192 {
    // expected-error @+1 {{'exec.product' op expected the target's accumulation, fused_chain, found tensorcore}}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 1024, block = tensor<16x32xbf16>>
      by <offset = 0, bytes = 1024, block = tensor<16x32xbf16>> to <offset = 2048, bytes = 1024, block = tensor<16x16xf32>>
      {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    exec.advance_steps
  }
}

// -----

// expected-error @+1 {{expected a GPU of sm_80, sm_86}}
module attributes {stepc.chip = "cuda:h100"} {
}

// -----

// expected-error @+1 {{expected a chip 'emulated:<gpu> on <cpu>', found 'emulated'}}
module attributes {stepc.chip = "emulated"} {
}

// -----

// expected-error @+1 {{expected a chip 'emulated:sm_80 on <cpu>', found 'emulated:sm_80'}}
module attributes {stepc.chip = "emulated:sm_80"} {
}

// -----

// expected-error @+1 {{expected a chip 'interpret on <cpu>', found 'interpret'}}
module attributes {stepc.chip = "interpret"} {
}

// -----

// expected-error @+1 {{expected a chip 'interpret:sm_90a on <cpu>', found 'interpret:sm_90a'}}
module attributes {stepc.chip = "interpret:sm_90a"} {
}

// -----

// A kernel without a body.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%a: memref<?x?xf32, strided<[?, 1]>>)
  exec.program arena 4096 {
    // expected-error @+1 {{expected a kernel of level exec, a func.func of one block, found none named "k"}}
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<parameter>]
    exec.advance_steps
  }
}

// -----

// Fewer operands than views.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?x?xf32, strided<[?, 1]>>) {
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : memref<?x?xf32, strided<[?, 1]>>) outs(%b : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    }
    return
  }
  exec.program arena 4096 {
    // expected-error @+1 {{expected as many operands per table as the kernel has arguments, 2, found 1}}
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<parameter>]
    exec.advance_steps
  }
}

// -----

// Two dispatches of one kernel with operands of other kinds.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?x?xf32, strided<[?, 1]>>) {
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : memref<?x?xf32, strided<[?, 1]>>) outs(%b : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    }
    return
  }
  exec.program arena 4096 {
    // expected-note @+1 {{the other dispatch is here}}
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<gradient>, #exec.shards<parameter>]
    // expected-error @+1 {{expected operands like those of another dispatch of @k}}
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.workspace<offset = 0, bytes = 64>, #exec.shards<parameter>]
    exec.advance_steps
  }
}

// -----

// A region that reads what it writes, which no chunk order allows for.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?x?xf32, strided<[?, 1]>>) {
    // expected-error @+1 {{expected in a kernel over chunks a region that reads inputs alone}}
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : memref<?x?xf32, strided<[?, 1]>>) outs(%b : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %y : f32
    }
    return
  }
  exec.program arena 4096 {
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<gradient>, #exec.shards<parameter>]
    exec.advance_steps
  }
}

// -----

// Rows and columns exchanged.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?x?xf32, strided<[?, 1]>>) {
    // expected-error @+1 {{expected in a kernel over chunks views that its dispatch has, found affine_map<(d0, d1) -> (d1, d0)> of #exec.shards<gradient>}}
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : memref<?x?xf32, strided<[?, 1]>>) outs(%b : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    }
    return
  }
  exec.program arena 4096 {
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<gradient>, #exec.shards<parameter>]
    exec.advance_steps
  }
}

// -----

// Two passes over a chunk.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?x?xf32, strided<[?, 1]>>) {
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : memref<?x?xf32, strided<[?, 1]>>) outs(%b : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    }
    // expected-error @+1 {{expected in a kernel over chunks one linalg.generic, and loads of scalars before it}}
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a : memref<?x?xf32, strided<[?, 1]>>) outs(%b : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    }
    return
  }
  exec.program arena 4096 {
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<gradient>, #exec.shards<parameter>]
    exec.advance_steps
  }
}

// -----

// A scalar behind the row's columns.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%s: memref<2xf32>, %b: memref<?x?xf32, strided<[?, 1]>>) {
    %c = arith.constant 1 : index
    %l = memref.load %s[%c] : memref<2xf32>
    // expected-error @+1 {{expected in a kernel over chunks scalars from columns of the first operand of its dispatch}}
    linalg.generic {indexing_maps = [affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%l : f32) outs(%b : memref<?x?xf32, strided<[?, 1]>>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    }
    return
  }
  exec.program arena 4096 {
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.scalars<offset = 0, columns = 1>, #exec.shards<parameter>]
    exec.advance_steps
  }
}

// -----

// A kernel over parameters that takes other numbers than a record has.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  // expected-error @+1 {{expected a kernel over parameters from hyperparameters, step, rows, cols, numel and numbers of f64 to scalars of f32, found '(f64) -> f32'}}
  func.func private @k(%a: f64) -> f32 {
    %b = arith.truncf %a : f64 to f32
    return %b : f32
  }
  exec.program arena 4096 {
    exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 1>]
    exec.advance_steps
  }
}

// -----

// More hyperparameters than the rule has.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%a: f64, %b: f64, %c: f64, %d: f64, %h: f64) -> f32 {
    %e = arith.truncf %a : f64 to f32
    return %e : f32
  }
  exec.program arena 4096 {
    // expected-error @+1 {{expected a kernel of the hyperparameters and numbers of group @g, found one of 1}}
    exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 1>]
    exec.advance_steps
  }
}

// -----

// More columns than the kernel returns.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0]>]
  comm.segment @s group @g all

  func.func private @k(%a: f64, %b: f64, %c: f64, %d: f64) -> f32 {
    %e = arith.truncf %a : f64 to f32
    return %e : f32
  }
  exec.program arena 4096 {
    // expected-error @+1 {{expected scalars of as many columns as the kernel returns, 1, found #exec.scalars<offset = 0, columns = 2>}}
    exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 2>]
    exec.advance_steps
  }
}

// -----

// A kernel takes as many numbers as stand behind the scalars: two columns and a line are three.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.parameter @b shape [16] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a]
  optim.group @h rule @R parameters [@b]

  func.func private @k(%a: f64, %b: f64, %c: f64, %d: f64, %e: f64, %f: f64) -> f32 {
    %z = arith.truncf %a : f64 to f32
    return %z : f32
  }
  exec.program arena 4096 {
    // expected-error @+1 {{expected a kernel of the hyperparameters and numbers of group @g, found one of 2}}
    exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 1>, #exec.scalars<offset = 64, columns = 2>, #exec.line<offset = 128, bytes = 4>]
    exec.advance_steps
  }
}

// -----

// All groups of a kernel have as many numbers at each operand.
module attributes {stepc.chip = "x86-64-v3;+avx2,+fma"} {
  optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.parameter @a shape [16, 32] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.parameter @b shape [16] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
  optim.group @g rule @R parameters [@a]
  optim.group @h rule @R parameters [@b]

  func.func private @k(%a: f64, %b: f64, %c: f64, %d: f64, %e: f64, %f: f64) -> f32 {
    %z = arith.truncf %a : f64 to f32
    return %z : f32
  }
  exec.program arena 4096 {
    // expected-error @+1 {{expected a kernel of the hyperparameters and numbers of group @h, found one of 2}}
    exec.dispatch_parameters @k of [@g, @h] [#exec.scalars<offset = 0, columns = 1>, #exec.scalars<offset = 64, columns = 2>, #exec.scalars<offset = 128, columns = 1>, #exec.scalars<offset = 64, columns = 1>]
    exec.advance_steps
  }
}

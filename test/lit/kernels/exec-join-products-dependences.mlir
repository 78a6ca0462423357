// Which products of one kernel begin together, and which do not. Products that join stand behind the one that they join.
// RUN: stepc-opt %s --split-input-file --exec-join-products | FileCheck %s

// Members of one pool share no byte, although a pool's bytes are one range. A product that writes what another reads is apart.
// CHECK-LABEL: module @pool
// CHECK: exec.product {{.*}} member = 2> {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} member = 3> {{.*}} joins{{.*}}
// CHECK-NEXT: exec.product {{.*}} member = 1> {{.*}} symmetric, transpose_rhs}
module @pool attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [128, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 1048576 pools [#exec.pool<offset = 0, bytes = 262144, members = [<@s, bytes = 32768>, <@s, bytes = 32768>, <@s, bytes = 32768>, <@s, bytes = 32768>]>] {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0> by <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0> to <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0, member = 2> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0, member = 1> by <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0, member = 1> to <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0, member = 3> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0, member = 3> by <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0, member = 3> to <offset = 0, bytes = 262144, block = tensor<128x128xbf16>, pool = 0, member = 1> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}

// -----

// A library may compute a pinned product, so nothing joins it. Products behind it still join those in front of it.
// CHECK-LABEL: module @pinned
// CHECK: exec.product {{.*}} to <offset = 524288, {{.*}} {alpha = {{.*}}, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 589824, {{.*}} joins{{.*}}
// CHECK-NEXT: exec.product {{.*}} to <offset = 557056, {{.*}} pinned {{.*}} transpose_rhs}
module @pinned attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [128, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 1048576 {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> pinned [#exec.pinned_algorithm<cublaslt = 130002, chip = 90, multiprocessors = 132, alignment = 16, algorithm = 66>] {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 65536, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 65536, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 589824, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs}
    exec.advance_steps
  }
}

// -----

// A command between them keeps products apart.
// CHECK-LABEL: module @between
// CHECK: exec.product {{.*}} to <offset = 524288, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.apply
// CHECK-NEXT: exec.product {{.*}} to <offset = 557056, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 589824, {{.*}} joins{{.*}}
module @between attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [128, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 1048576 {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.apply #optim.block_reduce<norm> of <kind = block_chunks, from = <@s, full, blocks>> <offset = 65536, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 786432, bytes = 4, block = tensor<1x1xf32>>
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 65536, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 65536, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 589824, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}

// -----

// Three runs: each second product reads what the first of its chain wrote, and both chains share each launch.
// CHECK-LABEL: module @runs
// CHECK: exec.product {{.*}} to <offset = 524288, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 557056, {{.*}} joins{{.*}}
// CHECK-NEXT: exec.product {{.*}} to <offset = 589824, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 622592, {{.*}} joins{{.*}}
// CHECK-NEXT: exec.product {{.*}} to <offset = 655360, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 688128, {{.*}} joins{{.*}}
module @runs attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [128, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 1048576 {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 589824, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 622592, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 589824, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 589824, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 655360, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 622592, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 622592, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 688128, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}

// -----

// A chain of products that each read the one before.
// CHECK-LABEL: module @chain
// CHECK: exec.product {{.*}} to <offset = 524288, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 557056, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 589824, {{.*}} symmetric, transpose_rhs}
module @chain attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [128, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 1048576 {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 589824, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}

// -----

// The third product depends on the second alone. It cannot join the first, because the second would have to begin before it.
// CHECK-LABEL: module @crossing
// CHECK: exec.product {{.*}} to <offset = 524288, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> {alpha = {{[^s]*}}}
// CHECK-NEXT: exec.product {{.*}} to <offset = 589824, {{.*}} symmetric, transpose_rhs}
module @crossing attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [128, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 1048576 {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 557056, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 589824, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}

// -----

// Two products that write the same bytes, and one that writes what the product before reads.
// CHECK-LABEL: module @writes
// CHECK: exec.product {{.*}} to <offset = 524288, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 524288, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 32768, {{.*}} symmetric, transpose_rhs}
module @writes attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [128, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  exec.program arena 1048576 {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 0, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 524288, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 65536, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 65536, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 32768, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}

// -----

// Tiles of a launch are numbered by 32 bits. A second product of 240 million matrices begins another launch, which a product of one matrix joins.
// CHECK-LABEL: module @many
// CHECK: exec.product {{.*}} to <offset = 7864320000000, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 23592960000000, {{.*}} symmetric, transpose_rhs}
// CHECK-NEXT: exec.product {{.*}} to <offset = 31457280032768, {{.*}} joins{{.*}}
module @many attributes {stepc.chip = "cuda:sm_90a", stepc.level = "exec"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w0 shape [60000000, 128, 128] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.parameter @w1 shape [60000000, 128, 128] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.parameter @w2 shape [60000000, 128, 128] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.parameter @w3 shape [60000000, 128, 128] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.parameter @v shape [128, 128] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w0, @w1, @w2, @w3]
  optim.group @h rule @R parameters [@v]
  comm.segment @s group @g all
  comm.segment @t group @h all
  exec.program arena 39321600000000 {
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 0, bytes = 7864320000000, block = tensor<128x128xbf16>> by <offset = 0, bytes = 7864320000000, block = tensor<128x128xbf16>> to <offset = 7864320000000, bytes = 7864320000000, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@s, full, blocks>> <offset = 15728640000000, bytes = 7864320000000, block = tensor<128x128xbf16>> by <offset = 15728640000000, bytes = 7864320000000, block = tensor<128x128xbf16>> to <offset = 23592960000000, bytes = 7864320000000, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.product tensorcore of <kind = block_chunks, from = <@t, full, blocks>> <offset = 31457280000000, bytes = 32768, block = tensor<128x128xbf16>> by <offset = 31457280000000, bytes = 32768, block = tensor<128x128xbf16>> to <offset = 31457280032768, bytes = 32768, block = tensor<128x128xbf16>> {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, transpose_rhs}
    exec.advance_steps
  }
}

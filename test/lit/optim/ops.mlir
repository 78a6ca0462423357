// Every operation of the dialect in its custom form, and through the generic form and bytecode and back.
// RUN: stepc-opt %s | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --mlir-print-op-generic | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --emit-bytecode | stepc-opt | FileCheck %s
// RUN: stepc-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix GENERIC

// A mesh of two axes over four ranks of the job.
// CHECK: optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [4, 5, 6, 7]
// GENERIC: "optim.mesh"() <{axes = ["dp", "tp"], label = "world", ranks = array<i64: 4, 5, 6, 7>, sizes = array<i64: 2, 2>}>
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [4, 5, 6, 7]

// A rule with every operation that may stand in its body.
// CHECK-LABEL: optim.rule @Every hyperparameters ["lr"] states
// CHECK-SAME: [#optim.state<"m", bf16, full, 0.000000e+00 : f64, false>, #optim.state<"v", f32, rows, 1.000000e+00 : f64, false>] needs_matrix {
// CHECK-NEXT: ^bb0(%[[P:.*]]: tensor<?x?xf32>, %[[G:.*]]: tensor<?x?xf32>, %[[M:.*]]: tensor<?x?xf32>, %[[V:.*]]: tensor<?x1xf32>, %[[LR:.*]]: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64, %{{.*}}: f64):
// CHECK-NEXT: %[[W:.*]] = optim.splat %[[LR]] : tensor<?x?xf32>
// CHECK-NEXT: %[[M1:.*]] = optim.lerp %[[M]], %[[G]], %[[W]] : tensor<?x?xf32>
// CHECK-NEXT: %[[M2:.*]] = optim.momentum %[[M1]], %[[G]], %[[W]] : tensor<?x?xf32>
// CHECK-NEXT: %[[P1:.*]] = optim.decay %[[P]], %[[LR]], %[[LR]] : tensor<?x?xf32>
// CHECK-NEXT: %[[ROWS:.*]] = optim.reduce mean %[[G]] : tensor<?x?xf32> to tensor<?x1xf32>
// CHECK-NEXT: %[[COLS:.*]] = optim.reduce max %[[G]] : tensor<?x?xf32> to tensor<1x?xf32>
// CHECK-NEXT: %[[ONE:.*]] = optim.reduce norm %[[G]] : tensor<?x?xf32> to tensor<1x1xf32>
// CHECK-NEXT: optim.broadcast %[[COLS]] : tensor<1x?xf32> to tensor<?x?xf32>
// CHECK-NEXT: optim.broadcast %[[ONE]] : tensor<1x1xf32> to tensor<?x1xf32>
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[M2]] : tensor<?x?xf32> to tensor<?x?xbf16>
// CHECK-NEXT: optim.orthogonalize %[[H]] coefficients
// CHECK-SAME: {{\[\[}}3.444500e+00, -4.775000e+00, 2.031500e+00], [1.500000e+00, -5.000000e-01, 0.000000e+00]] eps 9.9999999999999995E-8 : tensor<?x?xbf16>
// CHECK-NEXT: optim.yield %[[P1]], %[[M2]], %[[ROWS]] : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xf32>
// GENERIC: "optim.rule"() <{
// GENERIC: "optim.yield"(
optim.rule @Every hyperparameters ["lr"] states [
    #optim.state<"m", bf16, full, 0.0 : f64, false>,
    #optim.state<"v", f32, rows, 1.0 : f64, false>] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %v: tensor<?x1xf32>,
     %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %w = optim.splat %lr : tensor<?x?xf32>
  %m1 = optim.lerp %m, %grad, %w : tensor<?x?xf32>
  %m2 = optim.momentum %m1, %grad, %w : tensor<?x?xf32>
  %p = optim.decay %param, %lr, %lr : tensor<?x?xf32>
  %r = optim.reduce mean %grad : tensor<?x?xf32> to tensor<?x1xf32>
  %c = optim.reduce max %grad : tensor<?x?xf32> to tensor<1x?xf32>
  %o = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
  %cf = optim.broadcast %c : tensor<1x?xf32> to tensor<?x?xf32>
  %or = optim.broadcast %o : tensor<1x1xf32> to tensor<?x1xf32>
  %h = arith.truncf %m2 : tensor<?x?xf32> to tensor<?x?xbf16>
  %q = optim.orthogonalize %h coefficients [[3.4445, -4.775, 2.0315], [1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xbf16>
  optim.yield %p, %m2, %r : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x1xf32>
}

// A rule without states or a matrix, whose yield is written out.
// CHECK-LABEL: optim.rule @Keep hyperparameters [] states [] {
// CHECK: optim.yield %{{.*}} : tensor<?x?xf32>
optim.rule @Keep hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}

// A route of each form: matrix with except, patterns with a default that the trainer gives, one that may match nothing, rest.
// CHECK: optim.route @Every rule @Every matrix patterns [] except ["*embed*"] defaults [2.000000e-02] missing_grad error
// CHECK: optim.route @Some rule @Every patterns ["a.*", "b"] except [] defaults [0x7FF8000000000000] missing_grad skip
// CHECK: optim.route @head rule @Every patterns ["h*", "b"] optional ["h*"] except ["b"] defaults [2.000000e-02] missing_grad error
// CHECK: optim.route @Keep rule @Keep rest patterns [] except [] defaults [] missing_grad zero
// GENERIC: "optim.route"() <{{.*}}missing_grad = #optim.missing_grad<zero>{{.*}}rest
optim.route @Every rule @Every matrix patterns [] except ["*embed*"] defaults [0.02] missing_grad error
optim.route @Some rule @Every patterns ["a.*", "b"] except [] defaults [0x7FF8000000000000] missing_grad skip
optim.route @head rule @Every patterns ["h*", "b"] optional ["h*"] except ["b"] defaults [0.02] missing_grad error
optim.route @Keep rule @Keep rest patterns [] except [] defaults [] missing_grad zero

// Parameters: a name that no other symbol could have, a batch of matrices, a scalar; with a route and without.
// CHECK: optim.parameter @layers.0.weight shape [64, 32] batch 0 type bf16 gradient f32 mesh @world placements [#optim.shard<0>, #optim.replicate] aliases ["tied"]
// CHECK: optim.parameter @experts shape [4, 8, 6] batch 1 type f16 gradient f16 mesh @world placements [#optim.shard<0>, #optim.shard<1>] aliases [] route @Every
// CHECK: optim.parameter @scalar shape [] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] aliases []
// GENERIC: "optim.parameter"() <{{.*}}label = "layers.0.weight"
optim.parameter @"layers.0.weight" shape [64, 32] batch 0 type bf16 gradient f32 mesh @world
  placements [#optim.shard<0>, #optim.replicate] aliases ["tied"]
optim.parameter @experts shape [4, 8, 6] batch 1 type f16 gradient f16 mesh @world
  placements [#optim.shard<0>, #optim.shard<1>] aliases [] route @Every
optim.parameter @scalar shape [] batch 0 type f32 gradient f32 mesh @world
  placements [#optim.replicate, #optim.replicate] aliases []

// Gradient and states may stand elsewhere, by placements of their own.
// CHECK: optim.parameter @bias shape [64] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] gradient_placements [#optim.shard<0>, #optim.shard<0>] state_placements [#optim.shard<0>, #optim.replicate] aliases []
optim.parameter @bias shape [64] batch 0 type f32 gradient f32 mesh @world
  placements [#optim.replicate, #optim.replicate] gradient_placements [#optim.shard<0>, #optim.shard<0>]
  state_placements [#optim.shard<0>, #optim.replicate] aliases []

// A parameter that no rule steps: its names alone.
// CHECK: optim.frozen @embed.weight aliases ["lm_head.weight"]
// GENERIC: "optim.frozen"() <{aliases = ["lm_head.weight"], label = "embed.weight"}>
optim.frozen @embed.weight aliases ["lm_head.weight"]

// A group before anything is decided of it, and one of which all is: four experts, one owner each.
// CHECK: optim.group @g0 rule @Every parameters [@layers.0.weight]
// CHECK-NOT: strategy
// CHECK: optim.group @g1 rule @Every parameters [@experts] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>, <1, 1, 2>] base [0, 3, 1, 2]>] waves [0, 1, 0, 1] reason "blocks span ranks"
// GENERIC: "optim.group"() <{hops = [#optim.hop<owned [<0, 1, 2>, <1, 1, 2>] base [0, 3, 1, 2]>]{{.*}}strategy = #optim.owner{{.*}}waves = array<i64: 0, 1, 0, 1>
optim.group @g0 rule @Every parameters [@"layers.0.weight"]
optim.group @g1 rule @Every parameters [@experts] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>, <1, 1, 2>] base [0, 3, 1, 2]>] waves [0, 1, 0, 1] reason "blocks span ranks"

comm.segment @s group @g1 all

// Products on tensors, with every attribute and an addend, and on memrefs.
// CHECK-LABEL: func.func @product
// CHECK: %[[A:.*]] = optim.product %[[X:.*]], %[[X]] outs(%{{.*}} : tensor<?x8x8xbf16>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric, transpose_rhs} : tensor<?x8x6xbf16>, tensor<?x8x6xbf16> -> tensor<?x8x8xbf16>
// CHECK: optim.product %[[A]], %[[A]] plus %[[A]] outs(%{{.*}} : tensor<?x8x8xbf16>) {alpha = 2.000000e+00 : f64, beta = -1.000000e+00 : f64} : tensor<?x8x8xbf16>, tensor<?x8x8xbf16>, tensor<?x8x8xbf16> -> tensor<?x8x8xbf16>
// CHECK: optim.product %{{.*}}, %{{.*}} outs(%{{.*}} : memref<?x8x6xf32>) {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, transpose_lhs} : memref<?x4x8xf32>, memref<?x4x6xf32>{{$}}
// GENERIC: "optim.product"({{.*}}alpha = 1.0
func.func @product(%x: tensor<?x8x6xbf16>, %e: tensor<?x8x8xbf16>,
                   %l: memref<?x4x8xf32>, %r: memref<?x4x6xf32>, %to: memref<?x8x6xf32>) {
  %a = optim.product %x, %x outs(%e : tensor<?x8x8xbf16>) {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs, symmetric}
    : tensor<?x8x6xbf16>, tensor<?x8x6xbf16> -> tensor<?x8x8xbf16>
  %c = optim.product %a, %a plus %a outs(%e : tensor<?x8x8xbf16>) {alpha = 2.0 : f64, beta = -1.0 : f64}
    : tensor<?x8x8xbf16>, tensor<?x8x8xbf16>, tensor<?x8x8xbf16> -> tensor<?x8x8xbf16>
  optim.product %l, %r outs(%to : memref<?x8x6xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_lhs} : memref<?x4x8xf32>, memref<?x4x6xf32>
  return
}

// Reductions of a batch of blocks, and on memrefs.
// CHECK-LABEL: func.func @block_reduce
// CHECK: optim.apply #optim.block_reduce<norm> %[[X:.*]] outs(%{{.*}} : tensor<?x1x1xf32>) : tensor<?x8x6xbf16> -> tensor<?x1x1xf32>
// CHECK: optim.apply #optim.block_reduce<sum> %[[X]] outs(%{{.*}} : tensor<?x1x6xf32>) : tensor<?x8x6xbf16> -> tensor<?x1x6xf32>
// CHECK: optim.apply #optim.block_reduce<rms> %{{.*}} outs(%{{.*}} : memref<?x8x1xf32>) : memref<?x8x6xf32>{{$}}
// CHECK: optim.apply #optim.block_reduce<rms, exponent = -24> %{{.*}} outs(%{{.*}} : memref<?x8x1xf32>) : memref<?x8x6xf32>{{$}}
// GENERIC: "optim.apply"({{.*}}function = #optim.block_reduce<norm>
func.func @block_reduce(%x: tensor<?x8x6xbf16>, %one: tensor<?x1x1xf32>, %cols: tensor<?x1x6xf32>,
                        %m: memref<?x8x6xf32>, %to: memref<?x8x1xf32>) {
  %n = optim.apply #optim.block_reduce<norm> %x outs(%one : tensor<?x1x1xf32>) : tensor<?x8x6xbf16> -> tensor<?x1x1xf32>
  %c = optim.apply #optim.block_reduce<sum> %x outs(%cols : tensor<?x1x6xf32>) : tensor<?x8x6xbf16> -> tensor<?x1x6xf32>
  optim.apply #optim.block_reduce<rms> %m outs(%to : memref<?x8x1xf32>) : memref<?x8x6xf32>
  optim.apply #optim.block_reduce<rms, exponent = -24> %m outs(%to : memref<?x8x1xf32>) : memref<?x8x6xf32>
  return
}

// Products of what a rule has, in shapes that no state can have.
// CHECK-LABEL: func.func @matmul
// CHECK: optim.matmul %{{.*}}, %{{.*}} {transpose_rhs} : tensor<?x?xbf16>, tensor<?x?xbf16> -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
// CHECK: optim.matmul %{{.*}}, %{{.*}} {transpose_lhs} : tensor<?x8xf32, #optim.kind<[rows, 8]>>, tensor<?x?xf32> -> tensor<8x?xf32, #optim.kind<[8, cols]>>
func.func @matmul(%x: tensor<?x?xbf16>, %y: tensor<?x8xf32, #optim.kind<[rows, 8]>>, %z: tensor<?x?xf32>) {
  %0 = optim.matmul %x, %x {transpose_rhs} : tensor<?x?xbf16>, tensor<?x?xbf16> -> tensor<?x?xf32, #optim.kind<[rows, rows]>>
  %1 = optim.matmul %y, %z {transpose_lhs} : tensor<?x8xf32, #optim.kind<[rows, 8]>>, tensor<?x?xf32> -> tensor<8x?xf32, #optim.kind<[8, cols]>>
  return
}

// What is rounded after it is normalized has two types.
// CHECK-LABEL: func.func @rounded_after
// CHECK: optim.orthogonalize %{{.*}} coefficients {{.*}} eps {{.*}} : tensor<?x?xf32> to tensor<?x?xf16>
func.func @rounded_after(%x: tensor<?x?xf32>) -> tensor<?x?xf16> {
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32> to tensor<?x?xf16>
  return %o : tensor<?x?xf16>
}

// The forms, and a product with a shift. A shift of 0 is none.
// CHECK-LABEL: func.func @forms
// CHECK: optim.orthogonalize %{{.*}} coefficients {{.*}} eps {{.*}} form gram restarts [1] : tensor<?x?xf32> to tensor<?x?xf16>
// CHECK: optim.orthogonalize %{{.*}} coefficients {{.*}} eps {{.*}} form auto : tensor<?x?xf32>
// CHECK: optim.product {{.*}} {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, shift = 3.500000e+00 : f64, symmetric}
// CHECK: optim.product {{.*}} {alpha = 1.000000e+00 : f64, beta = 0.000000e+00 : f64, symmetric}
func.func @forms(%x: tensor<?x?xf32>, %r: tensor<?x4x4xf16>) {
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0], [1.5, -0.5, 0.0]] eps 1.0e-07 form gram restarts [1] : tensor<?x?xf32> to tensor<?x?xf16>
  %p = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 form auto : tensor<?x?xf32>
  %q = optim.product %r, %r outs(%r : tensor<?x4x4xf16>) {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, shift = 3.5 : f64} : tensor<?x4x4xf16>, tensor<?x4x4xf16> -> tensor<?x4x4xf16>
  %s = optim.product %r, %r outs(%r : tensor<?x4x4xf16>) {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric, shift = 0.0 : f64} : tensor<?x4x4xf16>, tensor<?x4x4xf16> -> tensor<?x4x4xf16>
  return
}

// A model whose reduction and scalar have numbers, with a state, that skips steps; what rules read of it, by name and by number.
// CHECK: optim.model hyperparameters ["max_norm"] defaults [1.000000e+00] values ["total"] states [#optim.state<"old", f32, one, 2.000000e+00 : f64, false>] skips {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<?x?xf32>, %[[GRAD:.*]]: tensor<?x?xf32>, %[[MAX:.*]]: f64, %{{.*}}: f64):
// CHECK-NEXT: %[[TOTAL:.*]] = optim.reduce norm %[[GRAD]] {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
// CHECK-NEXT: %[[MOST:.*]] = optim.splat %[[MAX]] {optim.number = 1 : i64} : tensor<1x1xf32>
// CHECK-NEXT: %[[FACTOR:.*]] = arith.divf %[[MOST]], %[[TOTAL]] : tensor<1x1xf32>
// CHECK-NEXT: %[[FACTORS:.*]] = optim.broadcast %[[FACTOR]]
// CHECK-NEXT: %[[SCALED:.*]] = arith.mulf %[[FACTORS]], %[[GRAD]]
// CHECK-NEXT: %[[OLD:.*]] = optim.model_state "old" : tensor<1x1xf32>
// CHECK-NEXT: optim.yield %[[SCALED]], %[[TOTAL]], %[[TOTAL]], %[[OLD]] : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>
// CHECK: optim.rule @Reads
// CHECK: optim.model_value "total" : tensor<1x1xf32>
// CHECK-NEXT: optim.model_number 1 : f64
// GENERIC: "optim.model"() <{defaults = array<f64: 1.000000e+00>, hyperparameters = ["max_norm"], skips, states = [#optim.state<"old", f32, one, 2.000000e+00 : f64, false>], values = ["total"]}> ({
// GENERIC: "optim.model_state"() <{name = "old"}> : () -> tensor<1x1xf32>
// GENERIC: "optim.model_value"() <{name = "total"}> : () -> tensor<1x1xf32>
// GENERIC: "optim.model_number"() <{number = 1 : i64}> : () -> f64
optim.model hyperparameters ["max_norm"] defaults [1.0] values ["total"] states [#optim.state<"old", f32, one, 2.0 : f64, false>] skips {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %max_norm: f64, %step: f64):
  %total = optim.reduce norm %grad {optim.number = 0 : i64} : tensor<?x?xf32> to tensor<1x1xf32>
  %most = optim.splat %max_norm {optim.number = 1 : i64} : tensor<1x1xf32>
  %factor = arith.divf %most, %total : tensor<1x1xf32>
  %factors = optim.broadcast %factor : tensor<1x1xf32> to tensor<?x?xf32>
  %scaled = arith.mulf %factors, %grad : tensor<?x?xf32>
  %old = optim.model_state "old" : tensor<1x1xf32>
  optim.yield %scaled, %total, %total, %old : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>
}
optim.rule @Reads hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %total = optim.model_value "total" : tensor<1x1xf32>
  %n = optim.model_number 1 : f64
  %most = optim.splat %n : tensor<1x1xf32>
  %sum = arith.addf %total, %most : tensor<1x1xf32>
  %all = optim.broadcast %sum : tensor<1x1xf32> to tensor<?x?xf32>
  %p = arith.mulf %all, %grad : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// Where an element stands, and what is drawn for it.
// CHECK: %[[R:.*]] = optim.position rows : tensor<?x1xf32>
// CHECK: optim.position columns : tensor<1x?xf32>
// CHECK: optim.random normal seed %{{.*}}, %{{.*}} step %{{.*}}, %{{.*}} if %{{.*}} : tensor<1x1xi1> call 3 : tensor<1x1xf32> to tensor<?x?xf32>
// CHECK: optim.random uniform seed %{{.*}}, %{{.*}} step %{{.*}}, %{{.*}} call 4 : tensor<1x1xf32> to tensor<?x?xf32>
// CHECK: optim.stochastic %{{.*}}, %{{.*}} of parameter : tensor<?x?xf32> to tensor<?x?xbf16>
// GENERIC: "optim.position"() <{axis = #optim.block_axis<rows>}> : () -> tensor<?x1xf32>
// GENERIC: "optim.random"({{.*}}) <{call = 3 : i64, draw = #optim.draw<normal>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0, 0>}>
optim.rule @Places hyperparameters [] states [#optim.state<"z", f32, full, 0.0 : f64, false start = normal>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %z: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %r = optim.position rows : tensor<?x1xf32>
  %c = optim.position columns : tensor<1x?xf32>
  %all = optim.broadcast %r : tensor<?x1xf32> to tensor<?x?xf32>
  %high = optim.splat %step : tensor<1x1xf32>
  %one = arith.cmpf oeq, %high, %high : tensor<1x1xf32>
  %n = optim.random normal seed %high, %high step %high, %high if %one : tensor<1x1xi1> call 3 : tensor<1x1xf32> to tensor<?x?xf32>
  %q = arith.mulf %all, %n : tensor<?x?xf32>
  %u = optim.random uniform seed %high, %high step %high, %high call 4 : tensor<1x1xf32> to tensor<?x?xf32>
  %s = optim.stochastic %q, %u of parameter : tensor<?x?xf32> to tensor<?x?xbf16>
  %p = arith.extf %s : tensor<?x?xbf16> to tensor<?x?xf32>
  optim.yield %p, %n : tensor<?x?xf32>, tensor<?x?xf32>
}
// In a region of one element, and in a kernel, which knows the element and the key.
// CHECK: optim.position rows : f32
// CHECK: optim.random normal seed %{{.*}}, %{{.*}} step %{{.*}}, %{{.*}} if %{{.*}} : i1 call 0 at %{{.*}} : i64 of %{{.*}} : i64 : f32 to f32
// CHECK: optim.stochastic %{{.*}}, %{{.*}} : f32 to bf16
func.func @element(%high: f32, %low: f32, %first: i1, %element: i64, %key: i64) -> f32 {
  %r = optim.position rows : f32
  %n = optim.random normal seed %high, %low step %low, %high if %first : i1 call 0 at %element : i64 of %key : i64 : f32 to f32
  %s = optim.stochastic %r, %n : f32 to bf16
  %w = arith.extf %s : bf16 to f32
  %p = arith.mulf %w, %n : f32
  return %p : f32
}

// Values of other sizes, and a size that the rule computes.
// CHECK: optim.rule @Low hyperparameters [] states [#optim.state<"q", f32, [cols, size0], 0.000000e+00 : f64, false start = normal>]
// CHECK: optim.size 0 "r" = %{{.*}}
// CHECK: optim.transpose %{{.*}} : tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[cols, rows]>>
// CHECK: optim.position rows : tensor<?x1xf32, #optim.kind<[cols, 1]>>
optim.rule @Low hyperparameters [] states [#optim.state<"q", f32, [cols, size0], 0.0 : f64, false start = normal>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %q: tensor<?x?xf32, #optim.kind<[cols, size0]>>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.size 0 "r" = %rows
  %t = optim.transpose %grad : tensor<?x?xf32> -> tensor<?x?xf32, #optim.kind<[cols, rows]>>
  %n = optim.position rows : tensor<?x1xf32, #optim.kind<[cols, 1]>>
  optim.yield %param, %q : tensor<?x?xf32>, tensor<?x?xf32, #optim.kind<[cols, size0]>>
}

// Every error of the dialect's verifiers and constraints.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// A mesh has one size per axis.
// expected-error @below {{expected one size per axis, found 2 axes and 1 sizes}}
optim.mesh @world axes ["dp", "tp"] sizes [2] ranks [0, 1]

// -----

// Axis sizes are positive.
// expected-error @below {{expected positive axis sizes, found 0}}
optim.mesh @world axes ["dp"] sizes [0] ranks []

// -----

// A mesh has as many ranks as places.
// expected-error @below {{expected 4 ranks, found 3}}
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2]

// -----

// Ranks are not negative.
// expected-error @below {{expected ranks that are not negative, found -1}}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, -1]

// -----

// No rank stands twice in a mesh.
// expected-error @below {{expected distinct ranks, found 3 twice}}
optim.mesh @world axes ["dp"] sizes [2] ranks [3, 3]

// -----

// A mesh stands in a module.
func.func @f() {
  // expected-error @below {{expects parent op 'builtin.module'}}
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  return
}

// -----

// Two hyperparameters do not share a name.
// expected-error @below {{expected distinct names, found "lr" twice}}
optim.rule @R hyperparameters ["lr", "lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: f64, %b: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}

// -----

// A state and a hyperparameter do not share a name.
// expected-error @below {{expected distinct names, found "m" twice}}
optim.rule @R hyperparameters ["m"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %s: tensor<?x?xf32>, %m: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %s : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// States are not stored in f64.
// expected-error @below {{expected a state of f32, bf16 or f16, found 'f64'}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f64, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// States are not integers.
// expected-error @below {{expected a state of f32, bf16 or f16, found 'i32'}}
optim.rule @R hyperparameters [] states [#optim.state<"m", i32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// A rule has one master.
// expected-error @below {{expected at most one master state}}
optim.rule @R hyperparameters [] states [#optim.state<"a", f32, full, 0.0 : f64, true>, #optim.state<"b", f32, full, 0.0 : f64, true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %a, %b : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// The master is f32.
// expected-error @below {{expected a master state that is full and f32, found #optim.state<"a", bf16, full, 0.000000e+00 : f64, true>}}
optim.rule @R hyperparameters [] states [#optim.state<"a", bf16, full, 0.0 : f64, true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %a : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// The master is shaped like the parameter.
// expected-error @below {{expected a master state that is full and f32, found #optim.state<"a", f32, rows, 0.000000e+00 : f64, true>}}
optim.rule @R hyperparameters [] states [#optim.state<"a", f32, rows, 0.0 : f64, true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %a : tensor<?x?xf32>, tensor<?x1xf32>
}

// -----

// The body has the four scalars that every rule has.
// expected-error @below {{expected body arguments 'tensor<?x?xf32>', 'tensor<?x?xf32>', 'f64', 'f64', 'f64', 'f64', found 'tensor<?x?xf32>', 'tensor<?x?xf32>'}}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>):
  optim.yield %param : tensor<?x?xf32>
}

// -----

// A rows state is a rows argument.
// expected-error @below {{expected body arguments 'tensor<?x?xf32>', 'tensor<?x?xf32>', 'tensor<?x1xf32>',}}
optim.rule @R hyperparameters [] states [#optim.state<"a", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %a : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// A rule yields the parameter and every state.
optim.rule @R hyperparameters [] states [#optim.state<"a", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{expected values 'tensor<?x?xf32>', 'tensor<?x1xf32>', found 'tensor<?x?xf32>'}}
  optim.yield %param : tensor<?x?xf32>
}

// -----

// A yield ends a rule and nothing else.
func.func @f(%p: tensor<?x?xf32>) {
  // expected-error @below {{expects parent op 'optim.rule'}}
  optim.yield %p : tensor<?x?xf32>
}

// -----

// A rule sees nothing from outside its body.
%outside = arith.constant 1.0 : f64
// expected-note @below {{required by region isolation constraints}}
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{using value defined outside the region}}
  %s = optim.splat %outside : tensor<?x?xf32>
  optim.yield %s : tensor<?x?xf32>
}

// -----

// A route names a rule that exists.
// expected-error @below {{expected a rule, found no optim.rule named @Muon}}
optim.route @Muon rule @Muon rest patterns [] except [] defaults [] missing_grad error

// -----

// A route has one default per hyperparameter.
// expected-note @below {{the rule is here}}
optim.rule @R hyperparameters ["lr"] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
// expected-error @below {{expected 1 defaults, found 2}}
optim.route @R rule @R rest patterns [] except [] defaults [0.1, 0.2] missing_grad error

// -----

// The rest has no patterns: it is what no other route claims.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
// expected-error @below {{expected no patterns beside rest}}
optim.route @R rule @R rest patterns ["*"] except [] defaults [] missing_grad error

// -----

// Routes have different names: trainers know them by these.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
// expected-note @below {{the first is here}}
optim.route @head rule @R patterns ["a"] except [] defaults [] missing_grad error
// expected-error @below {{expected routes of different names, found another one named head}}
optim.route @head rule @R rest patterns [] except [] defaults [] missing_grad error

// -----

// A pattern is one that all matchers read alike.
// expected-error @below {{expected a pattern, found "layers.[0": expected ']' after '[' in a pattern}}
// expected-note @below {{a '[' of the name itself is written '[[]'}}
optim.route @R rule @R patterns ["layers.[0"] except [] defaults [] missing_grad error

// -----

// So is one that excepts.
// expected-error @below {{expected a pattern, found "[^a]*": expected '!' where a set of a pattern is negated, found '^'}}
// expected-note @below {{write '[!...]'}}
optim.route @R rule @R rest patterns [] except ["[^a]*"] defaults [] missing_grad error

// -----

// Patterns are text.
// expected-error @below {{expected UTF-8 in a pattern, found the byte 0xff}}
// expected-note @below {{names are Unicode text}}
optim.route @R rule @R patterns ["\FF"] except [] defaults [] missing_grad error

// -----

// Only a pattern of the route can be optional.
// expected-error @below {{expected optional patterns that are among the patterns ["a"] and ["c"], found "b"}}
optim.route @R rule @R patterns ["a"] optional ["b"] except ["c"] defaults [] missing_grad error

// -----

// Defaults are numbers.
// expected-error @below {{expected floating point literal}}
optim.route @R rule @R rest patterns [] except [] defaults [nan] missing_grad error

// -----

// An absent gradient means one of three things.
// expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'missing_grad' [error, skip, zero]}}
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad never

// -----

// A parameter lives on a mesh that exists.
// expected-error @below {{expected a mesh, found no optim.mesh named @world}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [] aliases []

// -----

// Sizes are not negative.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected sizes that are not negative, found -4}}
optim.parameter @w shape [4, -4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// More elements than any device holds, though each size is fine.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected at most 2^40 elements, found shape [1073741824, 268435456]}}
optim.parameter @w shape [1073741824, 268435456] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A size of 0 does not hide the others.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected at most 2^40 elements, found shape [576460752303423488, 0, 2]}}
optim.parameter @w shape [576460752303423488, 0, 2] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Parameters are not stored in f64.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected a type of f32, bf16 or f16, found 'f64'}}
optim.parameter @w shape [4, 4] batch 0 type f64 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Gradients are not integers.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected a type of f32, bf16 or f16, found 'i8'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient i8 mesh @world placements [#optim.replicate] aliases []

// -----

// Batch axes leave the two axes of a matrix.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected batch axes that leave a matrix, found 1 of 2 axes}}
optim.parameter @w shape [4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A parameter has one placement per mesh axis.
// expected-note @below {{the mesh is here}}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected 1 placements, one per mesh axis, found 2}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] aliases []

// -----

// A placement divides an axis that the parameter has.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{placement 0: expected a tensor axis between 0 and 1, found 2}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<2>] aliases []

// -----

// So does a strided one.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{placement 0: expected a tensor axis between 0 and 1, found -1}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.strided_shard<-1, 1>] aliases []

// -----

// The split factor of a strided placement counts the shards of later mesh axes.
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
// expected-error @below {{placement 0: expected a split factor of 2, the number of shards of later mesh axes, found 3}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.strided_shard<0, 3>, #optim.shard<0>] aliases []

// -----

// A placement is a placement.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{attribute 'placements' failed to satisfy constraint: placements, one per mesh axis}}
"optim.parameter"() <{label = "w", shape = array<i64: 4>, batch = 0 : i64, type = f32, gradient = f32, mesh = @world, placements = ["S(0)"], aliases = []}> : () -> ()

// -----

// A group's rule exists.
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected a rule, found no optim.rule named @R}}
optim.group @g rule @R parameters [@a]

// -----

// A group has parameters.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
// expected-error @below {{expected at least one parameter}}
optim.group @g rule @R parameters []

// -----

// A group's parameters exist.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
// expected-error @below {{expected a parameter, found no optim.parameter named @w}}
optim.group @g rule @R parameters [@w]

// -----

// A group's parameters are alike.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-note @below {{the parameter is here}}
optim.parameter @b shape [4, 4] batch 0 type f32 gradient bf16 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected parameters of equal shape, types, mesh and placements, found @b that differs}}
optim.group @g rule @R parameters [@a, @b]

// -----

// Owners belong to strategy owner.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected no owners without strategy owner, found 1}}
optim.group @g rule @R parameters [@a] strategy gather owners [0]

// -----

// Every block has one owner: two experts, two owners.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [2, 4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected one owner per block, 2, found 1}}
optim.group @g rule @R parameters [@a] strategy owner owners [0]

// -----

// Owners are positions in the mesh, not ranks of the job.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected owners that are mesh positions below 1, found 7}}
optim.group @g rule @R parameters [@a] strategy owner owners [7]

// -----

// Broadcast does not convert.
func.func @f(%x: tensor<?x1xbf16>) {
  // expected-error @below {{expected equal element types and ranks, found 'tensor<?x1xbf16>' and 'tensor<?x?xf32>'}}
  %0 = optim.broadcast %x : tensor<?x1xbf16> to tensor<?x?xf32>
  return
}

// -----

// Broadcast does not add axes.
func.func @f(%x: tensor<1xf32>) {
  // expected-error @below {{expected equal element types and ranks, found 'tensor<1xf32>' and 'tensor<?x?xf32>'}}
  %0 = optim.broadcast %x : tensor<1xf32> to tensor<?x?xf32>
  return
}

// -----

// Broadcast makes axes longer, never shorter.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected axes that are equal or 1 in the source, found 'tensor<?x?xf32>' and 'tensor<?x1xf32>'}}
  %0 = optim.broadcast %x : tensor<?x?xf32> to tensor<?x1xf32>
  return
}

// -----

// A splat comes from f64.
func.func @f(%x: f32) {
  // expected-note @above {{prior use here}}
  // expected-error @below {{use of value '%x' expects different type than prior uses: 'f64' vs 'f32'}}
  %0 = optim.splat %x : tensor<?x?xf32>
  return
}

// -----

// What lerp mixes has one type.
func.func @f(%x: tensor<?x?xf32>, %y: tensor<?x1xf32>) {
  // expected-error @below {{failed to verify that all of {from, to, weight, result} have same type}}
  %0 = "optim.lerp"(%x, %y, %x) : (tensor<?x?xf32>, tensor<?x1xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

// Momentum has one type.
func.func @f(%x: tensor<?x?xf32>, %y: tensor<?x?xbf16>) {
  // expected-error @below {{failed to verify that all of {state, gradient, decay, result} have same type}}
  %0 = "optim.momentum"(%x, %y, %x) : (tensor<?x?xf32>, tensor<?x?xbf16>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

// What decays keeps its type.
func.func @f(%x: tensor<?x?xf32>, %s: f64) {
  // expected-error @below {{failed to verify that all of {parameter, result} have same type}}
  %0 = "optim.decay"(%x, %s, %s) : (tensor<?x?xf32>, f64, f64) -> tensor<?x?xbf16>
  return
}

// -----

// A reduction keeps the number of axes.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected equal ranks, found 'tensor<?x?xf32>' and 'tensor<?xf32>'}}
  %0 = optim.reduce sum %x : tensor<?x?xf32> to tensor<?xf32>
  return
}

// -----

// A reduced axis has one element.
func.func @f(%x: tensor<?x1xf32>) {
  // expected-error @below {{expected axes that are equal or 1 in the result, found 'tensor<?x1xf32>' and 'tensor<?x?xf32>'}}
  %0 = optim.reduce sum %x : tensor<?x1xf32> to tensor<?x?xf32>
  return
}

// -----

// Reductions in a rule are f32.
func.func @f(%x: tensor<?x?xbf16>) {
  // expected-error @below {{'optim.reduce' op operand #0 must be ranked tensor of 32-bit float values, but got 'tensor<?x?xbf16>'}}
  %0 = optim.reduce sum %x : tensor<?x?xbf16> to tensor<?x1xf32>
  return
}

// -----

// Newton–Schulz keeps the shape.
func.func @f(%x: tensor<?x1xf32>) {
  // expected-error @below {{expected a source and a result of one shape, found 'tensor<?x1xf32>' and 'tensor<?x?xf32>'}}
  %0 = "optim.orthogonalize"(%x) <{coefficients = [[1.5, -0.5, 0.0]], eps = 1.0e-07 : f64}> : (tensor<?x1xf32>) -> tensor<?x?xf32>
  return
}

// -----

// Newton–Schulz has at least one step.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected at least one step of coefficients}}
  %0 = optim.orthogonalize %x coefficients [] eps 1.0e-07 : tensor<?x?xf32>
  return
}

// -----

// A step has three coefficients.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected three numbers per step, found [1.500000e+00, -5.000000e-01]}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5]] eps 1.0e-07 : tensor<?x?xf32>
  return
}

// -----

// Coefficients are floating-point numbers.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected three numbers per step, found [1, 2, 3]}}
  %0 = optim.orthogonalize %x coefficients [[1, 2, 3]] eps 1.0e-07 : tensor<?x?xf32>
  return
}

// -----

// What is not of the operand type is f32.
func.func @f(%x: tensor<?x?xbf16>) {
  // expected-error @below {{expected a source of 'f16' or f32, found 'bf16'}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xbf16> to tensor<?x?xf16>
  return
}

// -----

// A zero matrix must not be divided by zero.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected an eps of at least 2^-100, finite in f32, found 0.000000e+00}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 0.0 : tensor<?x?xf32>
  return
}

// -----

// Nor by what overflows.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected an eps of at least 2^-100, finite in f32, found 1.000000e+60}}
  %0 = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e+60 : tensor<?x?xf32>
  return
}

// -----

// Coefficients are multiplied in f32.
func.func @f(%x: tensor<?x?xf32>) {
  // expected-error @below {{expected coefficients that are finite in f32, found [1.000000e+300, -5.000000e-01, 0.000000e+00]}}
  %0 = optim.orthogonalize %x coefficients [[1.0e+300, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  return
}

// -----

// Products are of batches of matrices.
func.func @f(%x: tensor<8x8xf32>) {
  // expected-error @below {{expected operands of rank 3, found 'tensor<8x8xf32>'}}
  %0 = optim.product @s %x, %x outs(%x : tensor<8x8xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return
}

// -----

// A product has one out: scratch is the target's.
func.func @f(%x: tensor<?x8x8xf32>) {
  // expected-error @below {{expected ':'}}
  %0:2 = optim.product @s %x, %x outs(%x, %x : tensor<?x8x8xf32>, tensor<?x8x8xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64}
    : tensor<?x8x8xf32>, tensor<?x8x8xf32> -> tensor<?x8x8xf32>, tensor<?x8x8xf32>
  return
}

// -----

// The inner extents of a product agree.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x6xf32>) {
  // expected-error @below {{expected equal inner extents, found 6 and 8}}
  %0 = optim.product @s %x, %x outs(%o : tensor<?x8x6xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64} : tensor<?x8x6xf32>, tensor<?x8x6xf32> -> tensor<?x8x6xf32>
  return
}

// -----

// The out of a product has its extents.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x6x6xf32>) {
  // expected-error @below {{expected addend and out of 8 x 8}}
  %0 = optim.product @s %x, %x outs(%o : tensor<?x6x6xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64, transpose_rhs} : tensor<?x8x6xf32>, tensor<?x8x6xf32> -> tensor<?x6x6xf32>
  return
}

// -----

// So has its addend.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x6x6xf32>) {
  // expected-error @below {{expected addend and out of 6 x 6}}
  %0 = optim.product @s %x, %x plus %x outs(%o : tensor<?x6x6xf32>) {alpha = 1.0 : f64, beta = 1.0 : f64, transpose_lhs}
    : tensor<?x8x6xf32>, tensor<?x8x6xf32>, tensor<?x8x6xf32> -> tensor<?x6x6xf32>
  return
}

// -----

// Only a square result is symmetric.
func.func @f(%x: tensor<?x8x6xf32>, %y: tensor<?x6x4xf32>, %o: tensor<?x8x4xf32>) {
  // expected-error @below {{expected a square result for symmetric, found 8 x 4}}
  %0 = optim.product @s %x, %y outs(%o : tensor<?x8x4xf32>) {alpha = 1.0 : f64, beta = 0.0 : f64, symmetric} : tensor<?x8x6xf32>, tensor<?x6x4xf32> -> tensor<?x8x4xf32>
  return
}

// -----

// A block reduction has an out.
func.func @f(%x: tensor<?x8x6xf32>) {
  // expected-error @below {{expected 2 operands, but found 1}}
  "optim.block_reduce"(%x) <{kind = 0 : i64, segment = @s}> : (tensor<?x8x6xf32>) -> ()
  return
}

// -----

// A block reduction is of a batch.
func.func @f(%x: tensor<8x6xf32>, %o: tensor<8x1xf32>) {
  // expected-error @below {{expected a source of rank 3, found 'tensor<8x6xf32>'}}
  %0 = optim.block_reduce sum @s %x outs(%o : tensor<8x1xf32>) : tensor<8x6xf32> -> tensor<8x1xf32>
  return
}

// -----

// The out of a block reduction keeps the axes or has 1.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x3xf32>) {
  // expected-error @below {{expected axes that are equal or 1 in the result, found 'tensor<?x8x6xf32>' and 'tensor<?x8x3xf32>'}}
  %0 = optim.block_reduce sum @s %x outs(%o : tensor<?x8x3xf32>) : tensor<?x8x6xf32> -> tensor<?x8x3xf32>
  return
}

// -----

// Reductions are in f32.
func.func @f(%x: tensor<?x8x6xbf16>, %o: tensor<?x8x1xbf16>) {
  // expected-error @below {{expected an out of f32, found 'tensor<?x8x1xbf16>'}}
  %0 = optim.block_reduce sum @s %x outs(%o : tensor<?x8x1xbf16>) : tensor<?x8x6xbf16> -> tensor<?x8x1xbf16>
  return
}

// -----

// Only what has a root is scaled.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x1xf32>) {
  // expected-error @below {{expected an exponent between -30 and 30, and 0 but for norm and rms, found -24}}
  %0 = optim.block_reduce sum @s %x outs(%o : tensor<?x8x1xf32>) {exponent = -24 : i64} : tensor<?x8x6xf32> -> tensor<?x8x1xf32>
  return
}

// -----

// And not so far that small norms are lost.
func.func @f(%x: tensor<?x8x6xf32>, %o: tensor<?x8x1xf32>) {
  // expected-error @below {{expected an exponent between -30 and 30, and 0 but for norm and rms, found -31}}
  %0 = optim.block_reduce norm @s %x outs(%o : tensor<?x8x1xf32>) {exponent = -31 : i64} : tensor<?x8x6xf32> -> tensor<?x8x1xf32>
  return
}

// -----

// An unknown strategy is no strategy.
// expected-error @below {{expected string or keyword containing one of the following enum values for attribute 'strategy' [elementwise, local, owner, gather]}}
optim.group @g rule @R parameters [] strategy nowhere

// -----

// Waves are one per block.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected one wave per block, 1, found 2}}
optim.group @g rule @R parameters [@a] strategy local waves [0, 1]

// -----

// Waves count from 0.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected waves between 0 and 1048575, found -1}}
optim.group @g rule @R parameters [@a] strategy local waves [-1]

// -----

// Waves are not as many as a program could never hold.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected waves between 0 and 1048575, found 1048576}}
optim.group @g rule @R parameters [@a] strategy gather waves [1048576]

// -----

// What needs no blocks is in no wave.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected no waves with strategy elementwise, found 1}}
optim.group @g rule @R parameters [@a] strategy elementwise waves [0]

// -----

// A space is one of three.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{expected optim.space between 0 and 2, found 3 : i64}}
  optim.yield %param : tensor<?x?xf32> {optim.space = 3 : i64}
}

// -----

// A space is a number of 64 bits.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{expected optim.space between 0 and 2, found "in"}}
  optim.yield %param : tensor<?x?xf32> {optim.space = "in"}
}

// -----

// Values are stored in a space, or stay.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{expected optim.writes of spaces between 0 and 2, or -1, found array<i64: 3>}}
  optim.yield %param : tensor<?x?xf32> {optim.writes = array<i64: 3>}
}

// -----

// A misspelt attribute is none of the dialect's.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{expected an attribute of the dialect optim, found optim.write}}
  optim.yield %param : tensor<?x?xf32> {optim.write = array<i64: 0>}
}

// -----

optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @+1 {{'arith.addf' op expected no fast-math flags in a rule, found #arith.fastmath<fast>}}
  %p = arith.addf %param, %grad fastmath<fast> : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

// expected-error @+1 {{expected an initial value that 'f16' can hold, found 1.000000e+06 : f64 for "m"}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f16, full, 1.0e+06 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}

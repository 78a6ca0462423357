// Every error of meshes, rules and routes, and of the dialect's attributes.
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
// expected-error @below {{expected as many ranks as the axes [2, 2] span, found 3}}
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2]

// -----

// A product of sizes that no integer holds is not 0.
// expected-error @below {{expected as many ranks as the axes [4294967296, 4294967296] span, found 0}}
optim.mesh @world axes ["dp", "tp"] sizes [4294967296, 4294967296] ranks []

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

// Neither do two metrics.
// expected-error @below {{expected distinct names, found "m" twice}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, one, 0.0 : f64, false, metric = true>, #optim.state<"m", f32, one, 0.0 : f64, false, metric = true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<1x1xf32>, %n: tensor<1x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %one = optim.splat %rows : tensor<1x1xf32>
  optim.yield %param, %one, %one : tensor<?x?xf32>, tensor<1x1xf32>, tensor<1x1xf32>
}

// -----

// Stores name a state, so a state and a metric do not share a name.
// expected-error @below {{expected distinct names, found "m" twice}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false>, #optim.state<"m", f32, one, 0.0 : f64, false, metric = true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %n: tensor<1x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %one = optim.splat %rows : tensor<1x1xf32>
  optim.yield %param, %m, %one : tensor<?x?xf32>, tensor<?x?xf32>, tensor<1x1xf32>
}

// -----

// A metric is one f32.
// expected-error @below {{expected a metric that is an f32 of kind one and no master, found 'bf16' of one}}
optim.rule @R hyperparameters [] states [#optim.state<"m", bf16, one, 0.0 : f64, false, metric = true>] {
}

// -----

// It is no master.
// expected-error @below {{expected a metric that is an f32 of kind one and no master, found a master of 'f32' of full}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, true, metric = true>] {
}

// -----

// Only what is shaped like the parameter starts at it.
// expected-error @below {{expected a full state to start at param, found rows}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, rows, 0.0 : f64, false start = param>] {
}

// -----

// What the trainer gives is no metric.
// expected-error @below {{expected an input that starts at a number, found a metric}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, one, 0.0 : f64, false input = true, metric = true>] {
}

// -----

// What the trainer gives is not stored.
// expected-error @below {{expected input "m" to be yielded as it is, found another value}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, false input = true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %grad : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// A master starts at it by itself.
// expected-error @below {{expected a full state to start at param, found a master}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, full, 0.0 : f64, true start = param>] {
}

// -----

// Its old value is not read.
// expected-error @below {{expected no operation to read metric "m", found one}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, one, 0.0 : f64, false, metric = true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<1x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<1x1xf32>
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

// Block states are states of the rule, each once, full, and no masters.
// expected-error @below {{expected block states among the rule's states, found 'b'}}
optim.rule @R hyperparameters [] states [#optim.state<"a", f32, full, 0.0 : f64, false>] block_states ["b"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %a : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// expected-error @below {{expected distinct block states, found 'a' twice}}
optim.rule @R hyperparameters [] states [#optim.state<"a", f32, full, 0.0 : f64, false>] block_states ["a", "a"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %a : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// expected-error @below {{expected block states that are full and no masters, found #optim.state<"a", f32, full, 0.000000e+00 : f64, true>}}
optim.rule @R hyperparameters [] states [#optim.state<"a", f32, full, 0.0 : f64, true>] block_states ["a"] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %a: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %a : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// expected-error @below {{expected optim.state_limit of an i64 above 0, found 0 : i64}}
module attributes {optim.state_limit = 0 : i64} {}

// -----

// expected-error @below {{expected optim.kept_owners of lists of ranks by parameter, -1 for none, found 3 : i64}}
module attributes {optim.kept_owners = 3 : i64} {}

// -----

// expected-error @below {{expected optim.kept_owners of lists of ranks by parameter, -1 for none, found {a = array<i64: -2>}}}
module attributes {optim.kept_owners = {a = array<i64: -2>}} {}

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

// A yield ends a rule or a model and nothing else.
func.func @f(%p: tensor<?x?xf32>) {
  // expected-error @below {{expects parent op to be one of 'optim.rule, optim.model, optim.route'}}
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

// Only matrices have sizes that a route can ask for.
// expected-error @below {{expected matrix beside where, found none}}
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error where {
^bb0(%rows: f64, %cols: f64, %numel: f64):
  %small = arith.cmpf ole, %rows, %cols : f64
  optim.yield %small : i1
}

// -----

// A block has three sizes.
// expected-error @below {{expected the arguments rows, cols and numel of where, of f64, found 'f64', 'f64'}}
optim.route @R rule @R matrix patterns [] except [] defaults [] missing_grad error where {
^bb0(%rows: f64, %cols: f64):
  %small = arith.cmpf ole, %rows, %cols : f64
  optim.yield %small : i1
}

// -----

// It is a condition.
// expected-error @below {{expected where to yield one condition of i1}}
optim.route @R rule @R matrix patterns [] except [] defaults [] missing_grad error where {
^bb0(%rows: f64, %cols: f64, %numel: f64):
  optim.yield %rows : f64
}

// -----

// Defaults are numbers.
// expected-error @below {{expected floating point literal}}
optim.route @R rule @R rest patterns [] except [] defaults [nan] missing_grad error

// -----

// An absent gradient means one of three things.
// expected-error @below {{expected error, skip or zero, found never}}
optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad never

// -----

// An unknown strategy is no strategy.
// expected-error @below {{unknown attribute `nowhere` in dialect `optim`}}
optim.group @g rule @R parameters [] strategy #optim.nowhere

// -----

// A placement is none.
// expected-error @below {{invalid kind of attribute specified}}
optim.group @g rule @R parameters [] strategy #optim.replicate

// -----

// Waves are one per block.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected one wave per block, 1, found 2}}
optim.group @g rule @R parameters [@a] strategy #optim.local hops [] waves [0, 1]

// -----

// Waves count from 0.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected waves between 0 and 1048575, found -1}}
optim.group @g rule @R parameters [@a] strategy #optim.local hops [] waves [-1]

// -----

// Waves are not as many as a program could never hold.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected waves between 0 and 1048575, found 1048576}}
optim.group @g rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 1>]>] waves [1048576]

// -----

// What needs neither blocks nor shards from elsewhere is in no wave.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected no waves without hops or shards that stand apart, found 1}}
optim.group @g rule @R parameters [@a] waves [0]

// -----

// A space is an attribute of its own.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{expected optim.space of #optim.space, found "in"}}
  optim.yield %param : tensor<?x?xf32> {optim.space = "in"}
}

// -----

// Values are stored in a space, or stay.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{expected optim.writes of #optim.space or unit, found [3]}}
  optim.yield %param : tensor<?x?xf32> {optim.writes = [3]}
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
  // expected-error @+1 {{'arith.addf' op expected no fast-math flags in a rule or model, found #arith.fastmath<fast>}}
  %p = arith.addf %param, %grad fastmath<fast> : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32>
}

// -----

// Values of a rule are matrices.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.splat' op expected values of two axes in a rule, found 'tensor<?xf32>'}}
  %v = optim.splat %step : tensor<?xf32>
  optim.yield %param : tensor<?x?xf32>
}

// -----

// A kind has one type.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.splat' op expected 'tensor<?x8xf32, #optim.kind<[cols, 8]>>' for values of that kind, found 'tensor<?x9xf32, #optim.kind<[cols, 8]>>'}}
  %v = optim.splat %step : tensor<?x9xf32, #optim.kind<[cols, 8]>>
  optim.yield %param : tensor<?x?xf32>
}

// -----

// Sizes are kinds.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'optim.splat' op expected 'tensor<?x?xf32>' for values of that kind, found 'tensor<4x6xf32>'}}
  %v = optim.splat %step : tensor<4x6xf32>
  optim.yield %param : tensor<?x?xf32>
}

// -----

// Constants are the same for all elements.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{'arith.constant' op expected one number for all elements, found dense<}}
  %v = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32, #optim.kind<[1, 2]>>
  optim.yield %param : tensor<?x?xf32>
}

// -----

// expected-error @+1 {{expected an initial value that 'f16' can hold, found 1.000000e+06 : f64 for "m"}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f16, full, 1.0e+06 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// An input lies on shards.
// expected-error @+1 {{expected an input of full, rows, cols or one, found gram}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, gram, 0.0 : f64, false input = true>] {
}

// -----

// A master is like its parameter.
// expected-error @below {{expected a master state that is full and f32, found #optim.state<"m", f32, [rows, rows], 0.000000e+00 : f64, true>}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, [rows, rows], 0.0 : f64, true>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32, #optim.kind<[rows, rows]>>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32, #optim.kind<[rows, rows]>>
}

// -----

// A state has sizes of its rule.
// expected-error @below {{expected states of the rule's 0 sizes, found 'tensor<?x?xf32, #optim.kind<[cols, size0]>>'}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, [cols, size0], 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32, #optim.kind<[cols, size0]>>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32, #optim.kind<[cols, size0]>>
}

// -----

// Every value of a rule has sizes from 1 to 2^20.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.size 0 "r" = %cols
  // expected-error @below {{expected values of the rule's 1 sizes, found 'tensor<?x?xf32, #optim.kind<[rows, size1]>>'}}
  %0 = optim.splat %step : tensor<?x?xf32, #optim.kind<[rows, size1]>>
  optim.yield %param : tensor<?x?xf32>
}

// -----

// Sizes are numbered in order.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  // expected-error @below {{expected sizes numbered in order from 0, at most 8, found number 1}}
  optim.size 1 "r" = %cols
  optim.yield %param : tensor<?x?xf32>
}

// -----

// A state has a known kind.
// expected-error @+2 {{expected full, rows, cols, one or gram, found half}}
// expected-error @+1 {{failed to parse Optim_State parameter 'kind'}}
optim.rule @R hyperparameters [] states [#optim.state<"m", f32, half, 0.0 : f64, false>] {
}

// -----

// Matrices have two axes.
// expected-error @below {{expected rows or columns, found depth}}
optim.divide patterns ["w"] except [] into depth split [2] repeat 1

// -----

// Sizes are said in a known way.
// expected-error @below {{expected listed, each or split, found about}}
optim.divide patterns ["w"] except [] into rows about [2] repeat 1

// -----

// The rule of tall matrices is there.
// expected-error @below {{expected a rule of tall matrices, found no optim.rule named @None}}
optim.rule @T hyperparameters [] states [] tall @None {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad : tensor<?x?xf32>
}

// -----

// Its states are those of the transposed matrix.
optim.rule @T.tall hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad, %v : tensor<?x?xf32>, tensor<?x1xf32>
}
// expected-error @below {{expected a rule of tall matrices with the same hyperparameters, and the same states with rows and columns exchanged, found @T.tall}}
optim.rule @T hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] tall @T.tall {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %grad, %v : tensor<?x?xf32>, tensor<?x1xf32>
}

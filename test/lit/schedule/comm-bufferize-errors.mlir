// RUN: stepc-opt %s -split-input-file -verify-diagnostics --comm-bufferize

// A value that is changed in one element and read as it was would have to be copied.
optim.rule @R hyperparameters ["lr"] states [#optim.state<"m", f32, full, 0.0 : f64, false>] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param, %m : tensor<?x?xf32>, tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.route @R rule @R rest patterns [] except [] defaults [0.1] missing_grad error
optim.parameter @a shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases [] route @R
optim.group @g rule @R parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
comm.segment @s group @g all
func.func @step() {
  %steps = comm.steps
  %active = comm.active
  %m = comm.shards state @g "m" : !comm.shards<@g, f32>
  %n = comm.extent <@s, full, shards to blocks, sent>
  %e = tensor.empty(%n) : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  %x = comm.stage @s over shards active %active ins(%m : !comm.shards<@g, f32>) outs(%e : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) {
  ^bb0(%a: f32):
    comm.yield %a : f32
  } -> tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  %i = arith.constant 0 : index
  %c = arith.constant 0.0 : f32
  // expected-error @below {{expected a program without copies, found that bufferization needs one here}}
  %y = tensor.insert %c into %x[%i] : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>
  comm.stage @s over shards active %active ins(%x, %y : tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>, tensor<?xf32, #comm.place<@s, full, shards to blocks, sent>>) writes(%m : !comm.shards<@g, f32>) {
  ^bb0(%a: f32, %b: f32):
    %d = arith.addf %a, %b : f32
    comm.yield %d : f32
  }
  comm.advance_steps %steps active %active
  return
}

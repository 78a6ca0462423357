module @adamw attributes {stepc.level = "scheduled", stepc.numerics = "exact"} {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @AdamW hyperparameters ["lr", "beta1", "beta2", "eps", "weight_decay"]
      states [#optim.state<"m", f32, full, 0.0 : f64, false>, #optim.state<"v", f32, full, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %m: tensor<?x?xf32>, %v: tensor<?x?xf32>,
       %lr: f64, %beta1: f64, %beta2: f64, %eps: f64, %wd: f64,
       %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %one = arith.constant 1.0 : f64
    %c1 = arith.subf %one, %beta1 : f64
    %c2 = arith.subf %one, %beta2 : f64
    %p1 = math.powf %beta1, %step : f64
    %p2 = math.powf %beta2, %step : f64
    %d1 = arith.subf %one, %p1 : f64
    %d2 = arith.subf %one, %p2 : f64
    %lw = arith.mulf %lr, %wd : f64
    %k = arith.subf %one, %lw : f64
    %tc1 = optim.splat %c1 : tensor<?x?xf32>
    %tc2 = optim.splat %c2 : tensor<?x?xf32>
    %td1 = optim.splat %d1 : tensor<?x?xf32>
    %td2 = optim.splat %d2 : tensor<?x?xf32>
    %te = optim.splat %eps : tensor<?x?xf32>
    %tk = optim.splat %k : tensor<?x?xf32>
    %tl = optim.splat %lr : tensor<?x?xf32>
    %dm = arith.subf %grad, %m : tensor<?x?xf32>
    %wm = arith.mulf %tc1, %dm : tensor<?x?xf32>
    %m1 = arith.addf %m, %wm : tensor<?x?xf32>
    %gg = arith.mulf %grad, %grad : tensor<?x?xf32>
    %dv = arith.subf %gg, %v : tensor<?x?xf32>
    %wv = arith.mulf %tc2, %dv : tensor<?x?xf32>
    %v1 = arith.addf %v, %wv : tensor<?x?xf32>
    %mh = arith.divf %m1, %td1 : tensor<?x?xf32>
    %vh = arith.divf %v1, %td2 : tensor<?x?xf32>
    %s = math.sqrt %vh : tensor<?x?xf32>
    %e = arith.addf %s, %te : tensor<?x?xf32>
    %u = arith.divf %mh, %e : tensor<?x?xf32>
    %ka = arith.mulf %tk, %param : tensor<?x?xf32>
    %lu = arith.mulf %tl, %u : tensor<?x?xf32>
    %n = arith.subf %ka, %lu : tensor<?x?xf32>
    optim.yield %n, %m1, %v1 : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>
  }
  optim.route @AdamW_route rule @AdamW rest patterns [] except [] defaults [3.0e-4, 0.9, 0.95, 1.0e-8, 0.1] missing_grad error
  optim.parameter @"a.bias" shape [37] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @AdamW_route
  optim.parameter @"b.bias" shape [37] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @AdamW_route
  optim.group @g0 rule @AdamW parameters [@"a.bias", @"b.bias"]
  comm.segment @g0_all group @g0 all
  func.func @step() attributes {comm.arena_bytes = 64 : i64} {
    %hyperparameters = comm.hyperparameters
    %steps = comm.steps
    %active = comm.active
    %t = comm.buffer offset 0 bytes 56 : memref<2x7xf32, #comm.place<@g0, scalars>>
    comm.scalars of %hyperparameters, %steps active %active outs(%t : memref<2x7xf32, #comm.place<@g0, scalars>>) {
    ^bb0(%lr: f64, %beta1: f64, %beta2: f64, %eps: f64, %wd: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
      %one = arith.constant 1.0 : f64
      %c1 = arith.subf %one, %beta1 : f64
      %c2 = arith.subf %one, %beta2 : f64
      %p1 = math.powf %beta1, %step : f64
      %p2 = math.powf %beta2, %step : f64
      %d1 = arith.subf %one, %p1 : f64
      %d2 = arith.subf %one, %p2 : f64
      %lw = arith.mulf %lr, %wd : f64
      %k = arith.subf %one, %lw : f64
      comm.yield %c1, %c2, %d1, %d2, %eps, %k, %lr : f64, f64, f64, f64, f64, f64, f64
    }
    %p = comm.shards parameter @g0 : !comm.shards<@g0, f32>
    %g = comm.shards gradient @g0 : !comm.shards<@g0, f32>
    %m = comm.shards state @g0 "m" : !comm.shards<@g0, f32>
    %v = comm.shards state @g0 "v" : !comm.shards<@g0, f32>
    comm.stage @g0_all over shards active %active
        ins(%p, %g, %m, %v : !comm.shards<@g0, f32>, !comm.shards<@g0, f32>, !comm.shards<@g0, f32>, !comm.shards<@g0, f32>)
        writes(%p, %m, %v : !comm.shards<@g0, f32>, !comm.shards<@g0, f32>, !comm.shards<@g0, f32>)
        scalars(%t : memref<2x7xf32, #comm.place<@g0, scalars>>) {
    ^bb0(%a: f32, %ga: f32, %ma: f32, %va: f32, %c1: f32, %c2: f32, %d1: f32, %d2: f32, %eps: f32, %k: f32, %lr: f32):
      %dm = arith.subf %ga, %ma : f32
      %wm = arith.mulf %c1, %dm : f32
      %m1 = arith.addf %ma, %wm : f32
      %gg = arith.mulf %ga, %ga : f32
      %dv = arith.subf %gg, %va : f32
      %wv = arith.mulf %c2, %dv : f32
      %v1 = arith.addf %va, %wv : f32
      %mh = arith.divf %m1, %d1 : f32
      %vh = arith.divf %v1, %d2 : f32
      %s = math.sqrt %vh : f32
      %e = arith.addf %s, %eps : f32
      %u = arith.divf %mh, %e : f32
      %ka = arith.mulf %k, %a : f32
      %lu = arith.mulf %lr, %u : f32
      %p1 = arith.subf %ka, %lu : f32
      comm.yield %p1, %m1, %v1 : f32, f32, f32
    }
    comm.advance_steps %steps active %active
    return
  }
}

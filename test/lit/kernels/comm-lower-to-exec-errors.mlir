// RUN: stepc-opt %s --split-input-file --comm-lower-to-exec -verify-diagnostics
// RUN: not stepc-opt %s --split-input-file --comm-lower-to-exec=target=cpu:z80 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not stepc-opt %s --split-input-file --comm-lower-to-exec=target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET
// CPU: error: expected a cpu that LLVM knows for {{.*}}, found 'z80'
// TARGET: error: expected cpu, cpu:<llvm cpu>, cuda:<gpu>,…, emulated, emulated:<gpu>,…, interpret, interpret:<llvm cpu> or interpret:<gpu>,…, found 'tpu'

// No program.
// expected-error @+1 {{'builtin.module' op expected a function @step with a body, found no function}}
module {
}

// -----

// Not scheduled.
module {
  // expected-error @+1 {{'func.func' op expected comm.arena_bytes, the workspace per rank, found none}}
  func.func @step() {
    return
  }
}

// -----

// What has no kernel.
module {
  func.func @step() attributes {comm.arena_bytes = 0 : i64} {
    %c = arith.constant 4 : index
    // expected-error @+1 {{'memref.alloc' op expected operations of a scheduled program, found one that no command or kernel computes}}
    %m = memref.alloc(%c) : memref<?xf32>
    return
  }
}

// -----

// A region that is not elementwise.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  func.func @step() attributes {comm.arena_bytes = 0 : i64} {
    %steps = comm.steps
    %active = comm.active
    %p = comm.shards parameter @g : !comm.shards<@g, f32>
    // expected-error @+1 {{expected elementwise operations only, found memref.alloc}}
    comm.stage @s over shards active %active ins(%p : !comm.shards<@g, f32>) writes(%p : !comm.shards<@g, f32>) {
    ^bb0(%a: f32):
      // expected-note @+1 {{this operation}}
      %m = memref.alloc() : memref<f32>
      comm.yield %a : f32
    }
    comm.advance_steps %steps active %active
    return
  }
}

// -----

// Memory that is not a place in the workspace.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %param : tensor<?x?xf32>
  }
  optim.route @R rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @w shape [8] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @R
  optim.group @g rule @R parameters [@w]
  comm.segment @s group @g all
  // expected-error @+1 {{expected a buffer of the workspace or shards, found 'memref<1x0xf32, #comm.place<@g, scalars>>'}}
  func.func @step(%t: memref<1x0xf32, #comm.place<@g, scalars>>) attributes {comm.arena_bytes = 0 : i64} {
    %hyperparameters = comm.hyperparameters
    %steps = comm.steps
    %active = comm.active
    comm.scalars of %hyperparameters, %steps active %active outs(%t : memref<1x0xf32, #comm.place<@g, scalars>>) {
    ^bb0(%step: f64, %rows: f64, %cols: f64, %numel: f64):
      comm.yield
    }
    comm.advance_steps %steps active %active
    return
  }
}

// -----

// Levels before this one know no chip.
// expected-error @+1 {{expected no stepc.chip before level exec, because nothing there depends on a chip, found "pdp11;"}}
module attributes {stepc.chip = "pdp11;"} {
}

// RUN: stepc-opt %s --split-input-file --kernels-embed-plan -verify-diagnostics

// expected-error @+1 {{expected a step function named stepc_program_step, found none}}
module {
}

// -----

// The tables were lost.
module {
  // expected-error @+1 {{expected the attribute stepc.tables on the step function, found none}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {stepc.scratch_bytes = 0 : i64, stepc.exchanges = [], stepc.launches = []} {
    llvm.return
  }
}

// -----

// Nobody says how much scratch there is.
module {
  // expected-error @+1 {{expected the attribute stepc.scratch_bytes on the step function, found none}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {stepc.exchanges = [], stepc.launches = [], stepc.tables = []} {
    llvm.return
  }
}

// -----

// There is less than none.
module {
  // expected-error @+1 {{expected consistent tables, exchanges and launches, found that the scratch has -64 bytes}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {stepc.scratch_bytes = -64 : i64, stepc.exchanges = [], stepc.launches = [],
      stepc.tables = []} {
    llvm.return
  }
}

// -----

// A table of a segment that is not there.
module {
  // expected-error @+1 {{expected a symbol for segment, none is named s in the program's tables, exchanges and launches}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {stepc.scratch_bytes = 0 : i64, stepc.exchanges = [], stepc.launches = [],
      stepc.tables = [{kind = "shard_chunks", segment = @s}]} {
    llvm.return
  }
}

// -----

// A launch of a kind that is none.
module {
  // expected-error @+1 {{expected a known kind in the program's tables, exchanges and launches}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {stepc.scratch_bytes = 0 : i64, stepc.exchanges = [], stepc.launches = [{kind = "rocket"}],
      stepc.tables = []} {
    llvm.return
  }
}

// -----

// An exchange that lists the rows of a stage.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad : tensor<?x?xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a] strategy elementwise
  comm.segment @s group @g all
  // expected-error @+1 {{expected consistent tables, exchanges and launches, found that exchange 0}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {comm.arena_bytes = 0 : i64, stepc.scratch_bytes = 0 : i64, stepc.exchanges = [array<i64: 0>],
      stepc.launches = [], stepc.tables = [{kind = "shard_chunks", segment = @s}]} {
    llvm.return
  }
}

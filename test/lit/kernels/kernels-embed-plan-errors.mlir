// RUN: stepc-opt %s --split-input-file --kernels-embed-plan -verify-diagnostics

// expected-error @+1 {{expected one exec.program, found 0}}
module {
}

// -----

// expected-error @+1 {{expected one exec.program, found 2}}
module {
  exec.program arena 0 {
    exec.advance_steps
  }
  exec.program arena 0 {
    exec.advance_steps
  }
}

// -----

// A step that does not count.
module {
  // expected-error @+1 {{'exec.program' op expected a consistent program: expected commands, found none}}
  exec.program arena 0 {
  }
}

// -----

// A kernel of another type: it is called by its address.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad : tensor<?x?xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a]
  // expected-error @+1 {{'llvm.func' op expected a kernel, an llvm.func of type '!llvm.func<void (ptr, i64, i64)>' with a body}}
  llvm.func @k(%a: i64) {
    llvm.return
  }
  exec.program arena 64 {
    exec.dispatch_parameters @k of [@g] [#exec.scalars<offset = 0, columns = 1>]
    exec.advance_steps
  }
}

// -----

// Each edit of a command is an error at the command.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad, %v : tensor<?x?xf32>, tensor<?x1xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a]
  comm.segment @s group @g all
  llvm.func @k(%a: !llvm.ptr, %b: i64, %c: i64) {
    llvm.return
  }
  exec.program arena 128 {
    // expected-error @+1 {{expected a consistent program: command 0 (chunks): expected operands inside of the workspace of 128 bytes, found 64 bytes from byte 128}}
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.workspace<offset = 128, bytes = 64>]
    exec.advance_steps
  }
}

// -----

// A state that the rule does not have.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad, %v : tensor<?x?xf32>, tensor<?x1xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a]
  comm.segment @s group @g all
  llvm.func @k(%a: !llvm.ptr, %b: i64, %c: i64) {
    llvm.return
  }
  exec.program arena 128 {
    // expected-error @+1 {{expected a state of rule 'R', found 'w'}}
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.shards<state, "w">]
    exec.advance_steps
  }
}

// -----

// A copy of elements of another size than the state's.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad, %v : tensor<?x?xf32>, tensor<?x1xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 1>] base [0]>]
  comm.segment @s group @g all
  exec.program arena 128 {
    // expected-error @+1 {{consistent program: command 0 (copy): expected rows elements of 2 bytes, as its table has, found the state's: rows of f32}}
    exec.copy <kind = copy, from = <@s, rows, shards>, to = <@s, rows, shards to blocks, sent>, element_bytes = 2>
      from #exec.shards<state, "v"> to #exec.workspace<offset = 0, bytes = 64>
    exec.advance_steps
  }
}

// -----

// A collective that nobody waits for, told at the last command.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad, %v : tensor<?x?xf32>, tensor<?x1xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 1>] base [0]>]
  comm.segment @s group @g all
  exec.program arena 128 {
    %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
    // expected-error @+1 {{expected a consistent program: expected each collective to be awaited, found that number 0 never is}}
    exec.advance_steps
  }
}

// -----

// The step counts never advance.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [#optim.state<"v", f32, rows, 0.0 : f64, false>] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %v: tensor<?x1xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad, %v : tensor<?x?xf32>, tensor<?x1xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 1>] base [0]>]
  comm.segment @s group @g all
  exec.program arena 128 {
    %t = exec.start exchange [#exec.table<kind = message, from = <@s, full, shards to blocks, sent>, to = <@s, full, shards to blocks, received>, element_bytes = 4>] from <offset = 0, bytes = 64> to <offset = 0, bytes = 64>
    // expected-error @+1 {{expected the last command, and no other, to advance the step counts}}
    exec.await %t
  }
}

// -----

// Scalars of more columns than the workspace holds.
module {
  optim.mesh @world axes ["dp"] sizes [1] ranks [0]
  optim.rule @R hyperparameters [] states [] {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    optim.yield %grad : tensor<?x?xf32>
  }
  optim.route @route rule @R rest patterns [] except [] defaults [] missing_grad error
  optim.parameter @a shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases [] route @route
  optim.group @g rule @R parameters [@a]
  comm.segment @s group @g all
  llvm.func @k(%a: !llvm.ptr, %b: i64, %c: i64) {
    llvm.return
  }
  exec.program arena 128 {
    // expected-error @+1 {{command 0 (chunks): expected scalars that fit in the workspace of}}
    exec.dispatch_chunks @k of [#exec.table<kind = shard_chunks, from = <@s, full, shards>>] [#exec.scalars<offset = 0, columns = 99>]
    exec.advance_steps
  }
}

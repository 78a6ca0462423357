// RUN: stepc-opt %s --split-input-file --kernels-embed-plan -verify-diagnostics

// expected-error @+1 {{expected a step function named stepc_program_step, found none}}
module {
}

// -----

// The tables were lost.
module {
  // expected-error @+1 {{expected the attribute stepc.tables on the step function, found none}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {stepc.exchanges = [], stepc.launches = []} {
    llvm.return
  }
}

// -----

// A table of a segment that is not there.
module {
  // expected-error @+1 {{expected a symbol for segment, none is named s in the program's tables, exchanges and launches}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {stepc.exchanges = [], stepc.launches = [],
      stepc.tables = [{kind = "shard_chunks", segment = @s}]} {
    llvm.return
  }
}

// -----

// A launch of a kind that is none.
module {
  // expected-error @+1 {{expected a known kind in the program's tables, exchanges and launches}}
  llvm.func @stepc_program_step(%context: !llvm.ptr) attributes {stepc.exchanges = [], stepc.launches = [{kind = "rocket"}],
      stepc.tables = []} {
    llvm.return
  }
}

// What a forced strategy may not say.
// RUN: split-file %s %t
// DEFINE: %{force} =
// DEFINE: %{run} = not stepc-opt %t/module.mlir --mlir-print-op-on-diagnostic=false -o /dev/null --optim-assign-strategies=force=%{force} 2>&1 | FileCheck %s --check-prefix

// Local needs whole blocks on every rank.
// REDEFINE: %{force} = b=local
// RUN: %{run} LOCAL
// LOCAL: error: expected a strategy that is legal to force on 'b', found local: placements [S(0)] cut the blocks

// All parameters that it concerns are named in one error, or counted.
// REDEFINE: %{force} = [bc]*=local
// RUN: %{run} ALL --implicit-check-not=error:
// ALL: error: expected a strategy that is legal to force on 'b', 'c1' and 'c2', found local: placements [S(0)] cut the blocks
// REDEFINE: %{force} = b=slabs,c*=local
// RUN: %{run} REASONS --implicit-check-not=error:
// REASONS: error: expected a strategy that is legal to force on 'b', 'c1' and 'c2', found slabs, local
// REASONS: note: slabs for 'b': it rounds otherwise
// REASONS: note: local for 'c1' and 'c2': placements [S(0)] cut the blocks

// What rounds otherwise is for fast numerics.
// REDEFINE: %{force} = b=slabs
// RUN: %{run} EXACT
// EXACT: error: expected a strategy that is legal to force on 'b', found slabs: it rounds otherwise than one rank, which is for fast numerics (--numerics=fast)

// A group is handled in one way.
// REDEFINE: %{force} = c1=gather,c2=owner
// RUN: %{run} CONFLICT
// CONFLICT: error: expected one strategy for the parameters of group c, found 'c1' forced to gather and 'c2' to owner

// Half of a group cannot be forced.
// REDEFINE: %{force} = c1=gather
// RUN: %{run} HALF
// HALF: error: expected one strategy for the parameters of group c, found 'c1' forced to gather and 'c2' to nothing

// A pattern that matches nothing is a typing error.
// REDEFINE: %{force} = layer.*=owner
// RUN: %{run} UNMATCHED
// UNMATCHED: error: expected strategy pattern "layer.*" to match a parameter, found none

// These are the strategies to force.
// REDEFINE: %{force} = b=nowhere
// RUN: %{run} UNKNOWN
// UNKNOWN: error: expected a strategy as PATTERN=local, PATTERN=owner, PATTERN=subgroup-gather, PATTERN=gather, PATTERN=agrs, PATTERN=hierarchical or PATTERN=slabs, found "b=nowhere"

// A strategy that had another name.
// REDEFINE: %{force} = b=gram
// RUN: %{run} RENAMED
// RENAMED: error: expected a strategy as PATTERN=local, {{.*}} found "b=gram", whose strategy is now named slabs

// Elementwise is not chosen; it follows from the rule.
// REDEFINE: %{force} = b=elementwise
// RUN: %{run} ELEMENTWISE
// ELEMENTWISE: error: expected a strategy as PATTERN=local, PATTERN=owner, PATTERN=subgroup-gather, PATTERN=gather, PATTERN=agrs, PATTERN=hierarchical or PATTERN=slabs, found "b=elementwise"

// A strategy comes after the pattern.
// REDEFINE: %{force} = owner
// RUN: %{run} BARE
// BARE: error: expected a strategy as PATTERN=local, PATTERN=owner, PATTERN=subgroup-gather, PATTERN=gather, PATTERN=agrs, PATTERN=hierarchical or PATTERN=slabs, found "owner"

// A pattern that is no glob.
// REDEFINE: %{force} = [b=owner
// RUN: %{run} GLOB
// GLOB: error: expected a pattern, found "[b":

// A rule without matrix operations has nothing to force.
// REDEFINE: %{force} = p=owner
// RUN: %{run} NONE
// NONE: error: expected strategy pattern "p" to match a parameter whose rule has matrix operations, found only parameters that are stepped element by element, where no blocks come together

// Nor has it next to a force that applies; wide patterns that reach others as well are fine.
// REDEFINE: %{force} = p=gather,b=owner
// RUN: %{run} NONE

// Each dead pattern is named.
// REDEFINE: %{force} = p=gather,b=owner,layer.*=owner
// RUN: %{run} EACH
// EACH: error: expected strategy pattern "p" to match a parameter whose rule has matrix operations, found only parameters that are stepped element by element, where no blocks come together
// EACH: error: expected strategy pattern "layer.*" to match a parameter, found none

// Parameters of a group that communicates nothing need not agree; a force that a later one overrides is not dead.
// RUN: stepc-opt %t/module.mlir --optim-assign-strategies=force='b=gather,[bp]=owner,c1*=owner,c2=owner' | FileCheck %s --check-prefix WIDE
// WIDE: optim.group @p rule @Plain parameters [{{[^]]*}}] reason "no operation
// WIDE: optim.group @b {{.*}} strategy #optim.owner
// WIDE: optim.group @d rule @Plain parameters [{{[^]]*}}] reason "no operation

//--- module.mlir
optim.rule @Matrix hyperparameters [] states [] needs_matrix {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %o = optim.orthogonalize %grad coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 {optim.space = #optim.space<matrix>} : tensor<?x?xf32>
  optim.yield %o : tensor<?x?xf32> {optim.writes = [#optim.space<out>]}
}
optim.rule @Plain hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %p = arith.subf %param, %grad {optim.space = #optim.space<in>} : tensor<?x?xf32>
  optim.yield %p : tensor<?x?xf32> {optim.writes = [#optim.space<in>]}
}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.parameter @p shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @b shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c1 shape [4, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c2 shape [4, 8] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @c1x shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.parameter @other shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
optim.group @p rule @Plain parameters [@p]
optim.group @b rule @Matrix parameters [@b]
optim.group @c rule @Matrix parameters [@c1, @c2]
optim.group @d rule @Plain parameters [@c1x, @other]

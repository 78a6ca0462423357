//===- Passes.td - Passes from level 1 (optim) to level 2 (decided) *- tablegen -*-===//
#ifndef STEPC_PASSES_DECIDE_PASSES_TD
#define STEPC_PASSES_DECIDE_PASSES_TD

include "mlir/Pass/PassBase.td"

def DivideParameters : Pass<"optim-divide-parameters", "::mlir::ModuleOp"> {
  let summary = "Bring the blocks and flattened axes of a specification to the parameters that they name";
  let description = [{
    Each parameter that an `optim.divide` matches gets its flattened axes and its parts. They replace those
    that the parameter has (`over` keeps these). It is an error if two match one parameter, if a pattern that
    is not `optional` matches nothing, or if a parameter is no matrix or has no axes to flatten. So it is if
    sizes do not add up to its rows or columns, or if `each` or `split` leave a rest. An `except` pattern that
    matches nothing is a warning. The names of `optim.frozen` count as matches. The operations are erased.

    Remarks (passed) `blocks-overridden`, `axes-overridden`: a parameter whose own blocks or flattened axes do
    not hold.

    ```mlir
    optim.divide patterns ["qkv"] except [] into rows listed [4, 2] repeat 2
    optim.parameter @qkv shape [12, 8] …
    // becomes
    optim.parameter @qkv shape [12, 8] … blocks <rows, [0, 4, 6, 10], [4, 6, 10, 12]> specified aliases []
    ```
  }];
}

def RouteParameters : Pass<"optim-route-parameters", "::mlir::ModuleOp"> {
  let summary = "Give every parameter the one route that claims it";
  let description = [{
    A route claims a parameter if its name or an alias matches (see `optim.route`); `rest` claims what no
    other route does. It is an error if none or two routes claim a parameter, or if a pattern that is not
    `optional` matches nothing. So it is if a rule that needs a matrix gets a parameter that is none, or if a
    `matrix` route meets three or more axes and the manifest declares no batch. An `except` pattern that
    matches nothing is a warning, unless a route has it as `optional`. The names of `optim.frozen` count as
    matches, and these operations are erased: nothing further down knows of parameters that are not stepped.

    Remark (missed) `optional-pattern-unmatched`: a pattern that may match nothing, and does.

    ```mlir
    optim.parameter @w shape [8, 4] … aliases []
    optim.frozen @embed aliases []
    // becomes
    optim.parameter @w shape [8, 4] … aliases [] route @Muon
    ```
  }];
}

def ExpandNamed : Pass<"optim-expand-named", "::mlir::ModuleOp"> {
  let summary = "Write lerp, momentum and decay out in arithmetic";
  let description = [{
    The expansions and their roundings are the ops' meaning. Operations of rules whose results nothing uses
    are erased.

    ```mlir
    %m1 = optim.momentum %m, %g, %mu : tensor<?x?xf32>
    // becomes
    %0 = arith.mulf %mu, %m : tensor<?x?xf32>
    %m1 = arith.addf %0, %g : tensor<?x?xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def CutSpaces : Pass<"optim-cut-spaces", "::mlir::ModuleOp"> {
  let summary = "Label each operation of a rule with the space that it runs in";
  let description = [{
    `optim.orthogonalize`, `optim.reduce` and all that touches a rows, cols or one value need whole blocks
    (matrix). Everything else may run on shards before (in) or after (out). The cut takes the cheapest edges:
    bytes per element of the values that cross, found as a minimum cut. Ties leave work on the shards. What
    `out` needs of `in` is recomputed, so `optim.writes` stores a state in `in` only if `out` does not need
    its old value. Splats and conditions get no label, because they are computed wherever they are used. So
    the operation that a condition decides for counts as a reader of what the condition reads.

    Remark (passed) `spaces-assigned`: the operations of a rule in each space.

    ```mlir
    %c = arith.truncf %u : tensor<?x?xf32> to tensor<?x?xbf16>
    %o = optim.orthogonalize %c …
    // becomes
    %c = arith.truncf %u {optim.space = #optim.space<in>} : tensor<?x?xf32> to tensor<?x?xbf16>
    %o = optim.orthogonalize %c … {optim.space = #optim.space<matrix>}
    ```
  }];
}

def GroupParameters : Pass<"optim-group-parameters", "::mlir::ModuleOp"> {
  let summary = "Collect parameters of equal rule, shape, types, mesh, placements and blocks";
  let description = [{
    Groups are numbered in the order of their first parameters. Parameters that `force` gives different
    strategies stand in different groups. Parameters whose matrices are divided stand in one group per size of
    parts, with all parts of that size. They are not divided if their rule does not see blocks: it is
    elementwise and reads neither rows nor cols nor numel.

    If a rule sees no matrices, each parameter is one matrix with all axes (`joined`), so that neither time
    nor memory grow with its matrices. If the shards of gradient or states stand apart, up to 2^18 matrices
    are kept, so that waves may part them.

    A plan is proven for each group on each rank of its mesh. More than 2^23 of these pairs are an error. So
    are more than 2^20 blocks of a group, or pieces of one parameter in a shard, and more than 2^24 rows of a
    parameter if lists of placements differ and cut columns.

    Remark (passed) `parameters-grouped`: how many parameters and groups.

    ```mlir
    optim.parameter @a … route @Muon
    optim.parameter @b … route @Muon
    // becomes
    optim.group @g0 rule @Muon parameters [@a, @b]
    ```
  }];
  let options = [
    ListOption<"force", "force", "std::string",
               "PATTERN=STRATEGY, the last match holds: as for optim-assign-strategies">,
  ];
}

def AssignStrategies : Pass<"optim-assign-strategies", "::mlir::ModuleOp"> {
  let summary = "Choose each group's strategy";
  let description = [{
    A group without a matrix space gets none: it is elementwise. Otherwise the pass chooses among the legal
    strategies that dialects list (`StrategyListInterface`; docs/strategies.md has those of optim). It takes
    the one whose modelled step is fastest (`StrategyModel.h`): computing on the busiest rank, with owners
    balanced over all groups, and travelling by its hops. Groups of a mesh travel in the same messages, so
    each bears an equal part of the latency. Groups whose blocks are on one rank alone may each be on another
    rank, so each bears its part of the busiest rank's time for all of them. A strategy by which several ranks
    compute a block must be at least 10 % faster than one by which one rank does. So replicas divide large
    matrices and share the results, and compute small ones themselves. The group gets the strategy, its hops
    and its slabs.

    `force` overrides the choice. A forced strategy that is not legal is an error, and so is a pattern that
    matches no parameter, or none whose rule has matrix operations. Elementwise rules ignore it. With
    `optim.max_peers` on the module, a strategy by which a rank exchanges with more others in a hop is not
    legal. Groups that are left without any are one error that says why for each.

    Remarks: `strategy-chosen` (passed) and `strategy-refused` (missed), one per group and strategy, with the
    reason and what a step would take.

    ```mlir
    optim.group @g0 rule @Muon parameters [@a, @b]
    // becomes
    optim.group @g0 rule @Muon parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
        reason "blocks span ranks"
    ```
  }];
  let options = [
    ListOption<"force", "force", "std::string",
               "PATTERN=STRATEGY, the last match holds: a strategy's name for the groups of the "
               "parameters that match">,
  ];
}

def BalanceOwners : Pass<"optim-balance-owners", "::mlir::ModuleOp"> {
  let summary = "Give the blocks of hops that own something their bases";
  let description = [{
    Longest processing time first, over all groups together. Blocks go in decreasing order of modelled time
    (their products, and their way there and back), each to the rank of its mesh with the least load so far.
    The load includes blocks of groups whose ranks are fixed. If hops also replicate, a block goes to the
    ranks that differ along the factors that no hop owns, and loads all of these. Ties go to the rank that
    holds most of the block, then to the lowest rank. If the busiest rank then has 5 % more than the
    bound, a search looks for better owners (`passes/cost/OwnerBalance.h`). It splits the blocks of the
    busiest rank and of others anew. The result is deterministic.

    Remarks: `owners-balanced` (passed) with the mean load, and the least that any owners can have (`bound`),
    in per cent of the most: 100 is proven to be the best. `ranks-without-blocks` (missed).

    ```mlir
    optim.group @g0 rule @Muon parameters [@a, @b] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 2>]>]
        reason "…"
    // becomes
    optim.group @g0 rule @Muon parameters [@a, @b] strategy #optim.owner
        hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>] reason "…"
    ```
  }];
}

def AssignWaves : Pass<"optim-assign-waves", "::mlir::ModuleOp"> {
  let summary = "Divide the blocks into waves: the least workspace that costs no time";
  let description = [{
    More workspace is taken only if it saves time. The pass tries 1, 2, 3, 4, 6, 8, 12, … waves and the number
    of blocks; under the module's `comm.workspace_limit` also each number up to 64. A number of waves counts
    if its modelled workspace, three waves in flight, stays within that limit, or within `target-bytes` if
    there is none. More than 32 waves count only if fewer do not. Among these it takes the least workspace
    whose modelled time is at most 3 % above the best. If nothing stays within a limit, it takes the least
    modelled workspace of all that were tried. If nothing stays within `target-bytes`, which is no limit, it
    takes the least among those with at most twice the least workspace; numbers that take twice the best time
    end the search.

    The model adds gaps between buffers: 15 % to one wave of several groups, 25 % to several waves. It also
    adds the most scratch that a product of a wave may use on any target. So a limit that some number of waves
    would only just keep may be missed. `comm-assign-arena` says exactly whether it holds.

    The model of time (`WavePipeline.cpp`) walks the order of commands that `comm-pipeline-waves` makes, for
    all ranks. Each round of a wave stands beside the round before of the next one. A rank's wave has what its
    stages over the shards read and write, its products, and the launches of each group in it. Once per wave
    and group it has what threads lose at a launch's end. It has messages each way, each with a gap. An
    exchange is under way when its last rank has begun it. On GPUs it travels while ranks compute; on CPUs
    ranks take messages in while they wait. So waves gain if much travels beside much work, are free if each
    has work for all threads, and cost time if blocks are small or peers many.

    The blocks of each owner, in order, are cut where their modelled bytes reach equal parts. A wave without
    blocks gets no number. A group whose shards stand apart has waves even without a matrix space, because
    what moves between them also takes workspace.

    Remarks: `waves-assigned` (passed) with the number, why, and what one wave would take;
    `workspace-above-target` (missed) if no number of waves that was tried is enough. Warnings say that more
    waves are forced than blocks fill, or that several are forced without blocks.

    ```mlir
    optim.group @g0 … hops […] …
    // becomes
    optim.group @g0 … hops […] waves [0, 0, 1, 1] …
    ```
  }];
  let options = [
    Option<"targetBytes", "target-bytes", "int64_t", /*default=*/"0",
           "modelled workspace per rank that one step may use at most where no limit is given and something "
           "stays within it; 0: a twelfth of the device's memory">,
    Option<"waves", "waves", "int64_t", /*default=*/"0", "force this number of waves">,
  ];
}

#endif

//===- Passes.td - Passes from level 1 (optim) to level 2 (decided) *- tablegen -*-===//
#ifndef STEPC_PASSES_DECIDE_PASSES_TD
#define STEPC_PASSES_DECIDE_PASSES_TD

include "mlir/Pass/PassBase.td"

def DivideParameters : Pass<"optim-divide-parameters", "::mlir::ModuleOp"> {
  let summary = "Bring the blocks and flattened axes of a specification to the parameters that they name";
  let description = [{
    Each parameter that an `optim.divide` matches gets the flattened axes and the parts of that operation.
    They replace those that the parameter has, which `over` keeps. Errors are: two operations match one
    parameter; a pattern that is not `optional` matches nothing; a parameter is no matrix or has no axes to
    flatten; sizes do not add up to the rows or columns; `each` or `split` leave a rest. An `except` pattern
    that matches nothing is a warning. A pattern may also match the names of an `optim.frozen`. The
    `optim.divide` are erased.

    Remarks (passed) `blocks-overridden`, `axes-overridden`: the blocks or flattened axes of a parameter were
    replaced.

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
    A route claims a parameter if its name or an alias matches (see `optim.route`). A route with `rest` claims
    the parameters that no other route claims. A route with `where` claims parameters whose blocks have sizes
    for which the condition holds. Errors are: no route or two routes claim a parameter; the condition holds
    for some blocks of a parameter and not for others; a pattern
    that is not `optional` matches nothing; a rule that needs a matrix gets a parameter that is no matrix; a
    `matrix` route matches a parameter of three or more axes without batch axes and `flatten`. An `except`
    pattern that matches nothing is a warning, unless a route has it as `optional`. A pattern may also match
    the names of an `optim.frozen`. These operations are erased: no later pass knows of frozen parameters.

    Then the sizes of a rule (`optim.size`) are computed for each of its parameters, whose blocks must have
    one size. Errors are a size that is no whole number from 1 to 2^20, and a state of sizes of its own with
    more than 8 GiB for a block.

    A matrix with more rows than columns takes the `tall` rule of its route's rule (`optim::ruleOf`). It is an
    error if some blocks of a parameter are tall and others are not. A `tall` rule that no parameter takes is
    erased.

    Remark (missed) `optional-pattern-unmatched`: an `optional` pattern matches nothing.

    ```mlir
    optim.parameter @w shape [8, 4] … aliases []
    optim.frozen @embed aliases []
    // becomes
    optim.parameter @w shape [8, 4] … aliases [] route @Muon
    // and if the rule has optim.size 0 "r" = %half_of_rows
    optim.parameter @w shape [8, 4] … aliases [] route @Muon sizes [4]
    // and if no parameter is tall
    optim.rule @Muon hyperparameters [] states [] tall @Muon.tall {
    // becomes
    optim.rule @Muon hyperparameters [] states [] {
    ```
  }];
}

def ExpandNamed : Pass<"optim-expand-named", "::mlir::ModuleOp"> {
  let summary = "Write lerp, momentum and decay out in arithmetic";
  let description = [{
    The expansions, with their roundings, define what these operations mean. Operations of rules whose results
    are not used are erased.

    ```mlir
    %m1 = optim.momentum %m, %g, %mu : tensor<?x?xf32>
    // becomes
    %0 = arith.mulf %mu, %m : tensor<?x?xf32>
    %m1 = arith.addf %0, %g : tensor<?x?xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ExpandModel : Pass<"optim-expand-model", "::mlir::ModuleOp"> {
  let summary = "Let rules see the gradient and the values that the model computes";
  let description = [{
    The model's reductions get numbers, and so do scalars that meet its tensors (`optim.number`). Each rule
    computes the rest of the model again from these numbers, which cost nothing beside its own work. So the
    gradient that the model makes is stored nowhere. A module without `optim.model` is not changed.

    A parameter named `model` stands for the model: it has the model's hyperparameters and step count, and an
    element on each rank. Its rule and route have the same name, and so does its mesh if no other has it. Its
    group is where ranks add up a number's parts, and no kernel touches its elements.

    Errors are: another parameter, rule or route of this name; a `mean` or `rms` of the whole model beside a
    route with `missing_grad skip`, because its number of elements may differ between steps.

    Remark (passed) `model-expanded`: how many numbers the model has.

    ```mlir
    optim.model hyperparameters [] defaults [] values [] {
    ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64):
      %total = optim.reduce norm %grad : tensor<?x?xf32> to tensor<1x1xf32>
      %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
      %unit = arith.divf %grad, %all : tensor<?x?xf32>
      optim.yield %unit : tensor<?x?xf32>
    }
    // becomes, in each rule
    %n = optim.model_number 0 : f64
    %total = optim.splat %n : tensor<1x1xf32>
    %all = optim.broadcast %total : tensor<1x1xf32> to tensor<?x?xf32>
    %unit = arith.divf %grad, %all : tensor<?x?xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def CutSpaces : Pass<"optim-cut-spaces", "::mlir::ModuleOp"> {
  let summary = "Label each operation of a rule with the space that it runs in";
  let description = [{
    `optim.orthogonalize`, `optim.reduce` and `optim.matmul` need whole blocks (`matrix`). All other
    operations may run on shards before (`in`) or after (`out`). A minimum cut chooses the values that cross,
    by their bytes per element. Among equal cuts, more work stays on the shards. `out` recomputes values of
    `in`, so `optim.writes` stores a state in `in` only if `out` does not need its old value. Splats,
    conditions, broadcasts, widenings and what is computed from values per row, column or block alone get no
    label, because they are computed wherever they are used. So an operation that uses one counts as a reader
    of its operands.

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
    strategies are in different groups. A parameter whose matrices are divided is in one group for each size
    of its parts, with all parts of that size. It is not divided if its rule does not see blocks, that is, if
    the rule is elementwise and reads neither rows nor cols nor numel.

    If a rule does not depend on matrices, each parameter becomes one matrix with all axes (`joined`), so that
    time and memory do not grow with the number of matrices. If gradient or states have placements of their
    own, up to 2^18 matrices are kept, so that they can be divided into waves.

    A plan is proven for each group on each rank of its mesh. More than 2^23 pairs of group and rank are an
    error. More than 2^20 blocks of a group, or 2^20 pieces of one parameter in a shard, are also errors. If
    lists of placements differ and cut columns, more than 2^24 rows of a parameter are an error.

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

def FoldConditions : Pass<"optim-fold-conditions", "::mlir::ModuleOp"> {
  let summary = "Decide what depends on a group's sizes and type alone";
  let description = [{
    All blocks of a group have the same rows, cols and numel. What a rule computes from these and from
    literals alone is a constant of the group. A `select` of tensors by such a condition is one of its values,
    and an `and` or `or` may be its other operand. The group then takes a copy of its rule without these
    operations, and without what only they used: the other matrix operation of a `select`, say. Spaces are
    chosen once more for the copy. Groups for which the same is decided share it. Scalars stay as they are: a
    step computes each of them once per parameter.

    A parameter of f32 holds what an `optim.stochastic` would round, so its group takes a copy of the rule
    that does not round.

    The pass evaluates scalars in f64, as a step does: sums, differences, products, quotients, square roots,
    `abs`, `min`, `max`, comparisons and logic. These have one result on every machine. Other functions are
    left to the step. The proof decides by itself, and holds the copy against the rule that the user wrote.

    Remark (passed) `conditions-folded`: a group, its rule, and how many operations were decided.

    ```mlir
    optim.rule @R … {
      %c = arith.cmpf ogt, %rows, %cols : f64
      … arith.select %c, … (optim.orthogonalize of %a or %b) …
    }
    optim.group @g0 rule @R …
    // becomes, if g0 has more rows than columns
    optim.rule @R.folded … written @R { … optim.orthogonalize %a … }
    optim.group @g0 rule @R.folded …
    ```
  }];
}

def ReduceOnShards : Pass<"optim-reduce-on-shards", "::mlir::ModuleOp"> {
  let summary = "Let reductions run on shards";
  let description = [{
    A reduction over columns makes a value per row, one over rows a value per column. If each rank has all
    elements of each row (column) of which it holds the value, the reduction needs no other rank. Otherwise
    several ranks have parts of the same rows, columns or blocks. Each may reduce its own terms, to exact sums
    or to maxima, and one of them puts these parts together (`optim.cut`). That is done where the parts are
    fewer bytes than the elements that then stay on shards. The group then takes a copy of its rule, of which
    the spaces are chosen once more: these reductions may run on shards, like operations on single elements.
    Groups with the same reductions share a copy. A group that `force` gives a strategy keeps the rule if the
    copy computes nothing of whole blocks, because a strategy says who does.

    Remark (passed) `reduced-on-shards`: a group, its rule, and how many reductions may run on its shards.

    ```mlir
    optim.group @g0 rule @RowAdam …
    // becomes, if g0 has whole rows on each rank
    optim.rule @RowAdam.on_shards … written @RowAdam {
      … optim.reduce mean %s {optim.space = #optim.space<in>} …
    }
    optim.group @g0 rule @RowAdam.on_shards …
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
    A group without a matrix space gets no strategy: it is elementwise. Otherwise the pass chooses among the
    legal strategies that dialects list (`StrategyListInterface`; docs/strategies.md has those of optim). It
    takes the strategy with the least modelled time of a step (`StrategyModel.h`): computation on the busiest
    rank, with owners balanced over all groups, and messages by the hops. Groups of a mesh share messages, so
    each group is charged an equal part of the latency. If each block lies on one rank, other groups may lie
    on other ranks. All groups of this kind together are charged the busiest rank's time, each its share. A
    strategy by which several ranks compute a block must be at least 10 % faster than a strategy by which one
    rank computes it. So replicas divide large matrices and share the results, and each computes all small
    ones. The pass sets the strategy, its hops and its slabs.

    `force` overrides the choice. A forced strategy that is not legal is an error, and so is a pattern that
    matches no parameter, or only parameters whose rules have no matrix operations. Elementwise rules ignore
    `force`. With `optim.max_peers` on the module, a strategy is not legal if a rank exchanges with more other
    ranks in a hop. All groups without a legal strategy together are one error, with the reasons in notes. A
    reduction for which alone a rank moves 64 MiB or more of whole matrices in a step gets a warning.

    Remarks: `strategy-chosen` (passed) and `strategy-refused` (missed), one per group and strategy, with the
    reason and the modelled time of a step.

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

def PlaceStates : Pass<"optim-place-states", "::mlir::ModuleOp"> {
  let summary = "Let states stay with the blocks that their rule computes";
  let description = [{
    A state that only matrix space reads and writes need not travel: it may stay, whole, on the ranks that
    compute its blocks. For each group whose blocks come together by hops, the pass cuts the rule once more
    with such states free to cross. It adds one state after the other, as long as that saves most bytes, and
    tries all together. If no states save bytes, all stay on shards. The group then takes a copy of the rule
    that lists its `block_states`. Groups with the same states share it. With an `optim.state_limit` all
    groups do so if some owners of all blocks then obey it. Otherwise one group after the other does so while
    that holds, and the states of the rest stay on shards.

    Only full states that are no masters qualify, of groups with undivided matrices. Slabs are made where the
    shards are, so their states stay there.

    Remark (passed) `states-placed`: a group, its rule, how many states stay with blocks, and the bytes that
    travel for each element of a block, before and after. Remark (missed) `states-on-shards`: a group whose
    states stay on shards because of the limit.

    ```mlir
    optim.rule @R … { … %n = optim.orthogonalize of what %v scales … }
    optim.group @g0 rule @R … hops [#optim.hop<owned [<0, 1, 2>]>]
    // becomes
    optim.rule @R.with_blocks … written @R block_states ["v"] { … }
    optim.group @g0 rule @R.with_blocks … hops [#optim.hop<owned [<0, 1, 2>]>]
    ```
  }];
}

def BalanceOwners : Pass<"optim-balance-owners", "::mlir::ModuleOp"> {
  let summary = "Choose the bases of blocks, for hops with owned factors";
  let description = [{
    Longest processing time first, over all groups together. Blocks go in decreasing order of modelled time
    (their products, and their way there and back), each to the rank of its mesh with the least load so far.
    The load includes blocks of groups whose ranks are fixed. If hops also replicate, all ranks that differ
    along factors that no hop owns compute a block, and the load of each grows. Ties go to the rank that
    holds most of the block, then to the lowest rank. If the busiest rank's load is then more than 5 % above
    the bound, a search looks for better owners (`passes/cost/OwnerBalance.h`). It splits the blocks of the
    busiest rank and of other ranks anew. The result is deterministic.

    If the module has an `optim.state_limit`, and some rank has more bytes of states with these owners, blocks
    go to other owners. First the pass tries the longest processing time first, among ranks that have room for
    the states of a block that stay with it. If some block finds no rank, the pass takes the owners with the
    most even bytes. If a rank still has more than the limit, that is an error.

    If the module has `optim.kept_owners`, blocks whose states stay with them keep the owners of the previous
    plan, and the other blocks are dealt out after them. The pass takes these owners if they make the busiest
    rank at most 5 % busier than the best owners that it found, and obey the limit. Otherwise states move. The
    pass removes the attribute.

    Remarks: `owners-balanced` (passed) gives the mean load and the bound in per cent of the busiest rank's
    load. No choice of owners makes the busiest rank's load less than the bound, so a `bound` of 100 proves
    that the choice is the best. `ranks-without-blocks` (missed). `owners-kept` (passed) and `owners-changed`
    (missed) say how busy the busiest rank is with the previous owners, in per cent of the best.

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
  let summary = "Divide the blocks into waves: the least workspace that costs hardly any time";
  let description = [{
    More workspace is used only if it saves time. The pass tries 1, 2, 3, 4, 6, 8, 12, … waves and the
    number of blocks; under the module's `comm.workspace_limit` also each number up to 64. A number of
    waves counts if its modelled workspace, with three waves in flight, stays within that limit. Without
    a limit it counts if the workspace stays within `target-bytes`. With a limit, a smaller `target-bytes`
    takes its place: the driver lowers it if the schedule is above the limit. More than 32 waves count only
    if no smaller number counts. Among the numbers that count, the pass takes the least workspace whose
    modelled time is at most 3 % above the best. If no number stays within a limit, the pass takes the
    least modelled workspace of all. If no number stays within `target-bytes`, which is no limit, the
    pass chooses among numbers with at most twice the least workspace. Without a limit, the search ends
    at a number that takes twice the best time.

    The model adds 15 % for gaps between buffers. It also adds the most scratch that a product of a wave may
    use on any target. So the pass may pass over a number of waves that would just keep the limit.
    `comm-assign-arena` checks exactly whether the limit holds.

    The model of time (`WavePipeline.cpp`) walks the order of commands that `comm-pipeline-waves` makes, for
    all ranks. Round r + 1 of a wave runs beside round r of the next wave. The time of a rank in a wave has
    these terms: memory traffic of stages over shards, products, and launches of each group. Threads lose time
    at the end of launches, once per wave and group. Products that work off lists of tiles have the time of
    their lists (passes/cost/ProductLaunches.h), and products of several chains share a launch if the chains
    are side by side. Messages each way have a gap each. An exchange travels
    from the time when its last rank has begun it. On GPUs it travels while ranks compute; on CPUs ranks take
    messages in while they wait. So more waves save time if many bytes travel beside much work. They cost no
    time if each wave has work for all threads, and cost time if blocks are small or peers many.

    The blocks of each owner, in order, are cut where their modelled bytes reach equal shares. Waves without
    blocks are left out of the numbering. A group whose gradient or states have placements of their own has
    waves even without a matrix space, because moves between these shards also take workspace.

    The chains of a wave are computed side by side if that is faster by the model and the workspace allows it.
    Under a limit it may take three quarters of the limit. The module gets the attribute `comm.side_by_side`.
    One launch can then serve products of several chains, and fewer multiprocessors wait at the ends of
    launches. All other figures of a number of waves are then those of chains side by side.

    If a model reads gradients to which several ranks contribute, the step keeps their sums from the model's
    numbers to the rules, beside the workspace of all waves. If nothing that is tried is modelled to be
    within a limit beside them, and without them less workspace is needed, they are reduced for each round of
    numbers and again for the rules, and the module gets the attribute `comm.reduces_again`.

    Remarks: `waves-assigned` (passed) has the number of waves, the reason, and the workspace of one wave;
    `chains-side-by-side` (passed, or missed) has the workspace for that; `gradients-reduced-again` (passed)
    has the bytes of the sums;
    `workspace-above-target` (missed) says that no number of waves that was tried is enough. Warnings say that
    more waves are forced than blocks fill, or that several waves are forced and there are no blocks.

    ```mlir
    optim.group @g0 … hops […] …
    // becomes
    optim.group @g0 … hops […] waves [0, 0, 1, 1] …
    ```
  }];
  let options = [
    Option<"targetBytes", "target-bytes", "int64_t", /*default=*/"0",
           "modelled workspace per rank that one step may use at most if something stays within it; 0: the "
           "limit, or a twelfth of the device's memory without one">,
    Option<"waves", "waves", "int64_t", /*default=*/"0", "force this number of waves">,
  ];
}

#endif

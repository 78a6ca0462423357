//===- OptimOps.td - Operations of the optim dialect -----------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMOPS_TD
#define STEPC_DIALECTS_OPTIM_OPTIMOPS_TD

include "dialects/optim/OptimBatchOps.td"
include "dialects/optim/OptimDivide.td"
include "dialects/optim/OptimModel.td"
include "dialects/optim/OptimTensorOps.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Optim_PlacementArray : TypedArrayAttrBase<Optim_PlacementInterface, "placements, one per mesh axis">;
def Optim_ClusterLevelArray : TypedArrayAttrBase<Optim_ClusterLevel, "levels of a cluster, innermost first">;
def Optim_HopArray : TypedArrayAttrBase<Optim_Hop, "hops">;

//===----------------------------------------------------------------------===//
// Symbols, and named things
//
// Rules, groups and segments are symbols. Meshes, routes, parameters and frozen parameters have names of the
// same form but are no symbols, because these names may clash. A parameter may have any name, and a route
// often has its rule's name. lookupMesh, lookupRoute and lookupParameter find them.
//===----------------------------------------------------------------------===//

def Optim_MeshOp : Optim_Op<"mesh", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "a device mesh: named axes and the job's global ranks";
  let description = [{
    ```mlir
    optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
    ```
    Constraints: as many names as sizes; sizes positive; as many ranks as the product of sizes; ranks
    non-negative and distinct.
  }];
  let arguments = (ins SymbolNameAttr:$label, StrArrayAttr:$axes, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$ranks);
  let assemblyFormat = "$label `axes` $axes `sizes` $sizes `ranks` $ranks attr-dict";
  let extraClassDeclaration = [{
    // The name is not in the attribute sym_name, which would make the operation a symbol of MLIR.
    ::mlir::StringAttr getSymNameAttr() { return getLabelAttr(); }
    ::llvm::StringRef getSymName() { return getLabel(); }
  }];
  let hasVerifier = 1;
}

def Optim_ClusterOp : Optim_Op<"cluster", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "the machines that the plan is chosen for";
  let description = [{
    The target, the manifest and `--cluster` choose the machines. Only the cost model (passes/cost) reads
    them: no result of a step depends on them. All figures are given. The name is that of the profile from
    which some or all figures come. Levels are listed innermost first. Two ranks meet at the first level in
    which both are in one domain.

    ```mlir
    optim.cluster "h100"
      levels [#optim.cluster_level<"nvlink", ranks = 8, latency = 3.0e-06, gap = 1.0e-06,
          bandwidth = 4.5e+11>,
              #optim.cluster_level<"network", latency = 1.0e-05, gap = 1.0e-06, bandwidth = 5.0e+10>]
      device <flops = 9.0e+14, memory = 4.0e+12, capacity = 1.4e+11, launch = 5.0e-06, threads = 132,
          overlaps = true>
    ```
    Constraints: one per module; at least one level; levels of different names. `ranks` of each level is a
    multiple of that of the level before it, at least twice as many. Only the last level may leave out
    `ranks`. The ranks of all meshes are below the `ranks` of the last level.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$profile, Optim_ClusterLevelArray:$levels, Optim_Device:$device);
  let assemblyFormat = "($profile^)? `levels` $levels `device` $device attr-dict";
  let hasVerifier = 1;
}

def Optim_RuleOp : Optim_Op<"rule", [Symbol, IsolatedFromAbove, HasParent<"::mlir::ModuleOp">,
                                     SingleBlockImplicitTerminator<"YieldOp">,
                                     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an optimizer rule on one logical parameter";
  let description = [{
    The body's arguments are, in order: the parameter and its gradient (full, f32), the states (f32, of their
    kinds), the hyperparameters (f64), then `step`, `rows`, `cols`, `numel` (f64). It yields the new parameter
    and the new states. States and parameter are extended to f32 when read, and rounded to their storage type
    when written. With a `master` state the parameter's argument in the body is the master. The master's own
    argument is then unused, and the value yielded for it is ignored.

    ```mlir
    optim.rule @Sgd hyperparameters ["lr"] states [] {
    ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64,
         %step: f64, %rows: f64, %cols: f64, %numel: f64):
      %s = optim.splat %lr : tensor<?x?xf32>
      %d = arith.mulf %s, %grad : tensor<?x?xf32>
      %p = arith.subf %param, %d : tensor<?x?xf32>
      optim.yield %p : tensor<?x?xf32>
    }
    ```
    A rule may be decided in several ways, each for some groups. The copies that these groups then take have
    the rule's body with other spaces, or without the choices that the sizes of their blocks decide. `written`
    names the rule that the user wrote. `tall` names the rule that matrices with more rows than columns take
    in its place: the same rule of the transposed matrix, whose values are stored as transposes.
    `block_states` lists states that only matrix space reads and writes, and that stay with blocks: each
    lies, whole, on the ranks that compute its block.
    Constraints: argument and yield types as above; names distinct, but a metric may have the name of a
    hyperparameter; no operation reads the old value of a metric; initial values finite in their state's
    type; at most one master state, full and f32; no fast-math flags in the body. Tensors have two axes and
    the type of their kind; a constant has one number for all elements. A rule that is written somewhere
    else has the hyperparameters and states that it has there. A `tall` rule has the hyperparameters and the
    states, with rows and columns exchanged in their kinds, and no `tall` itself. Block states are distinct
    states of the rule, full, and no masters. Only operations of matrix space read them and make their new
    values.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$hyperparameters,
                       Optim_StateArray:$states, UnitAttr:$needs_matrix,
                       OptionalAttr<FlatSymbolRefAttr>:$written,
                       OptionalAttr<FlatSymbolRefAttr>:$tall,
                       OptionalAttr<StrArrayAttr>:$block_states);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `hyperparameters` $hyperparameters `states` $states (`needs_matrix` $needs_matrix^)?
    (`written` $written^)? (`tall` $tall^)? (`block_states` $block_states^)? attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    ::mlir::BlockArgument getParameterArgument() { return getBody().getArgument(0); }
    ::mlir::BlockArgument getGradientArgument() { return getBody().getArgument(1); }
    ::mlir::BlockArgument getStateArgument(unsigned i) { return getBody().getArgument(2 + i); }
    unsigned getNumStates() { return getStates().size(); }
    unsigned getNumHyperparameters() { return getHyperparameters().size(); }
    /// The number of the first scalar argument. Hyperparameters come first, then step, rows, cols, numel.
    unsigned getFirstScalarArgument() { return 2 + getNumStates(); }
    StateAttr getState(unsigned i) { return ::llvm::cast<StateAttr>(getStates()[i]); }
    /// True if the body has no MatrixOpInterface and no optim.position, and all states are full. The rule
    /// then treats each element by itself.
    bool isElementwise();
    /// Whether results depend on how elements form blocks: the rule is not elementwise, draws random numbers
    /// for elements, which are counted block by block, reads rows, cols or numel, or is another one for tall
    /// blocks.
    bool seesBlocks();
    /// Whether the rule asks for numbers of rows or columns.
    bool countsLines();
    /// Whether an element's result depends on where it stands: in its block, or among all of its parameter.
    bool countsElements();
    /// The operation that rounds the new parameter by chance. Null if there is none.
    StochasticOp getParameterRounding();
    /// The name of the rule that the user wrote: of this one, or of the one that it is a copy of.
    ::llvm::StringRef getWrittenName() { return getWritten().value_or(getSymName()); }
    /// Whether it is the rule of tall matrices of a wide one.
    bool isTall();
    /// The name by which the user knows it: a rule of tall matrices has that of the wide one.
    ::llvm::StringRef getUserName();
    ::llvm::LogicalResult verifyTall(::mlir::SymbolTableCollection &symbols);
    /// The number of the state whose old value this is, if it is one.
    std::optional<unsigned> findState(::mlir::Value value);
    /// Whether state number `i` stays with blocks.
    bool isBlockState(unsigned i);
    /// Whether some states have other sizes than a parameter's: they stay with blocks.
    bool hasStatesOfOtherSizes();
    /// The number of the block state whose old value this is, if it is one.
    std::optional<unsigned> findBlockState(::mlir::Value value);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Optim_YieldOp : Optim_Op<"yield", [Pure, Terminator, ReturnLike,
                                       ParentOneOf<["RuleOp", "ModelOp", "RouteOp"]>]> {
  let summary = "the new parameter and states of a rule, what a model gives to the rules, or a condition";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

def Optim_RouteOp : Optim_Op<"route", [HasParent<"::mlir::ModuleOp">, IsolatedFromAbove,
                                       DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "which parameters take which rule, with defaults";
  let description = [{
    A route claims a parameter if the parameter's name or an alias matches one of `patterns` (empty: any name)
    and none of `except`. With `matrix` it claims only matrices. A route with `rest` claims the parameters
    that no other route claims. Patterns of both lists that are also in `optional` may match nothing. An
    `except` pattern of any route that equals such a pattern may then also match nothing.

    With `where`, which stands beside `matrix`, a route claims only matrices of certain sizes. The region's
    arguments are `rows`, `cols` and `numel` of a block (f64), and it yields a condition (i1).

    A trainer and a checkpoint refer to a route and its parameter groups by the route's name.
    Defaults are one per hyperparameter; NaN means that the trainer gives the value.

    ```mlir
    optim.route @Muon rule @Muon matrix patterns [] except ["*embed*"] defaults [2.0e-02, 9.5e-01]
      missing_grad error
    optim.route @head rule @AdamW patterns ["lm_head*"] optional ["lm_head*"] except [] defaults [3.0e-04]
      missing_grad error
    optim.route @Shampoo rule @Shampoo matrix patterns [] except [] defaults [1.0e-03] missing_grad error
    where {
    ^bb0(%rows: f64, %cols: f64, %numel: f64):
      %most = arith.constant 8.192000e+03 : f64
      %small = arith.cmpf ole, %rows, %most : f64
      optim.yield %small : i1
    }
    ```
    Constraints: no other route has the name; the rule exists; as many defaults as hyperparameters; patterns
    are well-formed (`dialects/optim/NamePattern.h`); `rest` has no patterns; each optional pattern is also in
    `patterns` or `except`; `where` needs `matrix`, and has the arguments and the yielded value as above.
  }];
  let arguments = (ins SymbolNameAttr:$label, FlatSymbolRefAttr:$rule, UnitAttr:$matrix, UnitAttr:$rest,
                       StrArrayAttr:$patterns, OptionalAttr<StrArrayAttr>:$optional, StrArrayAttr:$except,
                       DenseF64ArrayAttr:$defaults,
                       Optim_MissingGrad:$missing_grad);
  let regions = (region MaxSizedRegion<1>:$where);
  let assemblyFormat = [{
    $label `rule` $rule (`matrix` $matrix^)? (`rest` $rest^)? `patterns` $patterns (`optional` $optional^)?
    `except` $except `defaults` custom<Defaults>($defaults)
    `missing_grad` custom<Word>($missing_grad) (`where` $where^)? attr-dict
  }];
  let extraClassDeclaration = [{
    // The name is not in the attribute sym_name, which would make the operation a symbol of MLIR.
    ::mlir::StringAttr getSymNameAttr() { return getLabelAttr(); }
    ::llvm::StringRef getSymName() { return getLabel(); }
    /// The condition that `where` yields. Null without `where`.
    ::mlir::Value getCondition() {
      return getWhere().empty() ? ::mlir::Value() : getWhere().front().getTerminator()->getOperand(0);
    }
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Optim_ParameterOp : Optim_Op<"parameter", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "a parameter of the model: shape, types and where it lives";
  let description = [{
    `route` is set by `optim-route-parameters`, and so are `sizes`, the values of the rule's `optim.size`.

    ```mlir
    optim.parameter @"layers.0.weight" shape [64, 32] batch 0 type bf16 gradient f32
      mesh @world placements [#optim.shard<0>, #optim.replicate] aliases []
    optim.parameter @bias shape [64] batch 0 type bf16 gradient f32 mesh @world
      placements [#optim.replicate, #optim.replicate] state_placements [#optim.shard<0>, #optim.replicate]
          aliases []
    ```
    Gradient and states have the parameter's placements, unless they have placements of their own. `blocks`
    divides each matrix into parts. A rule sees each part as a matrix of its own, wherever the shards end.
    `specified` marks blocks that an `optim.divide` gave, and `over` keeps the blocks that these replaced.
    ```mlir
    optim.parameter @qkv shape [60, 32] batch 0 type f32 gradient f32 mesh @world
      placements [#optim.shard<0>, #optim.replicate] blocks <rows, [0, 40], [40, 50], [50, 60]> aliases []
    // one matrix of 64 × 144
    optim.parameter @conv shape [64, 16, 3, 3] batch 0 flatten 1 type f32 gradient f32 mesh @world
      placements [#optim.shard<1>, #optim.replicate] aliases []
    optim.parameter @gate_up shape [60, 32] batch 0 type f32 gradient f32 mesh @world
      placements [#optim.shard<0>, #optim.replicate] blocks <rows, [0, 30], [30, 60]> specified
          over <rows, [0, 20], [20, 60]> aliases []
    ```
    `flatten` makes three or more axes after the batch axes a matrix: the axes before number `flatten` are the
    rows, the others the columns. Behind `flatten`, `specified` also says that an `optim.divide` gave it, and
    `over` keeps the number that it replaced.
    Constraints: the mesh exists; sizes of 1 or more, and at most 2^40 elements; one placement per mesh axis,
    each legal; placements of gradient and states, if given, differ from the parameter's. `batch` is 0 or
    leaves two axes; with `flatten` it leaves three or more, some for the rows and some for the columns.
    `blocks` divides matrices, and each of their rows or columns is in one part. `specified` needs blocks or a
    `flatten` before it, and `over` needs `specified`.
  }];
  let arguments = (ins SymbolNameAttr:$label, DenseI64ArrayAttr:$shape, I64Attr:$batch,
                       OptionalAttr<I64Attr>:$flatten, UnitAttr:$flatten_specified,
                       OptionalAttr<I64Attr>:$flatten_overridden, TypeAttr:$type, TypeAttr:$gradient,
                       FlatSymbolRefAttr:$mesh,
                       Optim_PlacementArray:$placements,
                       OptionalAttr<Optim_PlacementArray>:$gradient_placements,
                       OptionalAttr<Optim_PlacementArray>:$state_placements,
                       OptionalAttr<Optim_Blocks>:$blocks, UnitAttr:$specified,
                       OptionalAttr<Optim_Blocks>:$overridden, StrArrayAttr:$aliases,
                       OptionalAttr<FlatSymbolRefAttr>:$route,
                       OptionalAttr<DenseI64ArrayAttr>:$sizes);
  let assemblyFormat = [{
    $label `shape` $shape `batch` $batch (`flatten` $flatten^)? (`specified` $flatten_specified^)?
    (`over` $flatten_overridden^)? `type` $type `gradient` $gradient `mesh` $mesh
    `placements` $placements (`gradient_placements` $gradient_placements^)?
    (`state_placements` $state_placements^)? (`blocks` $blocks^)? (`specified` $specified^)?
    (`over` $overridden^)? `aliases` $aliases (`route` $route^)? (`sizes` $sizes^)? attr-dict
  }];
  let extraClassDeclaration = [{
    // The name is not in the attribute sym_name, which would make the operation a symbol of MLIR.
    ::mlir::StringAttr getSymNameAttr() { return getLabelAttr(); }
    ::llvm::StringRef getSymName() { return getLabel(); }
    /// The placements of the parameter, its gradient or its states.
    ::mlir::ArrayAttr getPlacementsOf(plan::ShardsKind kind);
    /// The plan's form of a group with this parameter alone: shape, types, placements and division.
    plan::Group toPlan();
    /// Whether gradient or states have placements that differ from the parameter's.
    bool standsApart() { return getGradientPlacements() || getStatePlacements(); }
    /// Whether the parameter has two axes, batch axes before two others, or flattened axes.
    bool isMatrix() { return getFlatten() || getBatch() > 0 || getShape().size() == 2; }
    /// The number of the parameter's matrices, and the rows and columns of each.
    plan::View getMatrix() {
      return plan::matrixView(getShape().vec(), getBatch(), getFlatten().value_or(0));
    }
  }];
  let hasVerifier = 1;
}

def Optim_FrozenOp : Optim_Op<"frozen", [HasParent<"::mlir::ModuleOp">]> {
  let summary = "a parameter of the model that no rule steps: its names";
  let description = [{
    Level 1 only. No route claims a frozen parameter, but a pattern that matches one is not an unused pattern.
    `optim-route-parameters` is the last pass that reads these operations, and erases them.

    ```mlir
    optim.frozen @"embed.weight" aliases ["lm_head.weight"]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$label, StrArrayAttr:$aliases);
  let assemblyFormat = "$label `aliases` $aliases attr-dict";
  let extraClassDeclaration = [{
    // The name is not in the attribute sym_name, which would make the operation a symbol of MLIR.
    ::mlir::StringAttr getSymNameAttr() { return getLabelAttr(); }
    ::llvm::StringRef getSymName() { return getLabel(); }
  }];
}

def Optim_GroupOp : Optim_Op<"group", [Symbol, HasParent<"::mlir::ModuleOp">,
                                       DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "parameters of equal rule, shape, types, mesh and placements, and what was decided for them";
  let description = [{
    Level 2. `hops` say on which ranks blocks are computed, and how blocks come there. Later passes read the
    hops, and not `strategy`, from which `optim-assign-strategies` takes them. `optim-balance-owners` sets the
    bases of hops (one per block, parameters in order). `optim-assign-waves` sets `waves`: the wave of each
    block. `reason` says why the strategy was chosen. With `slabs`, ranks compute the slabs that their shards
    hold, and the list of hops is empty. A group without `hops` computes no blocks: its rule is elementwise.
    `reduced` has the placements in which contributions to a partial gradient are added up. `parts` lists the
    parts of divided parameters that are the group's blocks. The parts of the first matrix of the first
    parameter come first. `joined` says that the rule does not depend on matrices: each parameter is one
    block, whose columns begin with axis `joined`.

    ```mlir
    optim.group @g0 rule @Muon parameters [@a, @b] strategy #optim.owner
        hops [#optim.hop<owned [<0, 1, 2>] base [0, 1]>]
      waves [0, 0] reason "sharded rows"
    ```
    Constraints: the rule and the parameters exist and agree; hops exactly with a strategy; the factors of
    hops divide the mesh's axes and do not overlap. A hop has no bases, or as many as blocks; a base is a
    position in the mesh. There are as many waves as blocks, each between 0 and 2^20 − 1. A group
    without hops has no waves if parameter, gradient and states have equal placements. All parameters
    are divided as the first parameter is. `parts` are in order and of equal size; they are given if the
    parameters are divided and the rule sees blocks. Slabs need an empty list of hops, and are as the
    shards cut the blocks. `joined` is an axis from 1 on, without strategy and parts, for a rule whose
    states are all shaped like the parameter. `reduced` has legal placements, exactly if the gradient is
    partial. A rule with block states needs a list of hops that is not empty, and matrices that are not
    divided.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$rule, ArrayAttr:$parameters,
                       OptionalAttr<DenseI64ArrayAttr>:$parts, OptionalAttr<I64Attr>:$joined,
                       OptionalAttr<Optim_PlacementArray>:$reduced,
                       OptionalAttr<Optim_StrategyInterface>:$strategy,
                       OptionalAttr<Optim_HopArray>:$hops, OptionalAttr<Optim_SlabShape>:$slabs,
                       OptionalAttr<DenseI64ArrayAttr>:$waves, OptionalAttr<StrAttr>:$reason);
  let assemblyFormat = [{
    $sym_name `rule` $rule `parameters` $parameters (`parts` $parts^)? (`joined` $joined^)?
    (`reduced` $reduced^)? (`strategy` $strategy^)? (`hops` $hops^)? (`slabs` $slabs^)? (`waves` $waves^)?
    (`reason` $reason^)? attr-dict
  }];
  let extraClassDeclaration = [{
    /// The first parameter. Shape, types, mesh and placements of all parameters are equal to its own.
    ParameterOp getExemplar();
    /// Whether its parameter stands for the model (`optim-expand-model`).
    bool isOfModel();
    /// The plan's form of the first parameter, with the group's parts, joined axis, reduced placements and
    /// slabs. It has no hops.
    plan::Group toPlan();
    int64_t getBlocksPerParameter();
    int64_t getRows();
    int64_t getCols();
    /// The hops in the plan's form; empty if there are none.
    std::vector<plan::Hop> getPlanHops();
    void setPlanHops(::llvm::ArrayRef<plan::Hop> hops);
    /// Whether a hop has owned factors but no bases, although the group has blocks.
    bool lacksBases();
    ::llvm::LogicalResult verifyParts(ParameterOp exemplar);
    ::llvm::LogicalResult verifyReduced(ParameterOp exemplar);
    ::llvm::LogicalResult verifySlabs(ParameterOp exemplar, RuleOp rule);
    ::llvm::LogicalResult verifyHops(ParameterOp exemplar, int64_t blocks);
    ::llvm::LogicalResult verifyWaves(ParameterOp exemplar, int64_t blocks);
  }];
  let hasVerifier = 1;
}

#endif

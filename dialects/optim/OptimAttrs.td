//===- OptimAttrs.td - Placements, states, hops, strategies ----*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_OPTIMATTRS_TD
#define STEPC_DIALECTS_OPTIM_OPTIMATTRS_TD

include "dialects/optim/OptimBase.td"
include "dialects/optim/OptimEnums.td"
include "dialects/optim/OptimInterfaces.td"

class Optim_Attr<string name, string mnemonicName, list<Trait> traits = []>
    : AttrDef<Optim_Dialect, name, traits> {
  let mnemonic = mnemonicName;
}

def Optim_SpaceAttr : EnumAttr<Optim_Dialect, Optim_Space, "space"> {
  let assemblyFormat = "`<` $value `>`";
}

class Optim_Placement<string name, string mnemonicName>
    : Optim_Attr<name, mnemonicName,
        [DeclareAttrInterfaceMethods<Optim_PlacementInterface>]>;

def Optim_Kind : Optim_Attr<"Kind", "kind"> {
  let summary = "the kind of a value, for kinds that the sizes in a tensor type do not determine";
  let description = [{
    The encoding of a tensor in which an axis has neither the block's extent along this axis nor extent 1:
    ```mlir
    tensor<?x?xf32, #optim.kind<gram>>       // n × n, with n the smaller of rows and columns
    tensor<?x8xf32, #optim.kind<[cols, 8]>>  // as many rows as the block has columns
    ```
    Constraints: a kind that no state can have. The sizes in the type determine all other kinds.
  }];
  let parameters = (ins "::stepc::plan::ValueKind":$value);
  let assemblyFormat = "`<` $value `>`";
  let genVerifyDecl = 1;
}

def Optim_Replicate : Optim_Placement<"Replicate", "replicate"> {
  let summary = "every rank along the mesh axis holds the same elements (`R`)";
  let assemblyFormat = "";
}

def Optim_Shard : Optim_Placement<"Shard", "shard"> {
  let summary = "a tensor axis is split as torch.chunk does (`S(d)`)";
  let parameters = (ins "int64_t":$dim);
  let assemblyFormat = "`<` $dim `>`";
}

def Optim_StridedShard : Optim_Placement<"StridedShard", "strided_shard"> {
  let summary = "a tensor axis is split after later mesh axes (`_S(d, sf)`)";
  let parameters = (ins "int64_t":$dim, "int64_t":$factor);
  let assemblyFormat = "`<` $dim `,` $factor `>`";
}

def Optim_InterleavedShard : Optim_Placement<"InterleavedShard", "interleaved_shard"> {
  let summary = "equal stripes of what earlier mesh axes left, each stripe split (`IS(d, stripes)`)";
  let parameters = (ins "int64_t":$dim, "int64_t":$stripes);
  let assemblyFormat = "`<` $dim `,` $stripes `>`";
}

def Optim_Owned : Optim_Placement<"Owned", "owned"> {
  let summary = "the ranks at one coordinate of the mesh axis have it, all others nothing (`owned(r)`)";
  let parameters = (ins "int64_t":$owner);
  let assemblyFormat = "`<` $owner `>`";
}

def Optim_Flat : Optim_Placement<"Flat", "flat"> {
  let summary = "a range of the elements of the shard that all other mesh axes leave (`flat(cuts)`)";
  let description = [{
    The elements of the shard are numbered row by row. The first flat placement in a list may have `cuts`:
    where the range of each rank along all flat axes begins, and where the last range ends. Without `cuts` the
    ranges are equal, as torch.chunk cuts. A shard with fewer elements ends the ranges early.
  }];
  let parameters = (ins OptionalArrayRefParameter<"int64_t">:$cuts);
  let assemblyFormat = "(`<` $cuts^ `>`)?";
}

def Optim_PartialSum : Optim_Placement<"PartialSum", "partial_sum"> {
  let summary = "of a gradient: each rank along the mesh axis has a contribution to it (`P(sum)`)";
  let assemblyFormat = "";
}

def Optim_PartialAverage : Optim_Placement<"PartialAverage", "partial_average"> {
  let summary = "as `partial_sum`, but the sum of contributions is divided by the axis's size (`P(avg)`)";
  let assemblyFormat = "";
}

def Optim_Blocks : Optim_Attr<"Blocks", "blocks"> {
  let summary = "how each matrix of a parameter is divided into parts, of which each is a block of its own";
  let description = [{
    A part is a list of runs of rows or columns: the begin and the end of each run. Here the first two rows
    and the last row of a matrix of seven rows are one block:
    ```mlir
    #optim.blocks<rows, [0, 2, 6, 7], [2, 5], [5, 6]>
    ```
    Constraints: an end for each begin. `optim.parameter` checks that each row (column) is in one part.
  }];
  let parameters = (ins "::stepc::plan::Division::Axis":$axis,
                        ArrayRefParameter<"::mlir::DenseI64ArrayAttr">:$parts);
  let builders = [AttrBuilder<(ins "const ::stepc::plan::Division &":$division)>];
  let assemblyFormat = "`<` $axis `,` $parts `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    plan::Division toPlan() const;
  }];
}

def Optim_State : Optim_Attr<"State", "state"> {
  let summary = "a state of a rule: name, storage type, shape kind, initial value";
  let description = [{`master` marks the full-precision copy of a low-precision parameter; it
    does not exist for parameters that are f32. `metric` marks a number that rules write and do not read.
    It lies in memory of the library, from which the trainer reads it. `start` names what a state
    starts at if that is no number: the body takes it in the place of the old value if `step` is 1, so nothing
    reads what the state's memory has before.
    `input` marks what the trainer gives for each step. It lies as a state of its kind does, but a step only
    reads it, and it is never saved. Its initial value is the default of what is not given, NaN if it must be.
    ```mlir
    #optim.state<"m", bf16, full, 0.0 : f64, false>
    #optim.state<"z", f32, full, 0.0 : f64, false start = param>
    #optim.state<"update", f32, one, 0.0 : f64, false, metric = true>
    #optim.state<"logits", f32, one, 1.0 : f64, false input = true>
    ```
    Constraints: a metric is an f32 of kind one, and no master; a state that starts at `param` is full, one
    that starts at no number is a matrix, and neither is a master; an input is full, rows, cols or one, starts
    at a number, is neither master nor metric, and the rule yields it as it is.}];
  let parameters = (ins "::mlir::StringAttr":$name, "::mlir::Type":$type,
                        "::stepc::plan::ValueKind":$kind, "::mlir::FloatAttr":$init,
                        "bool":$master,
                        DefaultValuedParameter<"::stepc::plan::Initial",
                                               "::stepc::plan::Initial::Number">:$start,
                        DefaultValuedParameter<"bool", "false">:$metric,
                        DefaultValuedParameter<"bool", "false">:$input);
  let assemblyFormat = [{
    `<` $name `,` $type `,` $kind `,` $init `,` $master (`start` `=` $start^)?
    (`input` `=` $input^)? (`,` `metric` `=` $metric^)? `>`
  }];
  let genVerifyDecl = 1;
}

def Optim_Hop : Optim_Attr<"Hop", "hop"> {
  let summary = "one step on the way from shards to whole blocks";
  let description = [{
    A hop brings together the pieces of ranks that differ along its factors. A factor `<axis, stride, size>`
    is part of an axis of the mesh: `size` ranks that are `stride` apart along this axis. The base of a block
    is a position in the mesh. Along an owned factor a block goes to the coordinate of its base. Along a
    replicated factor it goes to all coordinates.

    ```mlir
    #optim.hop<replicated [<0, 1, 2>, <1, 1, 4>]>         // in a mesh of 2 x 4: along both axes
    #optim.hop<owned [<1, 2, 2>]>                         // halves of the second axis; bases are not decided
    #optim.hop<owned [<0, 1, 2>, <1, 1, 4>] base [0, 5]>  // block 0 to position 0, block 1 to position 5
    ```
    Constraints: no base without owned factors. (Operations that use the hop check that the factors divide
    the mesh's axes.)
  }];
  let parameters = (ins OptionalArrayRefParameter<"::stepc::plan::Factor">:$owned,
                        OptionalArrayRefParameter<"::stepc::plan::Factor">:$replicated,
                        OptionalArrayRefParameter<"int64_t">:$base);
  let assemblyFormat = [{
    `<` custom<Factors>($owned, $replicated) (` ` `base` ` ` `[` $base^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static HopAttr get(::mlir::MLIRContext *context, const plan::Hop &hop);
    plan::Hop toPlan() const;
  }];
}

def Optim_SlabShape : Optim_Attr<"SlabShape", "slab_shape"> {
  let summary = "blocks are computed as slabs, on the ranks whose shards hold the slabs";
  let description = [{
    A rank along the factors that has any rows (columns) of a block computes with these, its slab. In memory
    all slabs are as long as the longest slab: a shorter slab has zeros behind its end. A value that needs all
    slabs of a block, for example a Gram matrix, is added up over the ranks of the slabs.

    ```mlir
    // along the first axis, each rank has two or three rows of a block, or none
    #optim.slab_shape<rows, [<0, 1, 4>], 2 to 3>
    ```
    (Operations that use the attribute check that the shards are such slabs.)
  }];
  let parameters = (ins "::stepc::plan::Division::Axis":$axis,
                        ArrayRefParameter<"::stepc::plan::Factor">:$factors,
                        "int64_t":$shortest, "int64_t":$longest);
  let assemblyFormat = "`<` $axis `,` `[` $factors `]` `,` $shortest `to` $longest `>`";
  let extraClassDeclaration = [{
    static SlabShapeAttr get(::mlir::MLIRContext *context, const plan::Slabs &slabs);
    plan::Slabs toPlan() const;
  }];
}

// A number that IR text writes as the value of an f64: 4.500000e+11.
def Optim_Figure : APFloatParameter<""> {
  let parser = "::stepc::optim::parseFigure($_parser)";
  let printer = "$_printer.printFloat($_self)";
}

def Optim_ClusterLevel : Optim_Attr<"ClusterLevel", "cluster_level"> {
  let summary = "links of one kind, and how many ranks a domain of them has";
  let description = [{
    `latency` is that of a message, in seconds. `gap` are the seconds that each further message at the same
    time adds. `bandwidth` is that of one rank, one way, in bytes per second. Global ranks r with equal r /
    `ranks` share a domain. Without `ranks` all global ranks share one domain.

    ```mlir
    #optim.cluster_level<"nvlink", ranks = 8, latency = 3.0e-06, gap = 1.0e-06, bandwidth = 4.5e+11>
    ```
    Constraints: at least one rank; a gap of at least 0, a latency of at least the gap, bandwidth above 0; all
    finite.
  }];
  let parameters = (ins StringRefParameter<>:$name,
                        DefaultValuedParameter<"int64_t", "ClusterLevelAttr::kAll">:$ranks,
                        Optim_Figure:$latency, Optim_Figure:$gap, Optim_Figure:$bandwidth);
  let assemblyFormat = "`<` $name `,` struct($ranks, $latency, $gap, $bandwidth) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  }];
}

def Optim_Device : Optim_Attr<"Device", "device"> {
  let summary = "what computes at one rank";
  let description = [{
    `flops` are floating-point operations per second of all threads together. `memory` are bytes per second
    between threads and memory, `capacity` bytes of memory. `launch` are seconds to start all threads and to
    wait for them, `threads` the number of threads that share a launch. With `overlaps`, messages travel while
    the device computes. `products` says which kernels the target has for products: `chain`, `tensorcore` or
    `warpgroup`. Products then have the rates of these kernels, and `flops` is the rate of a vendor's library.
    With `stated`, the default, `flops` is also the rate of products.

    ```mlir
    #optim.device<flops = 9.0e+14, memory = 4.0e+12, capacity = 1.4e+11, launch = 5.0e-06, threads = 132,
        overlaps = true, products = tensorcore>
    ```
    Constraints: finite; launch at least 0, threads at least 1, all others above 0.
  }];
  let parameters = (ins Optim_Figure:$flops, Optim_Figure:$memory, Optim_Figure:$capacity,
                        Optim_Figure:$launch,
                        "int64_t":$threads, DefaultValuedParameter<"bool", "false">:$overlaps,
                        DefaultValuedParameter<"::stepc::plan::ProductKernel",
                                               "::stepc::plan::ProductKernel::Stated">:$products);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

class Optim_Strategy<string name, string mnemonicName, string userName = mnemonicName,
                     list<string> more = []>
    : Optim_Attr<name, mnemonicName, [DeclareAttrInterfaceMethods<Optim_StrategyInterface, more>]> {
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kName = "}] # userName # [{";
  }];
}

include "dialects/optim/strategies/Local.td"
include "dialects/optim/strategies/Owner.td"
include "dialects/optim/strategies/Gather.td"
include "dialects/optim/strategies/SubgroupGather.td"
include "dialects/optim/strategies/Agrs.td"
include "dialects/optim/strategies/Hierarchical.td"
include "dialects/optim/strategies/Slabs.td"

#endif

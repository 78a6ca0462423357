// RUN: stepc-opt %s -split-input-file --optim-divide-parameters | FileCheck %s --implicit-check-not=optim.divide
// RUN: stepc-opt %s -split-input-file --optim-divide-parameters --remark-policy=all --remarks-filter=optim-divide-parameters -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Of parameters with blocks of their own it is told that others hold.
// REMARK: remark: [Passed] blocks-overridden | Category:optim-divide-parameters | Reason="the specification's hold instead of the manifest's", blocks=2, parameter=both

// REMARK: remark: [Passed] axes-overridden | Category:optim-divide-parameters | Reason="the specification's hold instead of the manifest's", flatten=2, parameter=other

// Sizes that follow one another, in every stretch; blocks of one size; so many of equal size; along either axis.
// CHECK-LABEL: @sizes
// CHECK: optim.parameter @qkv {{.*}} blocks <rows, [0, 4, 8, 12], [4, 6, 12, 14], [6, 8, 14, 16]> specified aliases
// CHECK: optim.parameter @heads {{.*}} blocks <rows, [0, 4], [4, 8], [8, 12]> specified aliases
// CHECK: optim.parameter @gate_up {{.*}} blocks <columns, [0, 3], [3, 6]> specified aliases
// CHECK: optim.parameter @interleaved {{.*}} blocks <rows, [0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]> specified aliases
// Each matrix of a stack is divided.
// CHECK: optim.parameter @experts {{.*}} blocks <rows, [0, 2], [2, 4]> specified aliases
module @sizes {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.divide patterns ["qkv"] except [] into rows listed [4, 2, 2] repeat 2
optim.divide patterns ["heads"] except [] into rows each [4] repeat 1
optim.divide patterns ["gate*"] except [] into columns split [2] repeat 1
optim.divide patterns ["interleaved"] except [] into rows each [1] repeat 3
optim.divide patterns ["experts"] except [] into rows split [2] repeat 1
optim.parameter @qkv shape [16, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @heads shape [12, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @gate_up shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @interleaved shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @experts shape [3, 4, 6] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

// -----

// The specification's hold, and the parameter's own are kept beside them; what nothing names keeps its own.
// CHECK-LABEL: @over
// CHECK: optim.parameter @both {{.*}} blocks <rows, [0, 2], [2, 4]> specified over <rows, [0, 1], [1, 4]> aliases
// CHECK: optim.parameter @own {{.*}} blocks <rows, [0, 1], [1, 4]> aliases
module @over {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.divide patterns ["both"] except [] into rows split [2] repeat 1
optim.parameter @both shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 1], [1, 4]> aliases []
optim.parameter @own shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 1], [1, 4]> aliases []
}

// -----

// Aliases match; what is excepted does not; a frozen parameter is a match, and so is an optional pattern without one.
// CHECK-LABEL: @names
// CHECK: optim.parameter @head {{.*}} blocks <rows, [0, 2], [2, 4]> specified aliases ["tied"]
// CHECK: optim.parameter @a.bias shape [4] {{.*}} placements [#optim.replicate] aliases []
// CHECK: optim.frozen @frozen
module @names {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.divide patterns ["tied", "a.*", "frozen"] except ["*.bias"] into rows split [2] repeat 1
optim.divide patterns ["none"] optional ["none"] except [] into rows split [2] repeat 1
optim.parameter @head shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases ["tied"]
optim.parameter @a.bias shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.frozen @frozen aliases []
}

// -----

// Axes that are flattened by a specification, with and without blocks of what is a matrix then.
// CHECK-LABEL: @flattened
// CHECK: optim.parameter @conv shape [4, 3, 2, 2] batch 0 flatten 1 specified type {{.*}} placements [#optim.replicate] aliases
// CHECK: optim.parameter @grouped shape [4, 3, 2, 2] batch 0 flatten 1 specified type {{.*}} blocks <rows, [0, 2], [2, 4]> specified aliases
// CHECK: optim.parameter @stack shape [2, 4, 3, 2] batch 1 flatten 2 specified over 3 type {{.*}} placements [#optim.replicate] aliases
// CHECK: optim.parameter @other shape [4, 1, 2] batch 0 flatten 2 specified over 1 type {{.*}} blocks <columns, [0, 1], [1, 2]> aliases
// CHECK: optim.parameter @same shape [4, 3, 2] batch 0 flatten 2 specified type
module @flattened {
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
optim.divide patterns ["conv"] except [] flatten 1
optim.divide patterns ["grouped"] except [] flatten 1 into rows split [2] repeat 1
optim.divide patterns ["stack", "other", "same"] except [] flatten 2
optim.parameter @conv shape [4, 3, 2, 2] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @grouped shape [4, 3, 2, 2] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @stack shape [2, 4, 3, 2] batch 1 flatten 3 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
optim.parameter @other shape [4, 1, 2] batch 0 flatten 1 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <columns, [0, 1], [1, 2]> aliases []
optim.parameter @same shape [4, 3, 2] batch 0 flatten 2 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
}

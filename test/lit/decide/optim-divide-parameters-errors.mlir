// RUN: stepc-opt %s -split-input-file -verify-diagnostics --optim-divide-parameters

// A pattern that matches nothing is misspelt.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected pattern "*.qvk" of blocks to match a parameter, found none}}
// expected-note @below {{patterns followed by 'if present', or given with --if-present, may match nothing}}
optim.divide patterns ["*.qvk"] except [] into rows split [3] repeat 1
optim.parameter @a.qkv shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Likely so is an except pattern.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-warning @below {{except pattern "*.bais" of blocks matches no parameter}}
optim.divide patterns ["*.qkv"] except ["*.bais"] into rows split [3] repeat 1
optim.parameter @a.qkv shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Two statements for one parameter; both are pointed at.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-note @below {{this one matches it}}
optim.divide patterns ["a*"] except [] into rows split [3] repeat 1
// expected-note @below {{this one matches it}}
optim.divide patterns ["*qkv"] except [] into rows each [2] repeat 1
// expected-error @below {{expected blocks from one statement for parameter 'a.qkv' of shape [6, 4], found 2}}
optim.parameter @a.qkv shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A vector has no rows to divide, and three axes that nothing declares are no stack.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected a matrix, or a stack of matrices with declared batch axes, for parameter 'a.bias' of shape [6]}}
// expected-error @below {{expected a matrix, or a stack of matrices with declared batch axes, for parameter 'a.conv' of shape [6, 4, 3]}}
// expected-note @below {{a parameter that is not divided is left out by 'except', and 'flatten' makes a matrix of more axes}}
optim.divide patterns ["a.*"] except [] into rows split [3] repeat 1
// expected-note @below {{the parameter is here}}
optim.parameter @a.bias shape [6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-note @below {{the parameter is here}}
optim.parameter @a.conv shape [6, 4, 3] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Sizes do not add up: too little, too much, of each stretch.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected sizes that add up to 6 rows, found 5 for parameter 'w' of shape [6, 4]}}
optim.divide patterns ["w"] except [] into rows listed [3, 2] repeat 1
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected sizes that add up to 2 columns in each stretch, found more for parameter 'w' of shape [6, 4]}}
optim.divide patterns ["w"] except [] into columns listed [1, 9223372036854775807] repeat 2
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Blocks of one size leave a rest.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected blocks of 6 rows with 4 each, found a rest of 2 for parameter 'w' of shape [6, 4]}}
optim.divide patterns ["w"] except [] into rows each [4] repeat 1
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// So do equal blocks, and stretches.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected 2 equal blocks of 3 rows in each stretch, found a rest of 1 for parameter 'w' of shape [6, 4]}}
optim.divide patterns ["w"] except [] into rows split [2] repeat 2
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected 4 equal stretches of the 6 rows, found a rest of 2 for parameter 'w' of shape [6, 4]}}
optim.divide patterns ["w"] except [] into rows split [2] repeat 4
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// More blocks than a plan may have: two statements say so, of single rows and of stretches.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected blocks of at most 16777216 runs of rows, found 1073741824 in each of 1 stretches for parameter 'w' of shape [1073741824, 4]}}
optim.divide patterns ["w"] except [] into rows each [1] repeat 1
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [1073741824, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected blocks of at most 16777216 runs of rows, found 2 in each of 268435456 stretches for parameter 'v' of shape [1073741824, 4]}}
optim.divide patterns ["v"] except [] into rows listed [1, 3] repeat 268435456
// expected-note @below {{the parameter is here}}
optim.parameter @v shape [1073741824, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A matrix has no axes to flatten, and rows come before the columns.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected three axes or more to flatten, found 2 for parameter 'w' of shape [6, 4]}}
// expected-error @below {{expected columns from axis 2 to 3 on, found 1 for parameter 'stack' of shape [2, 4, 3, 2]}}
optim.divide patterns ["w", "stack"] except [] flatten 1
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [6, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-note @below {{the parameter is here}}
optim.parameter @stack shape [2, 4, 3, 2] batch 1 flatten 2 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Blocks of a flattened matrix count its rows and columns.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected blocks of 12 columns with 5 each, found a rest of 2 for parameter 'w' of shape [6, 4, 3]}}
optim.divide patterns ["w"] except [] flatten 1 into columns each [5] repeat 1
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [6, 4, 3] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// The manifest's blocks are of another matrix.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected each column in one part, found column 3 in none for parameter 'w' of shape [6, 4, 3] with blocks of its own}}
optim.divide patterns ["w"] except [] flatten 1
// expected-note @below {{the parameter is here}}
optim.parameter @w shape [6, 4, 3] batch 0 flatten 2 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <columns, [0, 3]> aliases []

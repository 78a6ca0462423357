// Every error of parameters, placements and groups.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// A parameter lives on a mesh that exists.
// expected-error @below {{expected a mesh, found no optim.mesh named @world}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [] aliases []

// -----

// Sizes are not negative.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected sizes of 1 or more, found -4}}
optim.parameter @w shape [4, -4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// More elements than any device holds, though each size is fine.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected at most 2^40 elements, found shape [1073741824, 268435456]}}
optim.parameter @w shape [1073741824, 268435456] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A size of 0 does not hide the others.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected at most 2^40 elements, found shape [576460752303423488, 4, 2]}}
optim.parameter @w shape [576460752303423488, 4, 2] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Batch axes are not negative.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected batch axes that leave a matrix, found -1 of 1 axes}}
optim.parameter @w shape [4] batch -1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A group may stand above its parameters, also above wrong ones.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.rule @R hyperparameters [] states [] {
^bb0(%p: tensor<?xf32>, %g: tensor<?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %p : tensor<?xf32>
}
optim.group @g rule @R parameters [@w] reason ""
// expected-error @below {{expected batch axes that leave a matrix, found 1 of 0 axes}}
optim.parameter @w shape [] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Parameters are not stored in f64.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected a type of f32, bf16 or f16, found 'f64'}}
optim.parameter @w shape [4, 4] batch 0 type f64 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// Gradients are not integers.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected a type of f32, bf16 or f16, found 'i8'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient i8 mesh @world placements [#optim.replicate] aliases []

// -----

// Batch axes leave the two axes of a matrix.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected batch axes that leave a matrix, found 1 of 2 axes}}
optim.parameter @w shape [4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []

// -----

// A parameter has one placement per mesh axis.
// expected-note @below {{the mesh is here}}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected 1 placements, one per mesh axis, found 2}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate, #optim.replicate] aliases []

// -----

// A placement divides an axis that the parameter has.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{placement 0: expected a dimension from 0 to 1, found 'S(2)'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<2>] aliases []

// -----

// So does a strided one.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{placement 0: expected a dimension from 0 to 1, found '_S(-1, 1)'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.strided_shard<-1, 1>] aliases []

// -----

// The split factor of a strided placement counts the shards of later mesh axes.
optim.mesh @world axes ["dp", "tp"] sizes [2, 2] ranks [0, 1, 2, 3]
// expected-error @below {{placement 0: expected a split factor that the later axes which shard dimension 0 multiply to (1, 2), found 3 in '_S(0, 3)'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.strided_shard<0, 3>, #optim.shard<0>] aliases []

// -----

// Placements of the states are checked as the parameter's are.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{states' placement 0: expected a dimension from 0 to 1, found 'S(2)'}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] state_placements [#optim.shard<2>] aliases []

// -----

// So are the gradient's.
// expected-note @below {{the mesh is here}}
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{expected 1 placements, one per mesh axis, found 0}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [] aliases []

// -----

// A list that is the parameter's is not written twice.
optim.mesh @world axes ["dp"] sizes [2] ranks [0, 1]
// expected-error @below {{expected gradient_placements and state_placements only where they differ from the parameter's, found [S(0)]}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] gradient_placements [#optim.shard<0>] aliases []

// -----

// A placement is a placement.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{attribute 'placements' failed to satisfy constraint: placements, one per mesh axis}}
"optim.parameter"() <{label = "w", shape = array<i64: 4>, batch = 0 : i64, type = f32, gradient = f32, mesh = @world, placements = ["S(0)"], aliases = []}> : () -> ()

// -----

// A group's rule exists.
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected a rule, found no optim.rule named @R}}
optim.group @g rule @R parameters [@a]

// -----

// A group has parameters.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
// expected-error @below {{expected at least one parameter, found none}}
optim.group @g rule @R parameters []

// -----

// A group's parameters exist.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
// expected-error @below {{expected a parameter, found no optim.parameter named @w}}
optim.group @g rule @R parameters [@w]

// -----

// A group's parameters are alike.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-note @below {{the parameter is here}}
optim.parameter @b shape [4, 4] batch 0 type f32 gradient bf16 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected parameters of equal shape, types, mesh, placements and blocks, found @b that differs}}
optim.group @g rule @R parameters [@a, @b]

// -----

// Vectors are not divided.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected blocks of matrices, found 1 axes, 0 of them batch axes}}
optim.parameter @w shape [4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <columns, [0, 4]> aliases []

// -----

// A run has an end.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected an end for each begin of a part, found 3 numbers}}
optim.parameter @w shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2, 4]> aliases []

// -----

// Every row stands in a part.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected each row in one part, found row 3 in none}}
optim.parameter @w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 3]> aliases []

// -----

// Only blocks are specified.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected blocks that are specified, found none}}
optim.parameter @w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] specified aliases []

// -----

// Only specified ones stand over others.
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
// expected-error @below {{expected specified blocks over others, found blocks that are not}}
optim.parameter @w shape [4, 6] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 4]> over <rows, [0, 4]> aliases []

// -----

// A statement of blocks names something.
// expected-error @below {{expected at least one pattern, found none}}
optim.divide patterns [] except [] into rows split [2] repeat 1

// -----

// It has sizes.
// expected-error @below {{expected sizes of blocks, found 0}}
optim.divide patterns ["w"] except [] into rows listed [] repeat 1

// -----

// `each` and `split` have one number.
// expected-error @below {{expected one number of blocks, found 2}}
optim.divide patterns ["w"] except [] into rows each [2, 3] repeat 1

// -----

// Sizes are positive.
// expected-error @below {{expected numbers of 1 or more, found 0}}
optim.divide patterns ["w"] except [] into rows listed [4, 0] repeat 1

// -----

// So is how often they follow one another.
// expected-error @below {{expected a repeat of 1 or more, found -1}}
optim.divide patterns ["w"] except [] into rows listed [4] repeat -1

// -----

// Patterns are well-formed.
// expected-error @below {{expected a pattern, found "[z-a]": expected a range that rises in a pattern, found 'z-a'}}
// expected-note @below {{write 'a-z'}}
optim.divide patterns ["[z-a]"] except [] into rows listed [4] repeat 1

// -----

// Blocks of the specification and of the manifest are not in one group, though they are equal.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 4]> aliases []
// expected-note @below {{the parameter is here}}
optim.parameter @b shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 4]> specified aliases []
// expected-error @below {{expected parameters of equal shape, types, mesh, placements and blocks, found @b that differs}}
optim.group @g rule @R parameters [@a, @b] parts [0]

// -----

// Parameters of one group are divided alike, and the group has parts of them.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 4]> aliases []
// expected-note @below {{the parameter is here}}
optim.parameter @b shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 1], [1, 4]> aliases []
// expected-error @below {{expected parameters of equal shape, types, mesh, placements and blocks, found @b that differs}}
optim.group @g rule @R parameters [@a, @b] parts [0]

// -----

optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 4]> aliases []
// expected-error @below {{expected some of the 2 parts of the parameters, found 2}}
optim.group @g rule @R parameters [@a] parts [2]

// -----

// A rule that reads the number of rows sees blocks.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %s = optim.splat %rows : tensor<?x?xf32>
  optim.yield %s : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] blocks <rows, [0, 2], [2, 4]> aliases []
// expected-error @below {{expected parts of the divided parameters, because rule @R sees blocks, found none}}
optim.group @g rule @R parameters [@a]

// -----

// Bases belong to owned factors.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected no base without owned factors, found 1}}
optim.group @g rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 1>] base [0]>]

// -----

// Every block has one base: two experts, two bases.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [0]
optim.parameter @a shape [2, 4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected one base per block, 2, found 1}}
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 1>] base [0]>]

// -----

// Bases are positions in the mesh, not ranks of the job.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [1] ranks [7]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected bases that are mesh positions below 1, found 7}}
optim.group @g rule @R parameters [@a] strategy #optim.owner hops [#optim.hop<owned [<0, 1, 1>] base [7]>]

// -----

// A strategy is nothing without its hops.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected hops with a strategy, found no hops}}
optim.group @g rule @R parameters [@a] strategy #optim.local

// -----

// Hops have a strategy that they are of.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected hops with a strategy, found no strategy}}
optim.group @g rule @R parameters [@a] hops []

// -----

// A factor is part of an axis.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected factors that divide axis 0 of mesh world, found 2 ranks that are 4 apart}}
optim.group @g rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 4, 2>]>]

// -----

// No part of an axis is brought together twice.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected factors of axis 0 of mesh world that do not overlap, found 2 ranks that are 2 apart beside 4 that are 1 apart}}
optim.group @g rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 4>]>, #optim.hop<replicated [<0, 2, 2>]>]

// -----

// Of axes that there are.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [4, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.replicate] aliases []
// expected-error @below {{expected factors of the 1 axes of mesh world, found one of axis 1}}
optim.group @g rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<1, 1, 4>]>]

// -----

// Slabs are computed where they stand.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// expected-error @below {{expected slabs with hops, of which there are none, found some}}
optim.group @g rule @R parameters [@a] strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 4>]>] slabs <rows, [<0, 1, 4>], 2 to 2>

// -----

// They are as the shards are.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [8, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// expected-error @below {{expected the slabs of shards that cut the columns of blocks, found placements [S(0)]}}
optim.group @g rule @R parameters [@a] strategy #optim.slabs hops [] slabs <columns, [<0, 1, 4>], 1 to 1>

// -----

// Each has whole rows.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [16, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.flat<0, 10, 32, 48, 64>] aliases []
// expected-error @below {{expected ranges of whole rows, found a part of one of block 0 on rank 0}}
optim.group @g rule @R parameters [@a] strategy #optim.slabs hops [] slabs <rows, [<0, 1, 4>], 2 to 6>

// -----

// All are computed as long as the longest.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [15, 4] batch 0 type f32 gradient f32 mesh @world placements [#optim.shard<0>] aliases []
// expected-error @below {{expected slabs of 3 to 4 rows, found 4 to 4}}
optim.group @g rule @R parameters [@a] strategy #optim.slabs hops [] slabs <rows, [<0, 1, 4>], 4 to 4>

// -----

// What nothing sees is joined: not where whole matrices are computed.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [8, 4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
// expected-error @below {{expected no joined axes where whole blocks are computed, found columns from axis 1 on}}
optim.group @g rule @R parameters [@a] joined 1 strategy #optim.gather hops [#optim.hop<replicated [<0, 1, 4>]>]

// -----

// Its columns begin with an axis behind the first.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [8, 4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
// expected-error @below {{expected columns of joined axes from axis 1 to 2 on, found 3}}
optim.group @g rule @R parameters [@a] joined 3

// -----

// A rule that counts rows sees its matrices.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  %r = optim.position rows : tensor<?x1xf32>
  %all = optim.broadcast %r : tensor<?x1xf32> to tensor<?x?xf32>
  optim.yield %all : tensor<?x?xf32>
}
optim.mesh @world axes ["dp"] sizes [4] ranks [0, 1, 2, 3]
optim.parameter @a shape [8, 4, 4] batch 1 type f32 gradient f32 mesh @world placements [#optim.shard<1>] aliases []
// expected-error @below {{expected no joined axes, because rule @R counts rows or columns}}
optim.group @g rule @R parameters [@a] joined 1

// RUN: stepc-opt %s -split-input-file -verify-diagnostics --optim-expand-matrix

// An orthogonalize outside of a rule is of a batch.
func.func @f(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  // expected-error @below {{expected a batch of blocks with a place, found 'tensor<?x?xf32>'}}
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x?xf32>
  return %o : tensor<?x?xf32>
}

// -----

// Without its segment nobody knows how many blocks there are.
func.func @f(%x: tensor<?x4x6xf32>) -> tensor<?x4x6xf32> {
  // expected-error @below {{expected a batch of blocks with a place, found 'tensor<?x4x6xf32>'}}
  %o = optim.orthogonalize %x coefficients [[1.5, -0.5, 0.0]] eps 1.0e-07 : tensor<?x4x6xf32>
  return %o : tensor<?x4x6xf32>
}

// -----

// So are all factors of a product.
optim.rule @R hyperparameters [] states [] {
^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %step: f64, %rows: f64, %cols: f64, %numel: f64):
  optim.yield %param : tensor<?x?xf32>
}
optim.mesh @one axes ["dp"] sizes [1] ranks [0]
optim.parameter @w shape [4, 6] batch 0 type f32 gradient f32 mesh @one placements [#optim.replicate] aliases []
optim.group @g rule @R parameters [@w]
comm.segment @s group @g wave 0 all
func.func @f(%x: tensor<?x4x6xf32, #comm.place<@s, full, blocks>>, %y: tensor<?x6x4xf32>) {
  // expected-error @below {{expected a batch of blocks with a place, found 'tensor<?x6x4xf32>'}}
  %o = optim.matmul %x, %y : tensor<?x4x6xf32, #comm.place<@s, full, blocks>>, tensor<?x6x4xf32> -> tensor<?x4x4xf32, #comm.place<@s, [rows, rows], blocks>>
  return
}

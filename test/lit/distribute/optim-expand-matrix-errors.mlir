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

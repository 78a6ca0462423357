// RUN: stepc-opt %s -split-input-file -verify-diagnostics --comm-pipeline-waves

// An operation with effects that works on no segment has no wave.
func.func @step(%m: memref<4xf32>, %i: index, %x: f32) {
  // expected-error @below {{expected an operation on a segment, found none: it has no place in a wave}}
  memref.store %x, %m[%i] : memref<4xf32>
  return
}

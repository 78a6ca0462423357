// What is known about the machines, in the custom form and back.
// RUN: stepc-opt %s -split-input-file | stepc-opt -split-input-file | FileCheck %s

// CHECK: optim.cluster ranks_per_node 8 inside_bandwidth 4.500000e+11 inside_latency 3.000000e-06 between_bandwidth 5.000000e+10 between_latency 0.000000e+00 flops 9.000000e+14 memory 4.000000e+12
optim.cluster ranks_per_node 8 inside_bandwidth 4.5e+11 inside_latency 3.0e-06 between_bandwidth 5.0e+10 between_latency 0.0 flops 9.0e+14 memory 4.0e+12

// -----

// Anything may be left out.
// CHECK: optim.cluster flops 1.000000e+13
optim.cluster flops 1.0e+13

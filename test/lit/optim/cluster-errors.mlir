// What a cluster may not say.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected one per module, found another}}
optim.cluster flops 1.0e+13
// expected-note @below {{the other is here}}
optim.cluster flops 1.0e+13

// -----

// expected-error @below {{expected at least one rank per node, found 0}}
optim.cluster ranks_per_node 0

// -----

// expected-error @below {{expected between_bandwidth above 0 and finite, found 0.000000e+00}}
optim.cluster between_bandwidth 0.0

// -----

// expected-error @below {{expected inside_latency of at least 0 and finite, found -1.000000e+00}}
optim.cluster inside_latency -1.0

// -----

// expected-error @below {{expected flops above 0 and finite}}
optim.cluster flops 0x7FF0000000000000

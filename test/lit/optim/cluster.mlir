// The machines, in the custom form and back.
// RUN: stepc-opt %s -split-input-file | stepc-opt -split-input-file | FileCheck %s

// CHECK: optim.cluster "h100" levels [#optim.cluster_level<"nvlink", ranks = 8, latency = 3.000000e-06, gap = 5.000000e-07, bandwidth = 4.500000e+11>, #optim.cluster_level<"network", latency = 1.000000e-05, gap = 0.000000e+00, bandwidth = 5.000000e+10>] device <flops = 9.000000e+14, memory = 4.000000e+12, capacity = 8.000000e+10, launch = 5.000000e-06, threads = 132, overlaps = true, products = warpgroup>
optim.cluster "h100"
  levels [#optim.cluster_level<"nvlink", ranks = 8, latency = 3.0e-06, gap = 5.0e-07, bandwidth = 4.5e+11>,
          #optim.cluster_level<"network", latency = 1.0e-05, gap = 0.0, bandwidth = 5.0e+10>]
  device <flops = 9.0e+14, memory = 4.0e+12, capacity = 8.0e+10, launch = 5.0e-06, threads = 132, overlaps = true, products = warpgroup>

// -----

// No profile's, and as many ranks as the mesh has.
// CHECK: optim.cluster levels [#optim.cluster_level<"node", ranks = 2, latency = 1.000000e-01, gap = 1.230000e-06, bandwidth = 1.000000e+09>] device <flops = 9.000000e+14, memory = 4.000000e+12, capacity = 8.000000e+10, launch = 0.000000e+00, threads = 1, products = chain>
optim.cluster levels [#optim.cluster_level<"node", ranks = 2, latency = 0.1, gap = 1.23e-06, bandwidth = 1.0e+09>]
  device <flops = 9.0e+14, memory = 4.0e+12, capacity = 8.0e+10, launch = 0.0, threads = 1, products = chain>
optim.mesh @dp axes ["dp"] sizes [2] ranks [0, 1]

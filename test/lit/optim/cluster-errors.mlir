// What a cluster may not say.
// RUN: stepc-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected one per module, found another}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>
// expected-note @below {{the other is here}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected at least one level, found none}}
optim.cluster levels [] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected levels of different names, found two of name 'a'}}
optim.cluster levels [#optim.cluster_level<"a", ranks = 2, latency = 0.0, gap = 0.0, bandwidth = 1.0>, #optim.cluster_level<"a", ranks = 4, latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected ranks of level 'network', which is not the last, found none}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>, #optim.cluster_level<"a", ranks = 4, latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected a larger multiple of level 'a', 4, as ranks of level 'b', found 6}}
optim.cluster levels [#optim.cluster_level<"a", ranks = 4, latency = 0.0, gap = 0.0, bandwidth = 1.0>, #optim.cluster_level<"b", ranks = 6, latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected a larger multiple of level 'a', 4, as ranks of level 'b', found 4}}
optim.cluster levels [#optim.cluster_level<"a", ranks = 4, latency = 0.0, gap = 0.0, bandwidth = 1.0>, #optim.cluster_level<"b", ranks = 4, latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected ranks below the 2 of level 'a', found rank 2 in mesh 'dp'}}
optim.cluster levels [#optim.cluster_level<"a", ranks = 2, latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>
optim.mesh @dp axes ["dp"] sizes [2] ranks [1, 2]

// -----

// expected-error @below {{expected at least one rank in a domain, found 0}}
optim.cluster levels [#optim.cluster_level<"a", ranks = 0, latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected a bandwidth above 0 and finite, found 0.000000e+00}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 0.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected a latency of at least 0 and finite, found -1.000000e+00}}
optim.cluster levels [#optim.cluster_level<"network", latency = -1.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected a gap of at most the latency, 1.000000e+00, found 2.000000e+00}}
optim.cluster levels [#optim.cluster_level<"network", latency = 1.0, gap = 2.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected a gap of at least 0 and finite, found -1.000000e+00}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = -1.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected flops above 0 and finite, found 0.000000e+00}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 0.0, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected memory above 0 and finite, found -1.000000e+00}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = -1.0, capacity = 1.0e+10, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected a capacity above 0 and finite}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 0.0, launch = 0.0, threads = 1>

// -----

// expected-error @below {{expected a launch of at least 0 and finite}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = -1.0, threads = 1>

// -----

// expected-error @below {{expected at least one thread, found 0}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 0>

// -----

// expected-error @below {{expected stated, chain, tensorcore or warpgroup, found cublas}}
// expected-error @below {{failed to parse Optim_Device parameter 'products'}}
optim.cluster levels [#optim.cluster_level<"network", latency = 0.0, gap = 0.0, bandwidth = 1.0>] device <flops = 1.0e+12, memory = 1.0e+11, capacity = 1.0e+10, launch = 0.0, threads = 1, products = cublas>

// RUN: stepc-opt %s --split-input-file --exec-pin-products -verify-diagnostics

// expected-error @below {{expected exec.products to be entries of a table of products, found [3]}}
module attributes {stepc.chip = "cuda:sm_80", exec.products = [3]} {
}

// -----

// expected-error @below {{expected the attribute stepc.chip on the module, found none}}
module attributes {exec.products = []} {
}

// -----

// Chains are the CPU's bits.
// expected-error @below {{expected a target whose products a library may make beside exec.products, found 'cuda:sm_80,chain'}}
module attributes {stepc.chip = "cuda:sm_80,chain", exec.products = []} {
}

// -----

// expected-error @below {{expected a target whose products a library may make beside exec.products, found 'znver3;+avx'}}
module attributes {stepc.chip = "znver3;+avx", exec.products = []} {
}

// A chip that LLVM does not know is refused by name.
// RUN: not stepc-opt %s --optim-orthogonalize-to-products=chip=abacus 2>&1 | FileCheck %s
// CHECK: error: {{.*}}abacus
module {}

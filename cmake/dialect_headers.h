// Headers that nearly every source above the dialects includes, precompiled once.
#include "cmake/mlir_headers.h"

#include "dialects/comm/Comm.h"
#include "dialects/exec/Exec.h"
#include "dialects/optim/Optim.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"

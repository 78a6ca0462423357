// Headers that nearly every source above the dialects includes, precompiled once.
#include "cmake/mlir_headers.h"

#include "dialects/comm/Comm.h"
#include "dialects/exec/Exec.h"
#include "dialects/optim/Optim.h"

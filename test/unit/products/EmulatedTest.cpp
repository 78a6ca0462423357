//===- EmulatedTest.cpp - What of a GPU's kernel this machine does ---------===//

#include "passes/kernels/gpu/GpuKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace stepc::test {
namespace {

/// What is said of a kernel with this body, which has %x, an f32, and %i, an i32.
std::string said(const std::string &body) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                      memref::MemRefDialect, scf::SCFDialect, exec::ExecDialect>();
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
    errors += d.str();
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "gpu.module @m { gpu.func @f(%p: !llvm.ptr<1>) kernel {\n"
      "%x = llvm.load %p : !llvm.ptr<1> -> f32\n%i = arith.constant 16 : i32\n"
      "%w = arith.constant 32 : i32\n" +
          body + "\ngpu.return } }",
      &context);
  if (!module)
    return errors;
  auto code = *module->getOps<gpu::GPUModuleOp>().begin();
  auto made = kernels::threadsOnHost(*code.getOps<gpu::GPUFuncOp>().begin(), *module);
  EXPECT_EQ(failed(made), !errors.empty());
  return errors;
}

TEST(Emulated, RefusesShufflesThatItDoesNotDo) {
  EXPECT_EQ(said("%y, %v = gpu.shuffle xor %x, %i, %w : f32"), "");
  const char *expected = "'gpu.shuffle' op expected a shuffle of 32 bits by xor in a warp of 32, "
                         "which is emulated";
  EXPECT_EQ(said("%y, %v = gpu.shuffle up %x, %i, %w : f32"), expected);
  EXPECT_EQ(said("%y, %v = gpu.shuffle xor %x, %i, %i : f32"), expected);
  EXPECT_EQ(said("%z = arith.extf %x : f32 to f64\n%y, %v = gpu.shuffle xor %z, %i, %w : f64"),
            expected);
}

} // namespace
} // namespace stepc::test

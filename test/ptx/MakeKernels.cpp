//===- MakeKernels.cpp - The compiler's kernels for ptx-tests --------------===//
//
// Writes the PTX of products on warpgroups into a folder, a file for each form, and kernels.txt (Kernels.h).
//
//===----------------------------------------------------------------------===//

#include "passes/kernels/Passes.h"
#include "passes/kernels/gpu/WarpgroupProduct.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace stepc;

namespace {

/// The PTX of a kernel in a module of its own, and the kernel's name; empty after an error.
std::string ptxOf(MLIRContext &context, const kernels::WarpgroupForm &form, bool isBounded,
                  std::string &name) {
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  gpu::GPUModuleOp code = kernels::makeGpuModule(*module, "sm_90a", "+ptx86");
  if (isBounded)
    code->setAttr(kernels::kBoundedAttr, UnitAttr::get(&context));
  name = kernels::addWarpgroupKernel(code, form, loc).getName().str();
  PassManager manager(&context);
  kernels::buildPtxPipeline(manager);
  if (failed(manager.run(*module)))
    return "";
  for (auto binary : module->getOps<gpu::BinaryOp>())
    return cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().getValue().rtrim('\0').str();
  return "";
}

bool write(const std::string &path, StringRef text) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error) {
    llvm::errs() << "cannot write " << path << ": " << error.message() << "\n";
    return false;
  }
  file << text;
  return true;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: ptx-kernels FOLDER\n";
    return 2;
  }
  std::string folder = argv[1], list;
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, exec::ExecDialect, gpu::GPUDialect,
                  LLVM::LLVMDialect, NVVM::NVVMDialect, scf::SCFDialect, vector::VectorDialect>();
  kernels::registerGpuInterfaces(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  constexpr plan::DType bf16 = plan::DType::BF16, f16 = plan::DType::F16, f32 = plan::DType::F32;
  // All products of matrices and their transposes, the symmetric ones X Xᵀ, Xᵀ X and A A, and some of these for
  // clusters of one block, for f16 and for results of f32.
  const kernels::WarpgroupForm forms[] = {
      {{bf16, bf16, bf16, false, false, false}},  {{bf16, bf16, bf16, false, true, false}},
      {{bf16, bf16, bf16, true, false, false}},   {{bf16, bf16, bf16, true, true, false}},
      {{bf16, bf16, bf16, false, true, true}},    {{bf16, bf16, bf16, true, false, true}},
      {{bf16, bf16, bf16, false, false, true}},   {{bf16, bf16, bf16, false, false, false}, 1},
      {{bf16, bf16, bf16, false, true, true}, 1}, {{f16, f16, f16, false, false, false}},
      {{f16, f16, f16, false, true, true}},       {{f16, f16, f16, true, false, true}},
      {{bf16, bf16, f32, false, true, true}},     {{bf16, bf16, f32, true, false, true}},
      {{bf16, bf16, f32, false, false, false}},   {{f16, f16, f32, false, true, true}, 1},
      {{f16, f16, f32, false, false, true}}};
  // These also with waits that end in a trap, as tests on a GPU have them.
  const kernels::WarpgroupForm bounded[] = {{{bf16, bf16, bf16, false, true, true}},
                                            {{f16, f16, f32, false, true, true}}};
  auto add = [&](const kernels::WarpgroupForm &form, bool isBounded) {
    std::string name, ptx = ptxOf(context, form, isBounded, name);
    if (ptx.empty() || !write(folder + "/" + name + ".ptx", ptx))
      return false;
    llvm::raw_string_ostream line(list);
    line << "file=" << name << ".ptx entry=" << name
         << " shared=" << kernels::warpgroupLaunch(form).dynamicBytes
         << " transpose_lhs=" << form.product.transposeLhs
         << " transpose_rhs=" << form.product.transposeRhs
         << " symmetric=" << form.product.symmetric << " type=" << plan::name(form.product.lhs)
         << " result=" << plan::name(form.product.out) << "\n";
    return true;
  };
  for (const kernels::WarpgroupForm &form : forms)
    if (!add(form, /*isBounded=*/false))
      return 1;
  for (const kernels::WarpgroupForm &form : bounded)
    if (!add(form, /*isBounded=*/true))
      return 1;
  // Last, because it is what the build waits for.
  return write(folder + "/kernels.txt", list) ? 0 : 1;
}

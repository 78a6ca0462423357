//===- Pipeline.cpp - Down the ladder, from any level to any ---------------===//

#include "tools/stepc/Pipeline.h"

#include "dialects/exec/Exec.h"
#include "passes/decide/Passes.h"
#include "passes/distribute/Passes.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"
#include "passes/plan/ValidatePlan.h"
#include "passes/schedule/Passes.h"
#include "runtime/plan/Tables.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Products.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Pass/PassManager.h"

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;
using llvm::Twine;

static constexpr llvm::StringLiteral kLevels[] = {"optim",     "decided", "comm",
                                                  "scheduled", "exec",    "llvm"};

StringRef driver::name(Level level) { return kLevels[unsigned(level)]; }

std::optional<Level> driver::parseLevel(StringRef name) {
  for (auto [index, level] : llvm::enumerate(kLevels))
    if (level == name)
      return Level(index);
  return std::nullopt;
}

void driver::registerDialects(mlir::DialectRegistry &registry) {
  registry
      .insert<optim::OptimDialect, comm::CommDialect, exec::ExecDialect, mlir::arith::ArithDialect,
              mlir::math::MathDialect, mlir::tensor::TensorDialect, mlir::memref::MemRefDialect,
              mlir::func::FuncDialect, mlir::linalg::LinalgDialect, mlir::scf::SCFDialect,
              mlir::vector::VectorDialect, mlir::bufferization::BufferizationDialect,
              mlir::cf::ControlFlowDialect, mlir::index::IndexDialect, mlir::ub::UBDialect,
              mlir::DLTIDialect, mlir::LLVM::LLVMDialect>();
  schedule::registerBufferizationModels(registry);
  kernels::registerGpuInterfaces(registry);
}

std::string driver::strategyNames() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  llvm::SmallVector<optim::StrategyAttrInterface> all = optim::strategies(&context);
  std::string names;
  for (auto [index, strategy] : llvm::enumerate(all)) {
    names += index == 0 ? "" : index + 1 < all.size() ? ", " : " or ";
    names += strategy.name();
  }
  return names;
}

std::optional<Level> driver::levelOf(mlir::ModuleOp module) {
  mlir::StringAttr attribute = comm::levelOf(module);
  if (!attribute) {
    module.emitError("expected the attribute ")
        << comm::kLevelAttr << " with the module's level, found none";
    return std::nullopt;
  }
  std::optional<Level> level = parseLevel(attribute.getValue());
  if (!level)
    module.emitError("expected ") << comm::kLevelAttr << " to be one of "
                                  << llvm::join(llvm::ArrayRef(kLevels), ", ") << ", found "
                                  << attribute;
  return level;
}

namespace {

/// One step of the ladder.
struct Rung {
  Level to;
  StringRef doing;
  mlir::LogicalResult (*build)(mlir::OpPassManager &, mlir::ModuleOp, const CompileOptions &,
                               Level entered);
};

const Rung kRungs[] = {
    {Level::Decided, "deciding strategies and owners",
     [](mlir::OpPassManager &manager, mlir::ModuleOp, const CompileOptions &options, Level) {
       decide::buildDecidePipeline(manager, {options.strategies, options.waves});
       return mlir::success();
     }},
    {Level::Comm, "distributing",
     [](mlir::OpPassManager &manager, mlir::ModuleOp, const CompileOptions &, Level) {
       distribute::buildDistributePipeline(manager);
       return mlir::success();
     }},
    {Level::Scheduled, "scheduling, and proving the plan for all ranks",
     [](mlir::OpPassManager &manager, mlir::ModuleOp, const CompileOptions &, Level) {
       schedule::buildSchedulePipeline(manager);
       return mlir::success();
     }},
    {Level::Exec, "making kernels",
     [](mlir::OpPassManager &manager, mlir::ModuleOp, const CompileOptions &options,
        Level entered) {
       // Scheduling ends with the proof; a text that comes here without it has none yet.
       kernels::buildExecPipeline(manager, {options.target, entered < Level::Scheduled});
       return mlir::success();
     }},
    {Level::Llvm, "lowering to LLVM",
     [](mlir::OpPassManager &manager, mlir::ModuleOp module, const CompileOptions &,
        Level entered) {
       llvm::FailureOr<std::unique_ptr<kernels::Target>> target = kernels::targetOfModule(module);
       if (mlir::succeeded(target))
         kernels::buildLlvmPipeline(manager, **target, entered < Level::Exec);
       return mlir::success(mlir::succeeded(target));
     }},
};

/// Options that a level has answered for good: asking again would be ignored silently.
bool checkOptions(mlir::ModuleOp module, Level level, const CompileOptions &options,
                  Report &report) {
  auto refuse = [&](StringRef option, Level last) {
    report.error("expected " + option + " with a specification or a module at level " + name(last) +
                 " or before, found one at level " + name(level));
    return false;
  };
  if (level > Level::Optim && !options.strategies.empty())
    return refuse("--strategy", Level::Optim);
  if (level > Level::Optim && !options.ifPresent.empty())
    return refuse("--if-present", Level::Optim);
  if (level > Level::Optim && options.waves)
    return refuse("--waves", Level::Optim);
  if (level > Level::Optim && options.workspaceLimit)
    return refuse("--workspace-limit", Level::Optim);
  if (level > Level::Scheduled && !options.target.empty())
    return refuse("--target", Level::Scheduled);
  if (level > Level::Scheduled && !options.products.empty())
    return refuse("--products", Level::Scheduled);
  llvm::Expected<std::unique_ptr<kernels::Target>> target =
      kernels::targetOfText(options.target.empty() ? "cpu" : StringRef(options.target));
  if (!target) {
    report.error("--target: " + llvm::toString(target.takeError()));
    return false;
  }
  if (options.products.empty() || (isCuda((*target)->chip()) && !(*target)->libraryChips().empty()))
    return true;
  report.error(
      "expected --products with --target cuda:<gpu>,… whose products are tensor cores', found " +
      (options.target.empty() ? "no target" : "'" + options.target + "'"));
  report.hint(isCuda((*target)->chip()) ? "chain promises the CPU's bits, which cuBLASLt's are not"
                                        : "there is no cuBLASLt elsewhere");
  return false;
}

/// What a pipeline's failure means: see the table in the room's README.
int codeOfFailure(Level to, const CompileOptions &options, Report &report) {
  // A pass that fails without a word is a fault of stepc, never of the input.
  if (!report.hasErrors()) {
    report.internalError("the passes to level " + name(to) + " failed without a message");
    return kInternalError;
  }
  if (report.hasUsageErrors())
    return kUsageError;
  // Text of any level may say anything, and up to level decided so may a specification.
  if (isModulePath(options.input) || to <= Level::Decided || report.hasInputErrors())
    return kInputError;
  report.internalError("the passes to level " + name(to) + " refused what those to level " +
                       name(Level::Decided) + " had accepted");
  return kInternalError;
}

/// Sizes that a plan cannot hold are found here, where they still are the input's fault.
bool checkLimits(mlir::ModuleOp module) {
  llvm::FailureOr<ProgramPlan> program = planFromModule(module);
  return succeeded(program) &&
         succeeded(validatePlan(module, *program, "expected parameters within a plan's limits: "));
}

} // namespace

int driver::lowerTo(mlir::ModuleOp module, Level target, const CompileOptions &options,
                    Report &report) {
  std::optional<Level> level = levelOf(module);
  if (!level)
    return kInputError;
  if (!checkOptions(module, *level, options, report))
    return kUsageError;
  if (*level > target) {
    report.error("expected a module at level " + name(target) + " or before, found one at level " +
                 name(*level));
    return kUsageError;
  }
  // As a manifest without parameters is.
  if (*level <= Level::Decided && module.getOps<optim::ParameterOp>().empty()) {
    module.emitError("expected at least one optim.parameter, found none");
    return kInputError;
  }
  if (!options.products.empty() && !readProducts(module, options.products, report))
    return kInputError;
  mlir::MLIRContext *context = module.getContext();
  Progress progress("stepc");
  for (const Rung &rung : kRungs) {
    if (rung.to <= *level || rung.to > target)
      continue;
    progress.stage(rung.doing);
    mlir::PassManager manager(context);
    if (options.printIrAfterAll) {
      context->disableMultithreading();
      manager.enableIRPrinting(/*shouldPrintBeforePass=*/nullptr,
                               [](mlir::Pass *, mlir::Operation *) { return true; },
                               /*printModuleScope=*/false, /*printAfterOnlyOnChange=*/false);
    }
    if (options.timing)
      manager.enableTiming();
    if (mlir::failed(rung.build(manager, module, options, *level)) ||
        mlir::failed(manager.run(module)))
      return codeOfFailure(rung.to, options, report);
    if (rung.to == Level::Decided && !isModulePath(options.input) && !checkLimits(module))
      return kInputError;
  }
  return kSuccess;
}

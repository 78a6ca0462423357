//===- Pipeline.cpp - Down the ladder, from any level to any ---------------===//

#include "tools/stepc/Pipeline.h"

#include "dialects/exec/Exec.h"
#include "passes/decide/Passes.h"
#include "passes/distribute/Passes.h"
#include "passes/kernels/GpuChips.h"
#include "passes/kernels/Passes.h"
#include "passes/kernels/Target.h"
#include "passes/kernels/TargetShape.h"
#include "passes/plan/ValidatePlan.h"
#include "passes/schedule/Passes.h"
#include "runtime/plan/Tables.h"
#include "stepc/kernel_abi.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Products.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

#include <limits>

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

std::vector<std::string> driver::strategyNames() {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::vector<std::string> names;
  for (optim::StrategyAttrInterface strategy : optim::strategies(&context))
    names.push_back(strategy.name().str());
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

StringRef firstTarget(const CompileOptions &options) {
  return options.targets.empty() ? StringRef() : options.targets.front();
}

/// What rungs need to know beside the module. `entered` is the level at which the module was read.
struct Lowering {
  const CompileOptions &options;
  Level entered;
  StringRef target; // empty: the host
  /// The workspace that waves are chosen for. 0: the limit, if there is one.
  int64_t targetBytes = 0;
};

/// One step of the ladder.
struct Rung {
  Level to;
  StringRef doing;
  mlir::LogicalResult (*build)(mlir::OpPassManager &, mlir::ModuleOp, const Lowering &);
};

const Rung kRungs[] = {
    {Level::Decided, "deciding strategies and owners",
     [](mlir::OpPassManager &manager, mlir::ModuleOp, const Lowering &lowering) {
       decide::buildDecidePipeline(
           manager, {lowering.options.strategies, lowering.options.waves, lowering.targetBytes});
       return mlir::success();
     }},
    {Level::Comm, "distributing",
     [](mlir::OpPassManager &manager, mlir::ModuleOp, const Lowering &) {
       distribute::buildDistributePipeline(manager);
       return mlir::success();
     }},
    {Level::Scheduled, "scheduling",
     [](mlir::OpPassManager &manager, mlir::ModuleOp, const Lowering &) {
       schedule::buildSchedulePipeline(manager);
       return mlir::success();
     }},
    {Level::Exec, "making kernels, and proving the program for all ranks",
     [](mlir::OpPassManager &manager, mlir::ModuleOp, const Lowering &lowering) {
       kernels::buildExecPipeline(manager, {lowering.target.str()});
       return mlir::success();
     }},
    {Level::Llvm, "lowering to LLVM",
     [](mlir::OpPassManager &manager, mlir::ModuleOp module, const Lowering &lowering) {
       llvm::FailureOr<std::unique_ptr<kernels::Target>> target = kernels::targetOfModule(module);
       if (mlir::succeeded(target))
         kernels::buildLlvmPipeline(manager, **target, lowering.entered < Level::Exec);
       return mlir::success(mlir::succeeded(target));
     }},
};

/// Whether cuBLASLt may compute products of a target. Targets that run on this machine have no cuBLASLt.
bool takesProducts(const kernels::Target &target) {
  return isCuda(target.chip()) && target.libraryChip();
}

/// Refuses options that the module's level has answered already, and targets that do not fit. False after an
/// error.
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
  if (level > Level::Optim && !options.cluster.empty())
    return refuse("--cluster", Level::Optim);
  if (level > Level::Optim && options.waves)
    return refuse("--waves", Level::Optim);
  if (level > Level::Optim && options.workspaceLimit)
    return refuse("--workspace-limit", Level::Optim);
  if (level > Level::Optim && options.stateLimit)
    return refuse("--state-limit", Level::Optim);
  if (level > Level::Optim && !options.keepOwners.empty())
    return refuse("--keep-owners", Level::Optim);
  if (level > Level::Optim && options.maxPeers)
    return refuse("--max-peers", Level::Optim);
  if (level > Level::Scheduled && !options.targets.empty())
    return refuse("--target", Level::Scheduled);
  if (level > Level::Scheduled && !options.products.empty())
    return refuse("--products", Level::Scheduled);
  bool isTaken = false, isAnyCuda = false;
  for (const std::string &text : options.targets) {
    auto target = llvm::cantFail(kernels::targetOfText(text), "it was checked");
    isTaken |= takesProducts(*target);
    isAnyCuda |= isCuda(target->chip());
  }
  if (options.sanitizer != codegen::Sanitizer::None && isAnyCuda) {
    report.error("expected --sanitize with cpu or emulated, whose code it instruments, found '" +
                 llvm::join(options.targets, "' and '") + "'");
    report.hint("emulated:<gpu>,races watches a GPU's kernels here, compute-sanitizer on a GPU");
    return false;
  }
  if (options.targets.size() > STEPC_MOST_PROGRAMS) {
    report.error("expected at most " + Twine(STEPC_MOST_PROGRAMS) +
                 " targets of a library, each GPU one, found " + Twine(options.targets.size()));
    return false;
  }
  if (options.products.empty() || isTaken)
    return true;
  report.error(
      "expected --products with --target cuda:<gpu>,… whose products are tensor cores', found " +
      (options.targets.empty() ? "no target" : "'" + llvm::join(options.targets, "' and '") + "'"));
  report.hint(isAnyCuda ? "chain promises the CPU's bits, which cuBLASLt's are not"
                        : "there is no cuBLASLt elsewhere");
  return false;
}

/// The exit code for a pipeline's failure: see docs/exit-codes.md.
int codeOfFailure(Level to, const CompileOptions &options, Report &report) {
  // A pass that fails without a message is a fault of stepc, never of the input.
  if (!report.hasErrors()) {
    report.internalError("the passes to level " + name(to) + " failed without a message");
    return kInternalError;
  }
  if (report.hasUsageErrors())
    return kUsageError;
  // IR text of any level may say anything. Up to level decided so may a specification.
  if (isModulePath(options.input) || to <= Level::Decided || report.hasInputErrors())
    return kInputError;
  if (report.hasToolErrors())
    return kInternalError;
  report.internalError("the passes to level " + name(to) + " refused what those to level " +
                       name(Level::Decided) + " had accepted");
  return kInternalError;
}

/// Refuses sizes that a plan cannot hold, at a level at which they are still the input's fault.
bool checkLimits(mlir::ModuleOp module) {
  llvm::FailureOr<ProgramPlan> program = planFromModule(module);
  return succeeded(program) && succeeded(blameParameters(module, *program));
}

/// The first target whose products of 16-bit operands run on tensor cores. Empty if there is none.
StringRef firstWithTensorCores(mlir::MLIRContext *context, const CompileOptions &options) {
  mlir::Type type = mlir::Float16Type::get(context);
  for (StringRef text : options.targets) {
    auto target = llvm::cantFail(kernels::targetOfText(text), "it was checked");
    if (target->accumulation(type, type) == exec::Accumulation::TensorCore)
      return text;
  }
  return {};
}

/// Refuses the Gram form of f32 for a target with tensor cores. They do not multiply f32, and the form is
/// asked for because it is fast. Only level decided has both forms and shapes. False after an error.
bool checkForms(mlir::ModuleOp module, const CompileOptions &options, Report &report) {
  StringRef target = firstWithTensorCores(module.getContext(), options);
  if (target.empty())
    return true;
  llvm::DenseSet<mlir::Location> refused; // of rules that several routes have
  for (auto group : module.getOps<optim::GroupOp>()) {
    auto rule =
        mlir::SymbolTable::lookupNearestSymbolFrom<optim::RuleOp>(group, group.getRuleAttr());
    rule.walk([&](optim::OrthogonalizeOp op) {
      bool isGram = op.isGram(group.getRows(), group.getCols());
      if (!isGram || !op.getType().getElementType().isF32() || !refused.insert(op.getLoc()).second)
        return;
      {
        mlir::InFlightDiagnostic error = op.emitError()
                                         << "expected 'precision = f16' or 'precision = bf16' with "
                                            "'form = gram' for the tensor cores of target '"
                                         << target << "', found 'precision = f32'";
        if (op.getForm() == optim::Form::Auto)
          error.attachNote() << "'form = auto' is gram for blocks of " << group.getRows() << " x "
                             << group.getCols() << ", as in parameter '"
                             << group.getExemplar().getSymName() << "'";
      }
      report.hint("tensor cores do not multiply f32: 'form = standard' and targets with 'chain' do "
                  "without them");
    });
  }
  return refused.empty();
}

/// Takes a module from one level to another. Returns the level that it did not reach, or whose module was
/// refused, if there is one.
std::optional<Level> climb(mlir::ModuleOp module, Level from, Level to, const Lowering &lowering,
                           Report &report) {
  const CompileOptions &options = lowering.options;
  mlir::MLIRContext *context = module.getContext();
  Progress progress("stepc");
  if (from == Level::Decided && !checkForms(module, options, report))
    return Level::Decided;
  for (const Rung &rung : kRungs) {
    if (rung.to <= from || rung.to > to)
      continue;
    progress.stage(rung.doing);
    mlir::PassManager manager(context);
    // Verify once per rung, below. After each pass, verifying would take a tenth of the time of lowering.
    manager.enableVerifier(options.printIrAfterAll);
    if (options.printIrAfterAll) {
      context->disableMultithreading();
      manager.enableIRPrinting(/*shouldPrintBeforePass=*/nullptr,
                               [](mlir::Pass *, mlir::Operation *) { return true; },
                               /*printModuleScope=*/false, /*printAfterOnlyOnChange=*/false);
    }
    if (options.timing)
      manager.enableTiming();
    if (mlir::failed(rung.build(manager, module, lowering)) || mlir::failed(manager.run(module)) ||
        mlir::failed(mlir::verify(module)))
      return rung.to;
    if (rung.to != Level::Decided)
      continue;
    if (!checkForms(module, options, report) ||
        (!isModulePath(options.input) && !checkLimits(module)))
      return Level::Decided;
  }
  return std::nullopt;
}

/// Schedules a module of level optim within its limit of workspace. Waves are chosen by a model, which may
/// miss by some percent. If the schedule is above the limit, waves are chosen again for less, down to the
/// least. If none is within the limit, the error is about the schedule that needs least.
std::optional<Level> scheduleWithin(mlir::ModuleOp module, int64_t limit, Lowering lowering,
                                    Report &report) {
  constexpr int kAttempts = 5;
  mlir::MLIRContext *context = module.getContext();
  mlir::OwningOpRef<mlir::ModuleOp> original = module.clone();
  std::vector<mlir::Diagnostic> least;
  int64_t leastNeeded = std::numeric_limits<int64_t>::max();
  std::optional<Level> stop;
  lowering.targetBytes = limit;
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    std::vector<mlir::Diagnostic> said;
    int64_t needed = 0;
    {
      mlir::ScopedDiagnosticHandler keep(context, [&](mlir::Diagnostic &diagnostic) {
        int64_t bytes = comm::neededBytes(diagnostic);
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && !bytes)
          return mlir::failure(); // is printed at once: no other schedule mends it
        needed = std::max(needed, bytes);
        said.push_back(std::move(diagnostic));
        return mlir::success();
      });
      stop = climb(module, Level::Optim, Level::Scheduled, lowering, report);
    }
    if (attempt == 1 || needed < leastNeeded) {
      least = std::move(said);
      leastNeeded = needed; // 0 if no schedule is above the limit
    }
    if (needed == 0 || attempt == kAttempts)
      break;
    double part = std::min(double(limit) / double(needed), 15.0 / 16);
    bool isLast = attempt + 1 == kAttempts;
    int64_t next = isLast ? 1 : std::max<int64_t>(1, int64_t(double(lowering.targetBytes) * part));
    if (next == lowering.targetBytes)
      break;
    lowering.targetBytes = next;
    mlir::OwningOpRef<mlir::ModuleOp> again = original->clone();
    module->setAttrs((*again)->getAttrDictionary());
    module.getBodyRegion().takeBody(again->getBodyRegion());
  }
  for (mlir::Diagnostic &diagnostic : least)
    context->getDiagEngine().emit(std::move(diagnostic));
  return stop;
}

/// Lowers a module from one level to another. Returns an exit code.
int lower(mlir::ModuleOp module, Level from, Level to, const Lowering &lowering, Report &report) {
  const CompileOptions &options = lowering.options;
  std::optional<Level> stop;
  auto limit = module->getAttrOfType<mlir::IntegerAttr>(comm::kLimitAttr);
  if (limit && !options.waves && from == Level::Optim && to >= Level::Scheduled) {
    stop = scheduleWithin(module, limit.getInt(), lowering, report);
    from = Level::Scheduled;
  }
  if (!stop)
    stop = climb(module, from, to, lowering, report);
  return stop ? codeOfFailure(*stop, options, report) : kSuccess;
}

/// The module's level, if the module can be lowered to `to` with these options. Otherwise nothing, after an
/// error, and `exitCode` says of what kind.
std::optional<Level> checkedLevel(mlir::ModuleOp module, Level to, const CompileOptions &options,
                                  Report &report, int &exitCode) {
  std::optional<Level> level = levelOf(module);
  exitCode = kInputError;
  if (!level)
    return std::nullopt;
  exitCode = kUsageError;
  if (!checkOptions(module, *level, options, report))
    return std::nullopt;
  if (*level > to) {
    report.error("expected a module at level " + name(to) + " or before, found one at level " +
                 name(*level));
    return std::nullopt;
  }
  // A module without parameters is wrong input, as a manifest without parameters is.
  exitCode = kInputError;
  if (*level <= Level::Decided && module.getOps<optim::ParameterOp>().empty()) {
    module.emitError("expected at least one optim.parameter, found none");
    return std::nullopt;
  }
  if (!options.products.empty() && !readProducts(module, options.products, report))
    return std::nullopt;
  exitCode = kSuccess;
  return level;
}

} // namespace

bool driver::expectOneTarget(const CompileOptions &options, StringRef what, Report &report) {
  if (options.targets.size() <= 1)
    return true;
  report.error("expected one target for " + what + ", found " + llvm::join(options.targets, ", "));
  return false;
}

int driver::lowerTo(mlir::ModuleOp module, Level level, const CompileOptions &options,
                    Report &report) {
  int exitCode = kSuccess;
  std::optional<Level> entered = checkedLevel(module, level, options, report, exitCode);
  if (!entered)
    return exitCode;
  return lower(module, *entered, level, {options, *entered, firstTarget(options)}, report);
}

int driver::lowerForTargets(mlir::OwningOpRef<mlir::ModuleOp> module, const CompileOptions &options,
                            Report &report,
                            llvm::SmallVectorImpl<mlir::OwningOpRef<mlir::ModuleOp>> &programs) {
  int exitCode = kSuccess;
  std::optional<Level> entered = checkedLevel(*module, Level::Llvm, options, report, exitCode);
  if (!entered)
    return exitCode;
  // Programs part at level scheduled, the last one that knows of no target, or at the module's level if that
  // is later.
  Level fork = std::max(*entered, Level::Scheduled);
  if (int code = lower(*module, *entered, fork, {options, *entered, ""}, report))
    return code;
  for (size_t i = 1; i < options.targets.size(); ++i)
    programs.push_back(module->clone());
  programs.insert(programs.begin(), std::move(module));
  for (auto [index, program] : llvm::enumerate(programs)) {
    StringRef target = options.targets.empty() ? StringRef() : options.targets[index];
    if (!options.products.empty() &&
        !takesProducts(*llvm::cantFail(kernels::targetOfText(target), "it was checked")))
      (*program)->removeAttr(exec::kProductsAttr);
    if (int code = lower(*program, fork, Level::Llvm, {options, *entered, target}, report))
      return code;
  }
  return kSuccess;
}

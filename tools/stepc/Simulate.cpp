//===- Simulate.cpp - stepc simulate ---------------------------------------===//

#include "passes/cost/Profiles.h"
#include "passes/decide/ClusterOfModule.h"
#include "passes/kernels/Target.h"
#include "passes/kernels/TargetShape.h"
#include "passes/plan/PlanOfProgram.h"
#include "passes/simulate/Report.h"
#include "passes/verify/Passes.h"

#include "tools/stepc/Files.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Pipeline.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace stepc;
using namespace stepc::driver;
using llvm::StringRef;

/// The most slices and tracks of a trace or a page, so that a browser shows them at once.
static constexpr int64_t kMostSlices = 200000, kMostTracks = 64;

/// Checks, before the work, that an output can be written in a folder that exists. An empty path is no
/// output.
static bool checkPlace(const NamedFile &file, Report &report) {
  StringRef path = file.path;
  if (path.empty() || path == "-")
    return true;
  StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  if (!llvm::sys::fs::is_directory(folder)) {
    report.error(path, "expected a file in a folder that exists, found no folder '" + folder + "'");
    return false;
  }
  return canWriteFile(report, file.option, path);
}

static simulate::Options optionsOf(const SimulateCommand &command, const cost::Cluster &cluster) {
  // By default messages travel as they did when waves were chosen.
  bool travels = command.messages.empty() ? cluster.device.overlaps : command.messages == "streams";
  return {travels ? simulate::Progress::Streams : simulate::Progress::Waits,
          command.oversubscribed.first, command.oversubscribed.second};
}

int driver::runSimulate(const SimulateCommand &command) {
  Input input;
  if (!expectOneTarget(command, "simulate, which walks one target's program", input.report))
    return kUsageError;
  const StringRef paths[] = {command.json, command.trace, command.html};
  auto printed = llvm::count(paths, "-");
  if (printed > 1) {
    input.report.error("expected - after one of --json, --trace and --html, found it after " +
                       llvm::Twine(printed));
    return kUsageError;
  }
  const NamedFile files[] = {
      {"--json", command.json}, {"--trace", command.trace}, {"--html", command.html}};
  if (!areApart(input.report, files, inputsOf(command)))
    return kUsageError;
  for (const NamedFile &file : files)
    if (!checkPlace(file, input.report))
      return kInputError;
  int exitCode = kSuccess;
  mlir::OwningOpRef<mlir::ModuleOp> module = input.load(command, exitCode);
  if (!module)
    return exitCode;
  bool isProgram = levelOf(*module) == Level::Exec;
  if (int code = lowerTo(*module, Level::Exec, command, input.report))
    return code;
  // IR text at this level is not proven yet, and only a program that could run may be walked.
  mlir::PassManager manager(module->getContext());
  if (isProgram)
    manager.addPass(verify::createVerifyProgram());
  if (failed(manager.run(*module)))
    return kInputError;
  llvm::FailureOr<plan::Plan> plan = planOfProgram(*module);
  if (failed(plan))
    return kInternalError;
  cost::Cluster cluster = decide::clusterOf(*module);
  simulate::Options options = optionsOf(command, cluster);
  simulate::Result result;
  int64_t kept = 0;
  if (!command.trace.empty() || !command.html.empty())
    kept = std::clamp<int64_t>(kMostSlices / std::max<int64_t>(1, int64_t(plan->commands.size())),
                               4, kMostTracks);
  if (std::string wrong = simulate::simulate(*plan, cluster, options, kept, result);
      !wrong.empty()) {
    input.report.internalError("the program cannot be simulated: " + wrong);
    return kInternalError;
  }
  simulate::Report report{*plan, cluster, options, result,
                          command.targets.empty() ? "" : command.targets.front()};
  auto write = [&](StringRef path, auto text) {
    return path.empty() || writeFile(input.report, path, {text(report)});
  };
  bool good = write(command.json, simulate::toJson) && write(command.trace, simulate::toTrace) &&
              write(command.html, simulate::toPage) &&
              write(printed > 0 ? "" : "-", simulate::toText);
  return good ? kSuccess : kInputError;
}

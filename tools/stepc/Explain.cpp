//===- Explain.cpp - stepc explain -----------------------------------------===//

#include "passes/explain/Explain.h"

#include "tools/stepc/Files.h"
#include "tools/stepc/Input.h"
#include "tools/stepc/Pipeline.h"

using namespace stepc;
using namespace stepc::driver;

int driver::runExplain(const ExplainCommand &command) {
  Input input;
  if (!expectOneTarget(command, "explain, which shows one target's products", input.report))
    return kUsageError;
  int exitCode = kSuccess;
  mlir::OwningOpRef<mlir::ModuleOp> module = input.load(command, exitCode);
  if (!module)
    return exitCode;
  if (int code = lowerTo(*module, Level::Scheduled, command, input.report))
    return code;
  std::unique_ptr<kernels::Target> target;
  if (!command.targets.empty())
    target = llvm::cantFail(kernels::targetOfText(command.targets.front()), "it was checked");
  llvm::FailureOr<explain::Report> report = explain::explain(*module, target.get());
  if (failed(report)) {
    input.report.internalError("the scheduled program cannot be explained");
    return kInternalError;
  }
  report->target = command.targets.empty() ? "" : command.targets.front();
  std::string text = command.json ? explain::toJson(*report) : explain::toText(*report);
  return writeFile(input.report, "-", {text}) ? kSuccess : kInputError;
}

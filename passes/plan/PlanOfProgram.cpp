//===- PlanOfProgram.cpp - The plan of a module at level exec --------------===//

#include "passes/plan/PlanOfProgram.h"
#include "passes/plan/PlanFromIR.h"
#include "runtime/plan/Tables.h"

using namespace mlir;
using namespace stepc;

FailureOr<plan::Plan> stepc::planOfProgram(ModuleOp module) {
  auto programs = module.getOps<exec::ProgramOp>();
  if (!llvm::hasSingleElement(programs))
    return module.emitOpError("expected one exec.program, found ")
           << std::distance(programs.begin(), programs.end());
  exec::ProgramOp program = *programs.begin();
  FailureOr<ProgramPlan> symbols = planFromModule(module);
  if (failed(symbols))
    return failure();
  plan::Plan &plan = symbols->plan;
  plan.arenaBytes = program.getArena();
  plan.scratchBytes = program.getScratch();
  plan.chunkElements = program.getChunk();
  exec::Numbering numbering(plan, symbols->meshes, symbols->groups, symbols->segments);
  if (program.getPools())
    for (auto pool : program.getPoolsAttr().getAsRange<exec::PoolAttr>())
      if (failed(numbering.pool(program, pool)))
        return failure();
  SmallVector<Operation *> commands;
  for (auto command : program.getBody().getOps<exec::CommandOpInterface>()) {
    FailureOr<plan::Command> made = command.lower(numbering);
    if (failed(made))
      return failure();
    plan.commands.push_back(std::move(*made));
    commands.push_back(command);
  }
  // A kernel that a target has made has an attribute that says how a GPU starts it.
  for (plan::Kernel &kernel : plan.kernels)
    if (Operation *made = module.lookupSymbol(kernel.name))
      if (auto launch = made->getAttrOfType<exec::LaunchAttr>(exec::kLaunchAttr))
        kernel.launch = launch.getValue();
  if (std::string wrong = plan::validate(plan); !wrong.empty())
    return program.emitOpError("expected consistent tables: ") << wrong;
  int64_t which = 0;
  if (std::string wrong = plan::validateProgram(plan, &which); !wrong.empty()) {
    Operation *at = commands.empty() ? program.getOperation() : commands[which];
    return at->emitOpError("expected a consistent program: ") << wrong;
  }
  return std::move(plan);
}

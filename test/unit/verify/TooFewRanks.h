//===- TooFewRanks.h - A communicator that a message leaves -----*- C++ -*-===//
#ifndef STEPC_TEST_UNIT_VERIFY_TOOFEWRANKS_H
#define STEPC_TEST_UNIT_VERIFY_TOOFEWRANKS_H

#include "RandomProgram.h"

#include "passes/plan/PlanFromIR.h"
#include "runtime/plan/Tables.h"

namespace stepc::test {

/// Part of an axis of a mesh, beyond which a message of the start goes; null when the draw has all.
inline comm::CommunicatorAttr tooFewRanks(mlir::ModuleOp module, comm::StartOp start,
                                          Random &random) {
  mlir::FailureOr<ProgramPlan> program = planFromModule(module);
  if (failed(program))
    return {};
  const plan::Plan &plan = program->plan;
  plan::Communicator part{draw(random, 0, int64_t(plan.meshes.size()) - 1), {}};
  const plan::Mesh &mesh = plan.meshes[part.mesh];
  int64_t axis = draw(random, 0, int64_t(mesh.sizes.size()) - 1), size = draw(random, 1, 4);
  int64_t stride = draw(random, 1, 2);
  if (mesh.sizes[axis] % (stride * size) == 0)
    part.factors = {{axis, stride, size}};
  plan::Expander expander(plan);
  for (int64_t rank = 0; rank < int64_t(plan.world().size()); ++rank) {
    std::vector<int64_t> members = plan::members(plan, part, rank);
    auto made = expander.start(*plan.starts()[start.getOrder()], rank);
    for (const plan::Message &message : made->messages)
      if (message.sendCount + message.receiveCount > 0 &&
          !llvm::is_contained(members, message.peer))
        return comm::CommunicatorAttr::get(
            module.getContext(), mlir::FlatSymbolRefAttr::get(module.getContext(), mesh.name),
            part.factors);
  }
  return {};
}

} // namespace stepc::test

#endif

//===- MergeStarts.cpp - What travels with one start -----------------------===//

#include "passes/schedule/MergeStarts.h"

#include "passes/distribute/Communicators.h"
#include "runtime/plan/Parcels.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::comm;
using namespace stepc::schedule;

plan::Place StartMerger::placeOf(Value packed) const {
  PlaceAttr place = comm::placeOf(packed);
  return place.toPlan(ProgramPlan::find(program.segments, place.getSymbol()));
}

LogicalResult StartMerger::checkRanks(CollectiveOpInterface op) const {
  CommunicatorAttr ranks = *ranksOf(op->getOperand(0));
  if (!ranks)
    return success();
  for (Value send : op.getSends()) {
    plan::Place place = placeOf(send);
    const plan::Group &group = program.plan.groups[program.plan.segments[place.segment].group];
    const plan::Mesh &mesh = program.plan.meshes[group.mesh];
    std::vector<plan::Factor> factors = distribute::factorsOf(
        group, mesh, plan::home(group, program.plan.rules[group.rule]), place.from, place.to);
    if (ranks.getMesh().getValue() != mesh.name ||
        !distribute::meetAlong(factors, ranks.getFactors()))
      return op->emitOpError("expected a communicator on which all ranks of its moves meet, ")
             << CommunicatorAttr::get(op->getContext(),
                                      FlatSymbolRefAttr::get(op->getContext(), mesh.name), factors)
             << ", found " << ranks;
  }
  return success();
}

bool StartMerger::leadsThere(const plan::Place &place) const {
  const plan::Group &group = program.plan.groups[program.plan.segments[place.segment].group];
  int64_t from = place.from.level(group), to = place.to.level(group);
  // A move between shards with different placements.
  if (from == to)
    return place.to == plan::home(group, program.plan.rules[group.rule]);
  return from < to;
}

/// The communicator on which the ranks of both meet. Null (the world) if either is null.
CommunicatorAttr StartMerger::join(CommunicatorAttr one, CommunicatorAttr other) const {
  if (!one || !other)
    return {};
  int64_t mesh = ProgramPlan::find(program.meshes, one.getMesh());
  return CommunicatorAttr::join(one, other, program.plan.meshes[mesh]);
}

/// Whether there are two ranks that meet on both communicators.
bool StartMerger::shareAPair(CommunicatorAttr one, CommunicatorAttr other) {
  auto [known, isNew] = pairs.try_emplace({one, other});
  auto toPlan = [&](CommunicatorAttr ranks) {
    return ranks ? ranks.toPlan(ProgramPlan::find(program.meshes, ranks.getMesh()))
                 : plan::Communicator();
  };
  if (isNew)
    known->second = plan::shareAPair(program.plan, toPlan(one), toPlan(other));
  return known->second;
}

/// Whether both have one kind of collective, and the same ranks share copies of their values.
bool StartMerger::areAlike(const Together &one, const Together &other) const {
  return one.kind == other.kind && plan::gatherTogether(program.plan, placeOf(one.sends.front()),
                                                        placeOf(other.sends.front()));
}

bool StartMerger::meet(const Together &one, const Together &other) {
  return one.there == other.there && (areAlike(one, other) || (one.travels && other.travels &&
                                                               shareAPair(one.ranks, other.ranks)));
}

void StartMerger::add(Together &one, const Together &other) {
  if (!areAlike(one, other))
    one.kind = CollectiveKind::Exchange;
  one.ranks = join(one.ranks, other.ranks);
  one.travels |= other.travels;
  llvm::append_range(one.sends, other.sends);
  llvm::append_range(one.receives, other.receives);
}

SmallVector<Together> StartMerger::merge(ArrayRef<CollectiveOpInterface> collectives) {
  SmallVector<Together> starts;
  for (CollectiveOpInterface op : collectives)
    for (auto [send, receive] : llvm::zip_equal(op.getSends(), op.getReceives())) {
      plan::Place place = placeOf(send);
      // If no ranks share copies of a gathered value, it is already on all ranks and does not travel.
      bool travels =
          op.getKind() != CollectiveKind::AllGather || plan::isShared(program.plan, place);
      Together joined{op.getKind(), *ranksOf(op->getOperand(0)),
                      op.getLoc(),  leadsThere(place),
                      travels,      {send},
                      {receive}};
      // The new start may meet several starts that do not meet each other. Once joined with them, it has
      // their ranks and may meet further starts. The result takes the position of the first joined start.
      size_t at = starts.size();
      auto meetsIt = [&](const Together &one) { return meet(one, joined); };
      for (auto *one = llvm::find_if(starts, meetsIt); one != starts.end();
           one = llvm::find_if(starts, meetsIt)) {
        at = std::min(at, size_t(one - starts.begin()));
        add(*one, joined);
        joined = std::move(*one);
        starts.erase(one);
      }
      starts.insert(starts.begin() + at, std::move(joined));
    }
  return starts;
}

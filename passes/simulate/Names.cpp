//===- Names.cpp - What a slice of a track stands for ----------------------===//

#include "passes/simulate/Report.h"

using namespace stepc;
using namespace stepc::simulate;

static std::string kernelOf(const plan::Plan &plan, const plan::Command &command) {
  return command.kernel < 0 ? std::string(plan::name(command.kind))
                            : plan.kernels[size_t(command.kernel)];
}

static std::string nameOf(const plan::Plan &plan, const plan::Command &command) {
  using enum plan::CommandKind;
  switch (command.kind) {
  case Product: {
    const plan::Operand &first = command.operands.front(), &out = command.operands.back();
    int64_t k = command.batch.transposeLhs ? first.rows : first.cols;
    return "product " + std::to_string(out.rows) + "×" + std::to_string(out.cols) + "×" +
           std::to_string(k);
  }
  case Reduce:
    return "reduce " + std::to_string(command.operands[0].rows) + "×" +
           std::to_string(command.operands[0].cols);
  case Start:
    return "copies of a start";
  default:
    return kernelOf(plan, command);
  }
}

Names::Names(const plan::Plan &plan) {
  auto add = [&](std::vector<Named> &list, const plan::Command &command, std::string text) {
    Named &named = list.emplace_back(std::move(text));
    for (int64_t table : command.tables)
      named.segments.push_back(plan.segments[size_t(plan.tables[size_t(table)].from.segment)].name);
    for (int64_t group : command.groups)
      named.segments.push_back(plan.groups[size_t(group)].name);
  };
  for (const plan::Command &command : plan.commands)
    add(commands, command, ::nameOf(plan, command));
  for (const plan::Command *start : plan.starts()) {
    const plan::Place &place = plan.tables[size_t(start->tables.front())].from;
    add(starts, *start,
        "exchange " + std::to_string(starts.size()) + ", " + plan::name(place.from) + " to " +
            plan::name(place.to));
  }
}

std::string simulate::nameOf(Lane lane) {
  switch (lane) {
  case Lane::Compute:
    return "compute";
  case Lane::Wait:
    return "wait";
  case Lane::Messages:
    break;
  }
  return "messages";
}

std::string simulate::nameOf(Progress progress) {
  return progress == Progress::Streams ? "streams" : "waits";
}

std::string simulate::nameOf(const Result &result, const Track &track) {
  std::string text = "rank " + std::to_string(result.world[size_t(track.rank)]);
  if (track.ranks.size() > 1)
    text += ", as " + std::to_string(track.ranks.size() - 1) + " more";
  return text;
}

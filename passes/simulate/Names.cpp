//===- Names.cpp - What a slice of a track stands for ----------------------===//

#include "passes/simulate/Report.h"

using namespace stepc;
using namespace stepc::simulate;

static std::string nameOf(const plan::Plan &plan, const plan::Command &command) {
  if (const auto *product = std::get_if<plan::Product>(&command)) {
    auto [m, n, k] = product->sizes();
    return "product " + std::to_string(m) + "×" + std::to_string(n) + "×" + std::to_string(k);
  }
  if (const auto *apply = std::get_if<plan::Apply>(&command)) {
    std::string text = apply->function;
    for (const plan::Operand &source : apply->sources)
      text += " " + std::to_string(source.rows) + "×" + std::to_string(source.cols);
    return text;
  }
  if (std::holds_alternative<plan::Start>(command))
    return "copies of a start";
  std::string name(plan::name(command));
  plan::forEach<plan::KernelNumber>(command, [&](plan::KernelNumber kernel) {
    if (!kernel.isNone())
      name = plan.kernels[size_t(kernel.value)].name;
  });
  return name;
}

Names::Names(const plan::Plan &plan) {
  auto add = [&](std::vector<Named> &list, const auto &command, std::string text) {
    Named &named = list.emplace_back(std::move(text));
    plan::forEach<plan::TableNumber>(command, [&](plan::TableNumber table) {
      const plan::Place &place = plan.tables[size_t(table.value)].from;
      named.segments.push_back(plan.segments[size_t(place.segment)].name);
    });
    plan::forEach<plan::GroupNumber>(command, [&](plan::GroupNumber group) {
      named.segments.push_back(plan.groups[size_t(group.value)].name);
    });
  };
  for (const plan::Command &command : plan.commands)
    add(commands, command, ::nameOf(plan, command));
  for (const plan::Start *start : plan.starts()) {
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

//===- SideBySide.cpp - Which products of chains stand side by side ---------===//

#include "passes/cost/SideBySide.h"

#include <algorithm>
#include <map>

namespace stepc::cost {
namespace {

using Forms = std::vector<int64_t>;

/// The shortest sequence that has both sequences in it, and where their steps are in it.
struct Merged {
  Forms forms;
  std::vector<size_t> first, second;
};

Merged merge(const Forms &a, const Forms &b) {
  // shortest[i][j]: the length of the shortest such sequence for a from i on and b from j on.
  std::vector<std::vector<size_t>> shortest(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = a.size() + 1; i-- > 0;)
    for (size_t j = b.size() + 1; j-- > 0;)
      shortest[i][j] = i == a.size()   ? b.size() - j
                       : j == b.size() ? a.size() - i
                       : a[i] == b[j]  ? 1 + shortest[i + 1][j + 1]
                                       : 1 + std::min(shortest[i + 1][j], shortest[i][j + 1]);
  Merged made;
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    bool both = i < a.size() && j < b.size() && a[i] == b[j];
    bool first =
        both || j == b.size() || (i < a.size() && shortest[i + 1][j] <= shortest[i][j + 1]);
    size_t column = made.forms.size();
    made.forms.push_back(first ? a[i] : b[j]);
    if (first) {
      made.first.push_back(column);
      ++i;
    }
    if (both || !first) {
      made.second.push_back(column);
      ++j;
    }
  }
  return made;
}

/// Steps of a chain, each of products of one form that do not wait for each other.
struct Steps {
  Forms forms;                // by step
  std::vector<size_t> stepOf; // by product
};

/// A product joins the first step behind those that it waits for, if a step there has its form.
Steps stepsOf(const Chain &chain) {
  Steps steps;
  for (const ChainProduct &product : chain) {
    size_t step = 0;
    for (size_t before : product.after)
      step = std::max(step, steps.stepOf[before] + 1);
    while (step < steps.forms.size() && steps.forms[step] != product.form)
      ++step;
    if (step == steps.forms.size())
      steps.forms.push_back(product.form);
    steps.stepOf.push_back(step);
  }
  return steps;
}

} // namespace

std::vector<std::vector<size_t>> columnsOf(const std::vector<Chain> &chains) {
  std::map<Forms, std::vector<size_t>> columns; // of steps
  Forms all;
  std::vector<Steps> steps;
  for (const Chain &chain : chains) {
    steps.push_back(stepsOf(chain));
    auto [own, isNew] = columns.try_emplace(steps.back().forms);
    if (!isNew)
      continue;
    Merged made = merge(all, own->first);
    own->second = made.second;
    for (auto &[forms, places] : columns)
      if (&forms != &own->first)
        for (size_t &place : places)
          place = made.first[place];
    all = std::move(made.forms);
  }
  std::vector<std::vector<size_t>> result;
  for (const Steps &chain : steps) {
    const std::vector<size_t> &places = columns.at(chain.forms);
    result.emplace_back();
    for (size_t step : chain.stepOf)
      result.back().push_back(places[step]);
  }
  return result;
}

} // namespace stepc::cost

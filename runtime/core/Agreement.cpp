//===- Agreement.cpp - Whether ranks step with equal numbers ----------------===//
#include "runtime/core/Agreement.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/text/Plural.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <tuple>

namespace stepc::runtime {
namespace {

__extension__ typedef unsigned __int128 Wide;

/// The largest prime below 2^64, and the difference 2^64 - kPrime.
constexpr uint64_t kPrime = STEPC_SEAL_PRIME, kBelow = uint64_t(0) - kPrime;
static_assert(sizeof(Seal) == sizeof(stepc_seal) && sizeof(Seal) == plan::kSealBytes);

constexpr uint64_t reduced(Wide number) {
  for (int i = 0; i < 2; ++i)
    number = (number >> 64) * kBelow + uint64_t(number);
  return uint64_t(number >= kPrime ? number - kPrime : number);
}
constexpr uint64_t plus(uint64_t a, uint64_t b) { return reduced(Wide(a) + b); }
constexpr uint64_t minus(uint64_t a, uint64_t b) { return reduced(Wide(a) + kPrime - b); }
constexpr uint64_t times(uint64_t a, uint64_t b) { return reduced(Wide(a) * b); }
constexpr uint64_t inverse(uint64_t number) {
  uint64_t result = 1;
  for (uint64_t exponent = kPrime - 2; exponent; exponent /= 2, number = times(number, number))
    if (exponent % 2)
      result = times(result, number);
  return result;
}

/// A weight of a sum (SplitMix64). Weights look random, and are equal on all ranks.
constexpr uint64_t weight(int64_t index, size_t word) {
  uint64_t mixed = (uint64_t(index) * Seal::kWords + word + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  return 1 + mixed % (kPrime - 1);
}
Seal weights(int64_t index) {
  Seal seal;
  for (size_t word = 0; word < Seal::kWords; ++word)
    seal.words[word] = weight(index, word);
  return seal;
}
/// The weight of a number is the weight of its parameter times the weight of its column.
Seal columnWeights(int64_t column) { return weights(-1 - column); }
/// Added to every seal, so that a seal of known numbers is almost never zero: zero means unknown.
Seal knownWeights() { return weights(INT64_MIN / 8); }

void add(Seal &sum, const Seal &other) {
  for (size_t word = 0; word < Seal::kWords; ++word)
    sum.words[word] = plus(sum.words[word], other.words[word]);
}
/// Adds factor · other to the sum.
void addTimes(Seal &sum, const Seal &other, uint64_t factor) {
  for (size_t word = 0; word < Seal::kWords; ++word)
    sum.words[word] = plus(sum.words[word], times(other.words[word], factor));
}
void addProduct(Seal &sum, const Seal &one, const Seal &other) {
  for (size_t word = 0; word < Seal::kWords; ++word)
    sum.words[word] = plus(sum.words[word], times(one.words[word], other.words[word]));
}

uint64_t bitsOf(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// The shortest text that is read as the same number.
std::string textOfDouble(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

/// Whether each rank of the mesh holds elements of the group's parameters.
bool allHold(const plan::Group &group, const plan::Mesh &mesh) {
  std::vector<int64_t> pieces(group.shape.size(), 1); // per dimension
  bool isEven = true;
  for (size_t axis = 0; axis < group.placements.size(); ++axis) {
    const plan::Placement &placement = group.placements[axis];
    if (placement.isShard())
      pieces[size_t(placement.dim)] *= mesh.sizes[axis] * placement.factor;
    else
      isEven &= placement.kind == plan::PlacementKind::Replicate;
  }
  for (size_t dim = 0; dim < pieces.size(); ++dim)
    isEven &= group.shape[dim] > 0 && group.shape[dim] % pieces[dim] == 0;
  for (size_t position = 0; !isEven && position < mesh.ranks.size(); ++position)
    for (int64_t size : geometry::localShape(group.shape, group.placements, mesh,
                                             geometry::coordinates(mesh, int64_t(position))))
      if (size == 0)
        return false;
  return true;
}

/// The numbers by which the bits of each class changed: the solution of sum over i of `sums[i]` · x[i] =
/// `difference`. Returns nothing unless there is exactly one solution, without a zero in it.
std::vector<uint64_t> solved(const std::vector<Seal> &sums, const Seal &difference) {
  size_t count = sums.size();
  std::vector<std::vector<uint64_t>> rows(Seal::kWords, std::vector<uint64_t>(count + 1));
  for (size_t word = 0; word < Seal::kWords; ++word) {
    for (size_t i = 0; i < count; ++i)
      rows[word][i] = sums[i].words[word];
    rows[word][count] = difference.words[word];
  }
  for (size_t i = 0; i < count; ++i) {
    auto pivot = std::find_if(rows.begin() + int64_t(i), rows.end(),
                              [&](const auto &row) { return row[i] != 0; });
    if (pivot == rows.end())
      return {};
    std::swap(*pivot, rows[i]);
    uint64_t factor = inverse(rows[i][i]);
    for (uint64_t &entry : rows[i])
      entry = times(entry, factor);
    for (size_t other = 0; other < rows.size(); ++other)
      if (uint64_t by = rows[other][i]; other != i && by != 0)
        for (size_t j = 0; j <= count; ++j)
          rows[other][j] = minus(rows[other][j], times(by, rows[i][j]));
  }
  std::vector<uint64_t> result;
  for (size_t i = 0; i < rows.size(); ++i)
    if ((rows[i][count] == 0) == (i < count))
      return {};
    else if (i < count)
      result.push_back(rows[i][count]);
  return result;
}

} // namespace

void Agreement::prepare(const Library &of, int64_t worldRank) {
  library = &of;
  const plan::Plan &plan = of.plan;
  size_t meshes = plan.meshes.size();
  isMember.clear();
  for (const plan::Mesh &mesh : plan.meshes)
    isMember.push_back(std::find(mesh.ranks.begin(), mesh.ranks.end(),
                                 of.world[size_t(worldRank)]) != mesh.ranks.end());
  std::vector<bool> isCompared;
  for (const plan::Group &group : plan.groups)
    isCompared.push_back(isMember[size_t(group.mesh)] &&
                         allHold(group, plan.meshes[size_t(group.mesh)]));
  stepSums.assign(meshes, {});
  stepWeights.assign(meshes, {});
  rowSums.assign(meshes, {});
  stride = 0;
  for (const plan::Rule &rule : plan.rules)
    stride = std::max(stride, int64_t(rule.hyperparameters.size()));
  meshOf.assign(plan.parameters.size(), -1);
  for (size_t p = 0; p < plan.parameters.size(); ++p) {
    int64_t group = plan.parameters[p].group;
    if (!isCompared[size_t(group)])
      continue;
    meshOf[p] = plan.groups[size_t(group)].mesh;
    add(stepWeights[size_t(meshOf[p])], weights(int64_t(p)));
  }
}

int64_t Agreement::columns(int64_t parameter) const {
  const plan::Plan &plan = library->plan;
  return int64_t(plan.rules[size_t(library->route(parameter).rule)].hyperparameters.size());
}

void Agreement::place(std::vector<int64_t> numbers) {
  rowOf = std::move(numbers);
  areRowsKnown = false;
  rowWeights.assign(library->plan.meshes.size(), {});
  columnsOf.assign(rowOf.empty() ? 0 : size_t(*std::max_element(rowOf.begin(), rowOf.end()) + 1),
                   0);
  rows.assign(columnsOf.size() * size_t(stride), 0);
  for (std::vector<Seal> &each : rowWeights)
    each.resize(columnsOf.size());
  for (size_t p = 0; p < rowOf.size(); ++p) {
    columnsOf[size_t(rowOf[p])] = columns(int64_t(p));
    if (meshOf[p] >= 0)
      add(rowWeights[size_t(meshOf[p])][size_t(rowOf[p])], weights(int64_t(p)));
  }
}

void Agreement::readRows(const double *values) {
  auto isRead = [&] {
    return rows.empty() ||
           std::memcmp(rows.data(), values, rows.size() * sizeof(double)) == 0; // bits
  };
  if (rowOf.empty() || (areRowsKnown && isRead()))
    return;
  std::copy_n(values, rows.size(), rows.data());
  std::fill(rowSums.begin(), rowSums.end(), Seal{});
  for (size_t row = 0; row < columnsOf.size(); ++row) {
    Seal sum;
    for (int64_t i = 0; i < columnsOf[row]; ++i)
      addTimes(sum, columnWeights(1 + i), bitsOf(rows[row * size_t(stride) + size_t(i)]));
    for (size_t mesh = 0; mesh < rowSums.size(); ++mesh)
      addProduct(rowSums[mesh], rowWeights[mesh][row], sum);
  }
  areRowsKnown = true;
}

void Agreement::readSteps(const int64_t *steps, bool areAlike, int64_t moved) {
  if (areStepsKnown && areAlike) {
    uint64_t by = moved >= 0 ? uint64_t(moved) : minus(0, uint64_t(-moved));
    for (size_t mesh = 0; mesh < stepSums.size(); ++mesh)
      addTimes(stepSums[mesh], stepWeights[mesh], by);
    return;
  }
  std::fill(stepSums.begin(), stepSums.end(), Seal{});
  for (size_t p = 0; p < meshOf.size(); ++p)
    if (meshOf[p] >= 0)
      addTimes(stepSums[size_t(meshOf[p])], weights(int64_t(p)), uint64_t(steps[p]));
  areStepsKnown = true;
}

Seal Agreement::of(const std::vector<int64_t> &meshes) const {
  Seal sum;
  for (int64_t mesh : meshes) {
    if (!areRowsKnown || !areStepsKnown || !isMember[size_t(mesh)])
      return {};
    add(sum, knownWeights());
    addProduct(sum, columnWeights(0), stepSums[size_t(mesh)]);
    add(sum, rowSums[size_t(mesh)]);
  }
  return sum;
}

void Agreement::listTerms(const std::vector<std::vector<int64_t>> &sets,
                          std::vector<stepc_seal_row> &listed, std::vector<stepc_seal_term> &terms,
                          std::vector<stepc_seal> &columnList) const {
  auto asStruct = [](const Seal &seal) {
    stepc_seal made;
    std::memcpy(&made, &seal, sizeof(made));
    return made;
  };
  for (int64_t column = 0; column <= stride; ++column)
    columnList.push_back(asStruct(columnWeights(column)));
  for (size_t number = 0; number < sets.size(); ++number) {
    const std::vector<int64_t> &meshes = sets[number];
    bool isKnown = std::all_of(meshes.begin(), meshes.end(),
                               [&](int64_t mesh) { return isMember[size_t(mesh)]; });
    Seal start;
    for (size_t i = 0; isKnown && i < meshes.size(); ++i)
      add(start, knownWeights());
    auto first = int64_t(terms.size());
    for (size_t p = 0; isKnown && p < meshOf.size(); ++p)
      if (std::find(meshes.begin(), meshes.end(), meshOf[p]) != meshes.end())
        terms.push_back({int64_t(p), columns(int64_t(p)), asStruct(weights(int64_t(p)))});
    listed.push_back({int64_t(number), 1, first, int64_t(terms.size()), 0, 0, asStruct(start)});
  }
}

// Lists first the classes of parameters that share a number, then each number of each single parameter.
std::vector<Agreement::Class> Agreement::classes(const std::vector<int64_t> &meshes,
                                                 const SealedNumbers &numbers) const {
  std::vector<Class> result, single;
  std::map<std::tuple<int64_t, int64_t, uint64_t>, size_t> known; // by column, route and number
  for (size_t p = 0; p < meshOf.size(); ++p) {
    if (std::find(meshes.begin(), meshes.end(), meshOf[p]) == meshes.end())
      continue;
    auto put = [&](int64_t column, int64_t route, uint64_t bits) {
      auto [found, isNew] = known.try_emplace({column, route, bits}, result.size());
      if (isNew)
        result.push_back({column, {}, bits});
      result[found->second].parameters.push_back(int64_t(p));
    };
    int64_t route = library->parameter(int64_t(p)).route;
    auto taken = uint64_t(numbers.steps[p]);
    put(0, -1, taken);
    put(0, route, taken);
    single.push_back({0, {int64_t(p)}, taken});
    for (int64_t i = 0; i < columns(int64_t(p)); ++i) {
      uint64_t bits = bitsOf(numbers.rowOfParameter(int64_t(p))[i]);
      put(1 + i, route, bits);
      single.push_back({1 + i, {int64_t(p)}, bits});
    }
  }
  result.insert(result.end(), single.begin(), single.end());
  return result;
}

std::vector<Agreement::Change> Agreement::solve(const Seal &difference,
                                                const std::vector<Class> &all) {
  std::vector<Seal> sums;
  for (const Class &one : all) {
    Seal parameters;
    for (int64_t p : one.parameters)
      add(parameters, weights(p));
    addProduct(sums.emplace_back(), parameters, columnWeights(one.column));
  }
  // Tries one class among all, then two and three among the first kFew. The last of the four words then
  // checks the solution.
  constexpr size_t kFew = 48;
  std::vector<size_t> chosen;
  std::vector<Seal> theirs;
  std::vector<Change> found;
  std::function<bool(size_t, size_t, size_t)> search = [&](size_t first, size_t end, size_t count) {
    if (count > 0) {
      for (size_t i = first; i < end; ++i) {
        chosen.push_back(i);
        theirs.push_back(sums[i]);
        if (search(i + 1, end, count - 1))
          return true;
        chosen.pop_back();
        theirs.pop_back();
      }
      return false;
    }
    std::vector<uint64_t> by = solved(theirs, difference);
    for (size_t i = 0; i < by.size(); ++i)
      found.push_back({&all[chosen[i]], plus(all[chosen[i]].bits, by[i])});
    return !by.empty();
  };
  for (size_t count = 1; count < Seal::kWords; ++count)
    if (search(0, count == 1 ? all.size() : std::min(all.size(), kFew), count))
      break;
  return found;
}

std::string Agreement::describe(const std::vector<int64_t> &meshes, const SealedNumbers &numbers,
                                const Seal &own, const Seal &other, int64_t otherRank,
                                int64_t ownRank) const {
  Seal difference;
  for (size_t word = 0; word < Seal::kWords; ++word)
    difference.words[word] = minus(other.words[word], own.words[word]);
  std::vector<Class> all;
  if (own.isKnown())
    all = classes(meshes, numbers);
  std::string theirs = rankName(*library, otherRank), ours = rankName(*library, ownRank);
  auto nameOf = [&](const Class &one) {
    const plan::Route &route = library->route(one.parameters[0]);
    return library->plan.rules[size_t(route.rule)].hyperparameters[size_t(one.column - 1)];
  };
  auto textOf = [](const Class &one, uint64_t bits) {
    return one.column == 0 ? std::to_string(bits) : textOfDouble(bits);
  };
  std::string text;
  for (const auto &[one, bits] : solve(difference, all)) {
    text += text.empty() ? "" : "; ";
    text += one->column == 0 ? plural(int64_t(bits), "step") + " taken"
                             : nameOf(*one) + " = " + textOf(*one, bits);
    text += " of '" + library->parameter(one->parameters[0]).name + "'";
    if (one->parameters.size() > 1)
      text += format(" and %zu more", one->parameters.size() - 1);
    text += " on " + theirs + ", and " + textOf(*one, one->bits) + " on " + ours;
  }
  if (!text.empty())
    return text;
  text = "others on " + theirs + " than on " + ours;
  if (all.empty())
    return text;
  // Too many numbers differ at once: the text names this rank's numbers of the first parameter.
  int64_t first = all[0].parameters[0];
  text += ", where '" + library->parameter(first).name + "' has taken " +
          plural(numbers.steps[first], "step");
  for (int64_t i = 0; i < columns(first); ++i) {
    Class one{1 + i, {first}, bitsOf(numbers.rowOfParameter(first)[i])};
    text += ", " + nameOf(one) + " = " + textOf(one, one.bits);
  }
  return text;
}

} // namespace stepc::runtime

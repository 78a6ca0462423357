//===- ValidateModel.cpp - What makes a plan's model safe to expand ------===//

#include "runtime/geometry/Geometry.h"
#include "runtime/plan/BlockStates.h"
#include "runtime/plan/Checks.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace stepc::plan {

namespace {

class ModelValidator {
public:
  ModelValidator(const Plan &plan, int64_t &wrongGroup) : plan(plan), wrongGroup(wrongGroup) {}

  Check run() {
    Check error;
    each(error, *this, "mesh", plan.meshes, &ModelValidator::mesh);
    each(error, *this, "rule", plan.rules, &ModelValidator::rule);
    each(error, *this, "route", plan.routes, &ModelValidator::route);
    for (auto check : {&ModelValidator::group, &ModelValidator::parts})
      if (int64_t wrong = each(error, *this, "group", plan.groups, check); wrong >= 0)
        wrongGroup = wrong;
    each(error, *this, "parameter", plan.parameters, &ModelValidator::parameter);
    return error.empty() ? model() : error;
  }

private:
  Check model() {
    if (plan.model == -1)
      return {};
    if (!inside(plan.model, plan.parameters))
      return outside("parameter that stands for the model,", plan.model, plan.parameters);
    const Group &group = at(plan.groups, plan.groupOfModel());
    std::vector<int64_t> world = plan.world();
    bool isSpread = group.shape == std::vector<int64_t>{static_cast<int64_t>(world.size())} &&
                    at(plan.meshes, group.mesh).sizes == group.shape &&
                    at(plan.meshes, group.mesh).ranks == world &&
                    group.placements == std::vector<Placement>{{PlacementKind::Shard}} &&
                    group.gradientPlacements.empty() && group.statePlacements.empty();
    bool isLast = plan.model + 1 == static_cast<int64_t>(plan.parameters.size());
    return isSpread && isLast && plan.isOfModel(group)
               ? Check()
               : "expected parameter '" + at(plan.parameters, plan.model).name +
                     "', which stands for the model, to be the last one, alone in its group, with "
                     "an element on each rank";
  }

  Check mesh(const Mesh &mesh, int64_t) {
    if (mesh.axes.size() != mesh.sizes.size())
      return "expected a name per axis, found " + std::to_string(mesh.axes.size()) + " names of " +
             std::to_string(mesh.sizes.size()) + " axes";
    int64_t count = 1;
    for (int64_t size : mesh.sizes) {
      if (size < 1)
        return "expected axes of size 1 or more, found " + std::to_string(size);
      count = product(count, size, kMaxRectangles);
    }
    if (count > kMaxRectangles)
      return "expected axes that span at most " + std::to_string(kMaxRectangles) +
             " ranks, found more";
    if (count != static_cast<int64_t>(mesh.ranks.size()))
      return "expected as many ranks as the axes span, found " + std::to_string(mesh.ranks.size());
    std::vector<int64_t> sorted = mesh.ranks;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front() < 0)
      return "expected ranks of 0 or more, found " + std::to_string(sorted.front());
    auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    return twice == sorted.end()
               ? Check()
               : "expected distinct ranks, found rank " + std::to_string(*twice) + " twice";
  }

  /// Whether a rule is another one of the transposed matrix, as far as declarations tell.
  static bool isTallOf(const Rule &tall, const Rule &rule) {
    return tall.tall == -1 && tall.hyperparameters == rule.hyperparameters &&
           std::equal(tall.states.begin(), tall.states.end(), rule.states.begin(),
                      rule.states.end(), [](const State &one, const State &other) {
                        return std::tie(one.name, one.dtype, one.master, one.metric, one.input) ==
                                   std::tie(other.name, other.dtype, other.master, other.metric,
                                            other.input) &&
                               one.kind == other.kind.ofTransposed();
                      });
  }

  Check rule(const Rule &rule, int64_t) {
    if (rule.tall != -1 && !inside(rule.tall, plan.rules))
      return outside("rule", rule.tall, plan.rules);
    if (rule.tall != -1 && !isTallOf(at(plan.rules, rule.tall), rule))
      return "expected a rule of tall matrices with the same hyperparameters, and the same states "
             "with rows and columns exchanged, found rule " +
             std::to_string(rule.tall);
    for (const State &state : rule.states) {
      if (!isKnown(state.dtype))
        return unknown("a type of state " + state.name, state.dtype);
      if (!isKnown(state.kind))
        return "expected extents of state " + state.name + " between 1 and 2^40, or of its block";
      if (!state.kind.isStored() && (state.master || state.input))
        return "expected state " + state.name + " to be full, rows, cols or one, found " +
               name(state.kind);
      if (state.input && (state.metric || state.master))
        return "expected input " + state.name + " to be no metric and no master, found one";
      if (state.metric &&
          (state.kind != ValueKind::One || state.dtype != DType::F32 || state.master))
        return "expected metric " + state.name + " to be an f32 of kind one and no master, found " +
               (state.master ? "a master"
                             : std::string(name(state.dtype)) + " of kind " + name(state.kind));
    }
    return {};
  }

  Check route(const Route &route, int64_t) {
    if (!inside(route.rule, plan.rules))
      return outside("rule", route.rule, plan.rules);
    if (route.defaults.size() != at(plan.rules, route.rule).hyperparameters.size())
      return "expected a default per hyperparameter, found " +
             std::to_string(route.defaults.size());
    if (!isKnown(route.missingGrad))
      return unknown("a treatment of missing gradients", route.missingGrad);
    return {};
  }

  /// Checks the sizes of the rule, and states that have sizes of their own.
  Check sizes(const Group &group) {
    if (group.sizes.size() > static_cast<size_t>(ValueKind::kMostSizes))
      return "expected at most " + std::to_string(ValueKind::kMostSizes) + " sizes, found " +
             std::to_string(group.sizes.size());
    for (int64_t size : group.sizes)
      if (size < 1 || size > ValueKind::kMostSize)
        return "expected sizes from 1 to 2^20, found " + std::to_string(size);
    for (const State &state : at(plan.rules, group.rule).states)
      if (!state.kind.isStored())
        if (Check message = checkValue(group, state.kind); !message.empty())
          return message;
    return {};
  }

  Check group(const Group &group, int64_t index) {
    if (!inside(group.rule, plan.rules))
      return outside("rule", group.rule, plan.rules);
    if (!inside(group.mesh, plan.meshes))
      return outside("mesh", group.mesh, plan.meshes);
    for (DType type : {group.parameterType, group.gradientType})
      if (!isKnown(type))
        return unknown("a type", type);
    if (Check message = shape(group); !message.empty())
      return message;
    if (Check message = division(group); !message.empty())
      return message;
    if (Check message = sizes(group); !message.empty())
      return message;
    for (auto [list, whose] : {std::pair(&group.placements, ""),
                               {&group.gradientPlacements, "gradient's "},
                               {&group.statePlacements, "states' "},
                               {&group.reducedPlacements, "reduced gradient's "}}) {
      bool mayBeLeftOut = list != &group.placements;
      if (mayBeLeftOut && list->empty())
        continue;
      if (Check message = placements(group, *list, whose); !message.empty())
        return message;
      if (mayBeLeftOut && list != &group.reducedPlacements && *list == group.placements)
        return "expected placements of the gradient and the states only where they differ from the "
               "parameter's, found equal ones";
    }
    if (geometry::mostRectangles(group, kMaxRectangles) > kMaxRectangles)
      return "expected shards of at most " + std::to_string(kMaxRectangles) + " pieces, found more";
    bool isPartial = std::any_of(group.gradientPlacements.begin(), group.gradientPlacements.end(),
                                 [](const Placement &each) { return each.isPartial(); });
    if (isPartial == group.reducedPlacements.empty())
      return std::string(
                 "expected placements of the reduced gradient where it is partial, found ") +
             (isPartial ? "none" : toString(group.reducedPlacements));
    if (Check message = checkHeld(plan, group); !message.empty())
      return message;
    for (size_t i = 0; i < group.parameters.size(); ++i) {
      if (!inside(group.parameters[i], plan.parameters))
        return outside("parameter", group.parameters[i], plan.parameters);
      const Parameter &parameter = at(plan.parameters, group.parameters[i]);
      if (!inside(parameter.group, plan.groups) ||
          parameter.indexInGroup != static_cast<int64_t>(i))
        return elsewhere(parameter, i);
      if (i == 0)
        for (int64_t part : group.parts.empty() ? std::vector<int64_t>{-1} : group.parts)
          if (!partsOf[parameter.group].insert(part).second)
            return "expected each part of " + parameter.name + " in one group, found part " +
                   std::to_string(part) + " again";
      const Group &first = at(plan.groups, parameter.group);
      if (parameter.group == index)
        continue;
      if (parameter.group != at(plan.parameters, group.parameters[0]).group ||
          !areOfEqualShards(group, first))
        return elsewhere(parameter, i);
      if (i == 0 && group.parameters != first.parameters)
        return "expected the parameters of group " + first.name +
               ", which has another part of them, found others";
    }
    if (Check wrong = checkHops(plan, group); !wrong.empty())
      return wrong;
    return checkBlockStates(group, at(plan.rules, group.rule).states);
  }

  /// The message for a parameter that a group lists although the parameter names another group or place.
  Check elsewhere(const Parameter &parameter, size_t place) const {
    return "expected parameter " + parameter.name + " at place " + std::to_string(place) +
           " of this group, found that it says place " + std::to_string(parameter.indexInGroup) +
           " of " + (inside(parameter.group, plan.groups) ? "" : "unknown ") + "group " +
           std::to_string(parameter.group);
  }

  static bool areOfEqualShards(const Group &a, const Group &b) {
    auto fields = [](const Group &g) {
      return std::tie(g.rule, g.mesh, g.shape, g.batchAxes, g.flatten, g.flattenSpecified,
                      g.parameterType, g.gradientType, g.placements, g.gradientPlacements,
                      g.statePlacements, g.division, g.specified);
    };
    return !a.parts.empty() && !b.parts.empty() && fields(a) == fields(b);
  }

  /// Checks that every row (column) is in one part, and that the parts of a group have equal sizes.
  Check division(const Group &group) {
    const auto &parts = group.division.parts;
    if (parts.empty())
      return group.parts.empty()
                 ? Check()
                 : "expected no part of matrices that are not divided, found part " +
                       std::to_string(group.parts[0]);
    if (!isKnown(group.division.axis) ||
        (group.flatten == 0 && static_cast<int64_t>(group.shape.size()) != group.batchAxes + 2))
      return "expected a division of the rows or the columns of matrices, found one of " +
             std::to_string(group.shape.size() - static_cast<size_t>(group.batchAxes)) + " axes";
    View matrix = matrixView(group.shape, group.batchAxes, group.flatten);
    bool isRows = group.division.axis == Division::Rows;
    if (Check message = checkDivision(group.division, isRows ? matrix.rows : matrix.cols);
        !message.empty())
      return message;
    int64_t last = -1;
    for (int64_t part : group.parts) {
      if (!inside(part, parts))
        return outside("part", part, parts);
      if (part <= last)
        return "expected parts of a group in their order, found part " + std::to_string(part) +
               " behind part " + std::to_string(last);
      last = part;
      if (int64_t extent = extentOf(at(parts, part)), first = extentOf(at(parts, group.parts[0]));
          extent != first)
        return "expected parts of equal size in a group, found " + std::to_string(first) + " and " +
               std::to_string(extent) + (isRows ? " rows" : " columns");
    }
    return {};
  }

  /// Checks that every part of a parameter is in some group.
  Check parts(const Group &group, int64_t index) {
    auto found = partsOf.find(index);
    size_t expected = group.parts.empty() ? 1 : group.division.parts.size();
    if (found == partsOf.end() || found->second.size() == expected)
      return {};
    return "expected groups of all " + std::to_string(expected) + " parts, found " +
           std::to_string(found->second.size());
  }

  Check shape(const Group &group) {
    auto axes = static_cast<int64_t>(group.shape.size());
    if (group.batchAxes < 0 || group.batchAxes > axes)
      return "expected at most " + std::to_string(axes) + " batch axes, found " +
             std::to_string(group.batchAxes);
    if (group.flatten != 0)
      if (Check message = checkFlatten(group.shape.size(), group.batchAxes, group.flatten);
          !message.empty())
        return message;
    if (Check message = checkJoined(group, at(plan.rules, group.rule).states); !message.empty())
      return message;
    // A size of 0 counts as 1, so that blocks of an empty tensor are bounded as well.
    int64_t total = std::max<int64_t>(1, static_cast<int64_t>(group.parameters.size()));
    int64_t blocks = product(total, std::max<int64_t>(1, static_cast<int64_t>(group.parts.size())),
                             kMaxRectangles);
    auto blockAxes = static_cast<int64_t>(keptAxes(group, ValueKind::Full).leading.size());
    for (int64_t axis = 0; axis < axes; ++axis) {
      int64_t size = at(group.shape, axis);
      if (size < 0)
        return "expected sizes of 0 or more, found " + std::to_string(size);
      total = product(total, std::max<int64_t>(1, size), kMaxElements);
      if (axis < blockAxes)
        blocks = product(blocks, std::max<int64_t>(1, size), kMaxRectangles);
    }
    if (total > kMaxElements || blocks > kMaxRectangles)
      return "expected parameters of at most " + std::to_string(kMaxElements) + " elements in " +
             std::to_string(kMaxRectangles) + " blocks, found more";
    return {};
  }

  Check placements(const Group &group, const std::vector<Placement> &list, const char *whose) {
    const Mesh &mesh = at(plan.meshes, group.mesh);
    if (list.size() != mesh.sizes.size())
      return "expected a placement per axis of mesh " + mesh.name + ", found " +
             std::to_string(list.size());
    for (const Placement &placement : list)
      if (!isKnown(placement.kind))
        return unknown("a kind of placement", placement.kind);
    if (auto wrong =
            geometry::checkPlacements(group.shape, list, mesh, &list == &group.gradientPlacements))
      return std::string(whose) + "placement " + std::to_string(wrong->axis) + ": " + wrong->reason;
    return {};
  }

  Check parameter(const Parameter &parameter, int64_t index) {
    if (!inside(parameter.route, plan.routes))
      return outside("route", parameter.route, plan.routes);
    if (!inside(parameter.group, plan.groups))
      return outside("group", parameter.group, plan.groups);
    const Group &group = at(plan.groups, parameter.group);
    if (!inside(parameter.indexInGroup, group.parameters) ||
        at(group.parameters, parameter.indexInGroup) != index)
      return "expected group " + group.name + " to list " + parameter.name + " at place " +
             std::to_string(parameter.indexInGroup) + ", found another or none";
    int64_t rule = at(plan.routes, parameter.route).rule;
    if (int64_t tall = at(plan.rules, rule).tall; tall != -1 && group.rows() > group.cols())
      rule = tall;
    if (rule != group.rule)
      return "expected a route of rule " + std::to_string(group.rule) + " for " + parameter.name +
             ", as its group has, found one of rule " + std::to_string(rule);
    return {};
  }

  const Plan &plan;
  int64_t &wrongGroup;
  std::map<int64_t, std::set<int64_t>> partsOf; // per group of first parts: parts found
};

} // namespace

Check validateModel(const Plan &plan, int64_t &wrongGroup) {
  return ModelValidator(plan, wrongGroup).run();
}

} // namespace stepc::plan

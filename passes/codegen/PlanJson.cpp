//===- PlanJson.cpp - The plan for people and tools ------------------------===//

#include "passes/codegen/Codegen.h"
#include "runtime/plan/Tables.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace stepc::codegen {
namespace {

using llvm::json::OStream;

class Writer {
public:
  Writer(OStream &json, const plan::Plan &plan) : json(json), plan(plan), world(plan.world()) {}

  void write() {
    json.object([&] {
      json.attribute("format", "stepc-plan");
      json.attribute("version", 3);
      json.attribute("name", plan.name);
      json.attribute("chip", plan.chip);
      json.attribute("numerics", plan.numerics);
      json.attribute("hash", hex(plan::hash(plan)));
      json.attribute("program_hash", hex(plan.programHash));
      json.attribute("workspace_bytes", plan.workspaceBytes());
      json.attribute("scratch_bytes", plan.scratchBytes);
      json.attribute("chunk_elements", plan.chunkElements);
      numbers("world", world);
      list("meshes", plan.meshes, [&](const plan::Mesh &mesh) {
        json.attribute("name", mesh.name);
        texts("axes", mesh.axes);
        numbers("sizes", mesh.sizes);
        numbers("ranks", mesh.ranks);
      });
      list("rules", plan.rules, [&](const plan::Rule &rule) { writeRule(rule); });
      list("routes", plan.routes, [&](const plan::Route &route) { writeRoute(route); });
      list("groups", plan.groups, [&](const plan::Group &group) { writeGroup(group); });
      if (plan.model >= 0)
        json.attribute("model", plan.groups[plan.groupOfModel()].name);
      list("segments", plan.segments, [&](const plan::Segment &segment) {
        json.attribute("name", segment.name);
        json.attribute("group", plan.groups[segment.group].name);
        if (segment.all)
          json.attribute("blocks", "all");
        else
          numbers("blocks", segment.blocks);
      });
      json.attributeBegin("kernels");
      value(plan.kernels);
      json.attributeEnd();
      writeTables();
      writeExchanges();
      writeCommands();
    });
  }

private:
  static std::string hex(uint64_t value) {
    return "0x" + llvm::utohexstr(value, /*LowerCase=*/true, 16);
  }

  template <typename Items, typename Body>
  void list(llvm::StringRef name, const Items &items, Body body) {
    json.attributeArray(name, [&] {
      for (const auto &item : items)
        json.object([&] { body(item); });
    });
  }
  void numbers(llvm::StringRef name, llvm::ArrayRef<int64_t> values) {
    json.attributeArray(name, [&] {
      for (int64_t value : values)
        json.value(value);
    });
  }
  void texts(llvm::StringRef name, llvm::ArrayRef<std::string> values) {
    json.attributeArray(name, [&] {
      for (const std::string &value : values)
        json.value(value);
    });
  }

  void factors(llvm::StringRef name, const plan::Mesh &mesh, llvm::ArrayRef<plan::Factor> factors) {
    list(name, factors, [&](const plan::Factor &factor) {
      json.attribute("axis", mesh.axes[factor.axis]);
      json.attribute("stride", factor.stride);
      json.attribute("size", factor.size);
    });
  }

  void writeRule(const plan::Rule &rule) {
    json.attribute("name", rule.name);
    json.attribute("definition", hex(rule.definition));
    if (rule.tall >= 0)
      json.attribute("tall", plan.rules[rule.tall].name);
    texts("hyperparameters", rule.hyperparameters);
    list("states", rule.states, [&](const plan::State &state) {
      json.attribute("name", state.name);
      json.attribute("dtype", llvm::StringRef(plan::name(state.dtype)));
      json.attribute("kind", llvm::StringRef(plan::name(state.kind)));
      if (std::isnan(state.init)) // an input without a default
        json.attribute("init", nullptr);
      else
        json.attribute("init", state.init);
      json.attribute("master", state.master);
      json.attribute("metric", state.metric);
      json.attribute("input", state.input);
    });
  }

  void writeRoute(const plan::Route &route) {
    json.attribute("name", route.name);
    json.attribute("rule", plan.rules[route.rule].name);
    json.attribute("missing_grad", llvm::StringRef(plan::name(route.missingGrad)));
    json.attributeObject("defaults", [&] {
      for (auto [name, value] : llvm::zip(plan.rules[route.rule].hyperparameters, route.defaults)) {
        if (std::isnan(value)) // the trainer must give it
          json.attribute(name, nullptr);
        else
          json.attribute(name, value);
      }
    });
  }

  void writeGroup(const plan::Group &group) {
    const plan::Mesh &mesh = plan.meshes[group.mesh];
    json.attribute("name", group.name);
    json.attribute("rule", plan.rules[group.rule].name);
    json.attribute("mesh", mesh.name);
    numbers("shape", group.shape);
    json.attribute("batch_axes", group.batchAxes);
    if (group.flatten > 0)
      json.attribute("flatten", group.flatten);
    json.attribute("rows", group.rows());
    json.attribute("cols", group.cols());
    json.attribute("blocks_per_parameter", group.matrix().blocks);
    json.attribute("dtype", llvm::StringRef(plan::name(group.parameterType)));
    json.attribute("gradient_dtype", llvm::StringRef(plan::name(group.gradientType)));
    auto placements = [&](const char *key, plan::ShardsKind of) {
      json.attributeArray(key, [&] {
        for (const plan::Placement &placement : group.placementsOf(of))
          json.value(plan::toString(placement));
      });
    };
    placements("placements", plan::ShardsKind::Parameter);
    placements("gradient_placements", plan::ShardsKind::Gradient);
    placements("state_placements", plan::ShardsKind::State);
    json.attributeArray("block_states", [&] {
      for (int64_t state : group.blockStates)
        json.value(plan.rules[group.rule].states[state].name);
    });
    json.attributeArray("sizes", [&] {
      for (int64_t size : group.sizes)
        json.value(size);
    });
    if (!group.division.parts.empty()) {
      json.attributeObject("blocks", [&] {
        json.attribute("axis", group.division.axis == plan::Division::Rows ? "rows" : "columns");
        json.attributeArray("runs", [&] {
          for (const std::vector<plan::Span> &part : group.division.parts)
            json.array([&] {
              for (const plan::Span &span : part)
                json.array([&] {
                  json.value(span.begin);
                  json.value(span.end);
                });
            });
        });
        if (group.specified)
          json.attribute("specified", true);
      });
      numbers("parts", group.parts); // empty if the rule sees no blocks
    }
    json.attribute("strategy", group.strategy);
    list("parameters", group.parameters, [&](int64_t index) {
      json.attribute("index", index);
      json.attribute("name", plan.parameters[index].name);
      json.attribute("route", plan.routes[plan.parameters[index].route].name);
    });
    list("hops", group.hops, [&](const plan::Hop &hop) {
      factors("owned", mesh, hop.owned);
      factors("replicated", mesh, hop.replicated);
      json.attributeArray("base", [&] { // the job's global ranks, one per block
        for (int64_t base : hop.base)
          json.value(mesh.ranks[base]);
      });
    });
  }

  void writeExchanges() {
    // Messages of each rank are counted only in small worlds, because it takes long. `stepc explain` has them
    // all.
    constexpr size_t kMostTables = 20000;
    bool perRank = world.size() * plan.tables.size() <= kMostTables && plan::validate(plan).empty();
    plan::Expander expander(plan);
    list("exchanges", plan.starts(), [&](const plan::Start *start) {
      json.attributeBegin("communicator");
      value(start->communicator);
      json.attributeEnd();
      list("parts", start->tables, [&](int64_t index) {
        const plan::Table &table = plan.tables[index];
        json.attribute("segment", plan.segments[table.from.segment].name);
        json.attribute("receive_segment", plan.segments[table.to.segment].name);
        json.attribute("from", plan::name(table.from.from));
        json.attribute("to", plan::name(table.from.to));
        json.attribute("value", llvm::StringRef(plan::name(table.from.value)));
        json.attribute("element_bytes", table.elementBytes);
      });
      if (!perRank)
        return;
      std::vector<int64_t> messages(world.size()), bytes(world.size());
      for (size_t rank = 0; rank < world.size(); ++rank) {
        auto made = expander.start(*start, int64_t(rank));
        for (const plan::Message &message : made->messages)
          if (message.peer != int64_t(rank) && message.sendCount > 0) {
            ++messages[rank];
            bytes[rank] += message.sendCount;
          }
      }
      numbers("messages_sent", messages); // by rank, in the order of "world"
      numbers("bytes_sent", bytes);
    });
  }

  /// Writes the list of tables, to which commands refer by number.
  void writeTables() {
    list("tables", plan.tables, [&](const plan::Table &table) {
      auto place = [&](const char *key, const plan::Place &place) {
        json.attributeObject(key, [&] {
          json.attribute("segment", plan.segments[place.segment].name);
          json.attribute("value", llvm::StringRef(plan::name(place.value)));
          json.attribute("from", plan::name(place.from));
          json.attribute("to", plan::name(place.to));
          json.attribute("end", llvm::StringRef(plan::name(place.end)));
        });
      };
      json.attribute("kind", llvm::StringRef(plan::name(table.kind)));
      place("from", table.from);
      place("to", table.to);
      json.attribute("element_bytes", table.elementBytes);
    });
  }

  // These functions write the value of a command's field. Kernels and groups are written by their names.
  void value(int64_t number) { json.value(number); }
  void value(bool flag) { json.value(flag); }
  void value(double number) { json.value(number); }
  template <plan::Named Enum> void value(Enum word) {
    json.value(llvm::StringRef(plan::name(word)));
  }
  void value(plan::KernelNumber kernel) { json.value(plan.kernels[kernel].name); }
  void value(const std::string &text) { json.value(text); }
  void value(plan::GroupNumber group) { json.value(plan.groups[group].name); }
  template <plan::List in> void value(plan::NumberIn<in> number) { json.value(number.value); }
  void value(const plan::Communicator &ranks) {
    if (ranks.mesh < 0)
      return json.value("world");
    json.object([&] {
      json.attribute("mesh", plan.meshes[ranks.mesh].name);
      factors("factors", plan.meshes[ranks.mesh], ranks.factors);
    });
  }
  template <typename T> void value(const std::optional<T> &some) { value(*some); }
  template <typename T> void value(const std::vector<T> &all) {
    json.array([&] {
      for (const T &each : all)
        value(each);
    });
  }
  template <plan::HasFields T> void value(const T &fields) {
    json.object([&] { writeFields(fields); });
  }
  template <typename T> void writeFields(const T &fields) {
    T::fields(fields, [&](const char *name, const auto &field) {
      if (!isThere(field))
        return;
      json.attributeBegin(name);
      value(field);
      json.attributeEnd();
    });
  }
  template <plan::List in> static bool isThere(plan::NumberIn<in> number) {
    return !number.isNone();
  }
  template <typename T> static bool isThere(const std::optional<T> &some) {
    return some.has_value();
  }
  template <typename T> static bool isThere(const std::vector<T> &list) { return !list.empty(); }
  template <typename T> static bool isThere(const T &) { return true; }

  /// Writes the list of commands, in the order of the program.
  void writeCommands() {
    list("commands", plan.commands, [&](const plan::Command &command) {
      json.attribute("kind", llvm::StringRef(plan::name(command)));
      std::visit([&](const auto &each) { writeFields(each); }, command);
    });
  }

  OStream &json;
  const plan::Plan &plan;
  std::vector<int64_t> world;
};

} // namespace

std::string planToJson(const plan::Plan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OStream json(os, /*IndentSize=*/1);
  Writer(json, plan).write();
  os << '\n';
  return text;
}

} // namespace stepc::codegen

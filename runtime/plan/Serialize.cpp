//===- Serialize.cpp - A plan as bytes ------------------------------------===//
//
// One template walks the plan's fields for both directions, so that writer and reader cannot disagree.
// Every number is 8 bytes, little-endian. A list is its length and its items. The reader checks each length
// against the bytes that are left before it allocates, because the bytes may come from anywhere.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/Fnv1a.h"
#include "runtime/plan/Plan.h"

#include <bit>
#include <type_traits>

namespace stepc::plan {

namespace {

constexpr uint64_t kMagic = 0x4e4c504350455453; // "STEPCPLN"
constexpr int64_t kVersion = 32;

class PlanWriter {
public:
  static constexpr bool reading = false;
  std::vector<uint8_t> bytes;

  void number(const uint64_t &value) {
    for (int shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<uint8_t>(value >> shift));
  }
  void text(const std::string &value) {
    number(value.size());
    bytes.insert(bytes.end(), value.begin(), value.end());
  }
  template <typename List> bool length(List &list, const char *) {
    number(list.size());
    return true;
  }
  bool failed() const { return false; }
  void fail(const std::string &) {}
};

class PlanReader {
public:
  static constexpr bool reading = true;
  PlanReader(const uint8_t *bytes, size_t size) : bytes(bytes), left(size) {}

  void number(uint64_t &value) {
    value = 0;
    if (left < 8)
      return fail("unexpected end of the plan");
    for (int i = 0; i < 8; ++i)
      value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
    bytes += 8;
    left -= 8;
  }
  void text(std::string &value) {
    uint64_t size = 0;
    number(size);
    if (size > left)
      return fail("unexpected end of the plan in a string");
    value.assign(reinterpret_cast<const char *>(bytes), static_cast<size_t>(size));
    bytes += size;
    left -= static_cast<size_t>(size);
  }
  template <typename List> bool length(List &list, const char *what) {
    uint64_t size = 0;
    number(size);
    // Every item takes at least one number, so a longer list cannot be true.
    if (size > left / 8) {
      fail(std::string("a list of ") + what + " is longer than the plan");
      return false;
    }
    list.resize(static_cast<size_t>(size));
    return true;
  }
  bool failed() const { return !error.empty(); }
  void fail(const std::string &message) {
    if (error.empty())
      error = message;
    left = 0;
  }

  const uint8_t *bytes;
  size_t left;
  std::string error;
};

/// Walks every field. `Stream` is PlanWriter, for a const plan, or PlanReader.
template <typename Stream> class Walk {
  template <typename T> using Ref = std::conditional_t<Stream::reading, T &, const T &>;

public:
  explicit Walk(Stream &stream) : stream(stream) {}

  void field(Ref<uint64_t> value) { stream.number(value); }
  void field(Ref<int64_t> value) { bits(value); }
  void field(Ref<double> value) { bits(value); }
  void field(Ref<std::string> value) { stream.text(value); }
  void field(Ref<bool> value) {
    uint64_t number = value;
    stream.number(number);
    if constexpr (Stream::reading) {
      if (number > 1)
        stream.fail("a flag is neither 0 nor 1");
      value = number == 1;
    }
  }
  template <typename T>
    requires std::is_enum_v<std::remove_const_t<T>>
  void field(T &value) {
    using Enum = std::remove_const_t<T>;
    auto number = static_cast<uint64_t>(value);
    stream.number(number);
    if constexpr (Stream::reading) {
      if (number > static_cast<uint64_t>(last<Enum>())) {
        stream.fail("an enumeration has the unknown value " + std::to_string(number));
        number = 0;
      }
      value = static_cast<Enum>(number);
    }
  }

  void field(Ref<Placement> v) {
    fields(v.kind, v.dim, v.factor, v.owner);
    list(v.cuts, "cuts of a placement");
  }
  void field(Ref<Mesh> v) {
    field(v.name);
    list(v.axes, "mesh axes");
    list(v.sizes, "mesh sizes");
    list(v.ranks, "mesh ranks");
  }
  void field(Ref<State> v) { fields(v.name, v.dtype, v.kind, v.init, v.master, v.metric, v.input); }
  void field(Ref<Rule> v) {
    field(v.name);
    list(v.hyperparameters, "hyperparameters");
    list(v.states, "states");
    fields(v.definition, v.tall);
  }
  void field(Ref<Route> v) {
    fields(v.name, v.rule);
    list(v.defaults, "defaults");
    field(v.missingGrad);
  }
  void field(Ref<Parameter> v) { fields(v.name, v.route, v.group, v.indexInGroup); }
  void field(Ref<Span> v) { fields(v.begin, v.end); }
  void field(Ref<std::vector<Span>> v) { list(v, "rows or columns"); }
  void field(Ref<Factor> v) { fields(v.axis, v.stride, v.size); }
  void field(Ref<Hop> v) {
    list(v.owned, "factors");
    list(v.replicated, "factors");
    list(v.base, "positions");
  }
  void field(Ref<Group> v) {
    fields(v.name, v.rule, v.mesh);
    list(v.shape, "sizes");
    fields(v.batchAxes, v.flatten, v.flattenSpecified, v.parameterType, v.gradientType);
    list(v.placements, "placements");
    list(v.gradientPlacements, "gradient placements");
    list(v.statePlacements, "state placements");
    list(v.reducedPlacements, "placements of a reduced gradient");
    field(v.division.axis);
    list(v.division.parts, "parts");
    field(v.specified);
    list(v.parts, "parts of a group");
    field(v.joined);
    list(v.parameters, "parameters");
    fields(v.computes, v.strategy);
    list(v.hops, "hops");
    field(v.slabs.axis);
    list(v.slabs.factors, "factors of slabs");
    fields(v.slabs.shortest, v.slabs.longest);
    list(v.blockStates, "states of blocks");
    list(v.sizes, "sizes of a rule");
  }
  void field(Ref<Segment> v) {
    fields(v.name, v.group);
    list(v.blocks, "blocks");
    field(v.all);
  }
  void field(Ref<Distribution> v) { fields(v.kind, v.hop); }
  void field(Ref<Place> v) { fields(v.segment, v.value, v.from, v.to, v.end); }
  void field(Ref<Table> v) { fields(v.kind, v.from, v.to, v.elementBytes); }
  void field(Ref<Pool::Batch> v) { fields(v.segment, v.blockBytes); }
  void field(Ref<Pool> v) {
    fields(v.offset, v.bytes);
    list(v.members, "members of a pool");
  }
  void field(Ref<Communicator> v) {
    field(v.mesh);
    list(v.factors, "factors");
  }
  template <List in> void field(NumberIn<in> &v) { field(v.value); }
  template <List in> void field(const NumberIn<in> &v) { field(v.value); }
  template <typename T> void field(std::optional<T> &v) { optional(v); }
  template <typename T> void field(const std::optional<T> &v) { optional(v); }
  template <typename T> void field(std::vector<T> &v) { list(v, "fields"); }
  template <typename T> void field(const std::vector<T> &v) { list(v, "fields"); }
  /// A struct that names its fields.
  template <typename T>
    requires HasFields<T>
  void field(T &v) {
    std::remove_const_t<T>::fields(v, [&](const char *name, auto &value) { named(name, value); });
  }
  void field(Ref<Command> v) {
    uint64_t kind = v.index();
    stream.number(kind);
    if constexpr (Stream::reading)
      if (!makeAlternative(v, kind))
        return stream.fail("a command is of the unknown kind " + std::to_string(kind));
    std::visit([&](auto &each) { field(each); }, v);
  }
  void field(Ref<Plan> v) {
    fields(v.name, v.chip, v.numerics, v.arenaBytes, v.scratchBytes, v.chunkElements);
    list(v.meshes, "meshes");
    list(v.rules, "rules");
    list(v.routes, "routes");
    list(v.groups, "groups");
    list(v.parameters, "parameters");
    field(v.model);
    list(v.segments, "segments");
    list(v.tables, "tables");
    list(v.pools, "pools");
    list(v.kernels, "kernels");
    list(v.commands, "commands");
    field(v.programHash);
  }

private:
  template <typename... T> void fields(T &...values) { (field(values), ...); }

  template <typename T> void named(const char *, T &value) { field(value); }
  template <typename T> void named(const char *name, std::vector<T> &value) { list(value, name); }
  template <typename T> void named(const char *name, const std::vector<T> &value) {
    list(value, name);
  }

  template <typename Optional> void optional(Optional &value) {
    std::conditional_t<Stream::reading, bool, const bool> isThere = value.has_value();
    field(isThere);
    if constexpr (Stream::reading)
      isThere ? void(value.emplace()) : value.reset();
    if (value)
      field(*value);
  }

  template <typename T> void bits(T &value) {
    auto number = std::bit_cast<uint64_t>(value);
    stream.number(number);
    if constexpr (Stream::reading)
      value = std::bit_cast<T>(number);
  }

  template <typename List> void list(List &values, const char *what) {
    if (!stream.length(values, what))
      return;
    for (auto &value : values) {
      if (stream.failed())
        return;
      field(value);
    }
  }

  Stream &stream;
};

} // namespace

std::vector<uint8_t> serialize(const Plan &plan) {
  PlanWriter writer;
  writer.number(kMagic);
  writer.number(static_cast<uint64_t>(kVersion));
  Walk<PlanWriter>(writer).field(plan);
  return std::move(writer.bytes);
}

std::optional<Plan> deserialize(const uint8_t *bytes, size_t size, std::string &error) {
  PlanReader reader(bytes, size);
  uint64_t magic = 0, version = 0;
  reader.number(magic);
  reader.number(version);
  if (reader.failed() || magic != kMagic) {
    error = "the bytes are not a plan";
    return std::nullopt;
  }
  if (version != static_cast<uint64_t>(kVersion)) {
    error =
        "expected plan version " + std::to_string(kVersion) + ", found " + std::to_string(version);
    return std::nullopt;
  }
  Plan plan;
  Walk<PlanReader>(reader).field(plan);
  if (!reader.failed() && reader.left != 0)
    reader.fail(std::to_string(reader.left) + " bytes follow the plan's end");
  if (reader.failed()) {
    error = reader.error;
    return std::nullopt;
  }
  return plan;
}

uint64_t hash(const Plan &plan) {
  Fnv1a hash;
  hash.bytes(serialize(plan));
  return hash.state;
}

} // namespace stepc::plan

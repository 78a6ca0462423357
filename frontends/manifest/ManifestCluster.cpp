#include "frontends/manifest/ManifestCluster.h"
#include "passes/cost/Profiles.h"
#include "runtime/text/Plural.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <charconv>

namespace json = llvm::json;

namespace stepc::manifest {
namespace {

constexpr int64_t kMaxRanks = int64_t(1) << 31, kMaxThreads = 1 << 20;

/// The profile's level of that name. Null if there is none, or no profile.
const cost::Level *findLevel(const cost::Cluster *profile, llvm::StringRef name) {
  if (profile)
    for (const cost::Level &level : profile->levels)
      if (level.name == name)
        return &level;
  return nullptr;
}

void readNumber(JsonText &json, const json::Object &object, const std::string &at,
                llvm::StringRef key, bool zero, std::optional<double> &field) {
  const json::Value *number = object.get(key);
  if (!number)
    return;
  std::optional<double> read = number->getAsNumber();
  // The comparison also refuses numbers that overflowed to infinity.
  if (read && (*read > 0 || (zero && *read == 0)) && *read <= 1e12)
    field = *read;
  else
    json.mismatch(at + "/" + key, zero ? "a number from 0 to 1e12" : "a number above 0, up to 1e12",
                  *number);
}

/// Reads one cluster. A level with a bad value is not compared with others, so that one mistake gives one
/// error.
class ClusterReader {
public:
  explicit ClusterReader(JsonText &json) : json(json) {}

  Cluster read(const json::Value &value, const std::string &at) {
    const json::Object *object =
        json.object(value, at, "a cluster", {"profile", "levels", "device"});
    if (!object)
      return cluster;
    if (const json::Value *name = object->get("profile"))
      readProfile(*name, at + "/profile");
    if (const json::Value *list = object->get("levels"))
      readLevels(*list, at + "/levels");
    if (const json::Value *device = object->get("device"))
      readDevice(json, *device, at + "/device", cluster);
    return std::move(cluster);
  }

private:
  void readProfile(const json::Value &value, const std::string &at) {
    std::vector<llvm::StringRef> names;
    for (const cost::Cluster &known : cost::profiles())
      names.push_back(known.profile);
    std::optional<llvm::StringRef> name = value.getAsString();
    profile = name ? cost::findProfile(*name) : nullptr;
    if (profile)
      cluster.profile = profile->profile;
    else
      json.error(at, "expected a profile (" + llvm::join(names, ", ") + "), found " +
                         describe(value) + (name ? nearestHint(*name, names) : ""));
    profileIsGood = profile;
  }

  void readLevels(const json::Value &value, const std::string &at) {
    const json::Array *list = json.array(value, at, "an array of levels");
    if (!list)
      return;
    if (list->empty())
      json.error(at, "expected at least one level, found none");
    for (size_t i = 0; i < list->size(); ++i)
      readLevel((*list)[i], at + "/" + std::to_string(i), i + 1 == list->size());
    for (auto [i, level] : llvm::enumerate(cluster.levels))
      for (size_t j = 0; j < i; ++j)
        if (!level.name.empty() && cluster.levels[j].name == level.name)
          json.error(at + "/" + std::to_string(i) + "/name",
                     "expected a name that no other level has, found '" + level.name +
                         "', also level " + std::to_string(j));
  }

  void readLevel(const json::Value &value, const std::string &at, bool isLast) {
    ClusterLevel &level = cluster.levels.emplace_back();
    const json::Object *object =
        json.object(value, at, "a level", {"name", "ranks", "gb_per_s", "latency_us", "gap_us"});
    const json::Value *name = object ? json.required(*object, "name", at) : nullptr;
    if (!name) {
      known = 0;
      return;
    }
    level.name = json.name(*name, at + "/name", "a name").value_or("");
    // If the profile is misspelt, its levels are unknown.
    const cost::Level *base = findLevel(profile, level.name);
    bool isComplete = !base && profileIsGood;
    auto number = [&](llvm::StringRef key, bool zero, bool needed, std::optional<double> &field) {
      if (isComplete && needed)
        json.required(*object, key, at);
      readNumber(json, *object, at, key, zero, field);
    };
    number("gb_per_s", false, true, level.bandwidth);
    number("latency_us", true, true, level.latency);
    number("gap_us", true, false, level.gap);
    checkGap(*object, at, base, level);
    checkRanks(*object, at, base, isLast, level);
  }

  /// Checks that the gap is at most the latency: a message cannot arrive before its ports have carried it.
  void checkGap(const json::Object &object, const std::string &at, const cost::Level *base,
                const ClusterLevel &level) {
    const json::Value *latency = object.get("latency_us");
    if (!level.gap || (latency ? !level.latency : !base))
      return; // no gap to check, or no known latency, whose error is reported already
    double most = latency ? *level.latency / 1e6 : base->link.latency;
    std::string expected;
    llvm::raw_string_ostream(expected) << "at most the latency, " << llvm::format("%g", most * 1e6);
    if (*level.gap / 1e6 > most)
      json.mismatch(at + "/gap_us", expected, *object.get("gap_us"));
  }

  /// Checks that a domain of this level consists of whole domains of the level before.
  void checkRanks(const json::Object &object, const std::string &at, const cost::Level *base,
                  bool isLast, ClusterLevel &level) {
    int64_t inner = std::exchange(known, 0);
    if (const json::Value *ranks = object.get("ranks")) {
      level.ranks =
          json.integer(*ranks, at + "/ranks", "a count from 1 to 2147483648", 1, kMaxRanks);
      if (!level.ranks)
        return;
    }
    int64_t ranks = level.ranks.value_or(base ? base->ranks : cost::Level::kAll);
    if (ranks == cost::Level::kAll) {
      if (!isLast && profileIsGood)
        json.error(at, "expected the key 'ranks' of a level that is not the last, found none");
      return;
    }
    if (inner > 0 && (ranks == inner || ranks % inner != 0))
      json.error(at + (level.ranks ? "/ranks" : ""),
                 "expected a larger multiple of the " + plural(inner, "rank") +
                     " of the level before, found " + llvm::Twine(ranks));
    else
      known = ranks;
  }

  JsonText &json;
  Cluster cluster;
  const cost::Cluster *profile = nullptr;
  bool profileIsGood = true;
  int64_t known = 0; // ranks of a domain of the level before; 0 if unknown
};

} // namespace

bool Cluster::isComplete() const {
  return profile.empty() && !levels.empty() && tflops && memory && capacity && launch && threads;
}

cost::Cluster Cluster::resolve(const cost::Cluster &base) const {
  const cost::Cluster *own = cost::findProfile(profile);
  cost::Cluster result = own ? *own : base;
  if (!levels.empty())
    result.levels.clear();
  for (const ClusterLevel &level : levels) {
    const cost::Level *known = findLevel(own, level.name);
    cost::Level &made =
        result.levels.emplace_back(known ? *known : cost::Level{level.name, cost::Level::kAll, {}});
    made.ranks = level.ranks.value_or(made.ranks);
    // Dividing by 1e6 gives the double nearest to 3e-6 for 3 microseconds. Multiplying by 1e-6 may not.
    if (level.latency)
      made.link.latency = *level.latency / 1e6;
    if (level.gap)
      made.link.gap = *level.gap / 1e6;
    else if (!known || level.latency)
      made.link.gap = made.link.latency;
    if (level.bandwidth)
      made.link.bandwidth = *level.bandwidth * 1e9;
  }
  auto set = [](double &figure, const auto &given, double unit) {
    if (given)
      figure = double(*given) * unit;
  };
  set(result.device.flops, tflops, 1e12);
  set(result.device.memory, memory, 1e9);
  set(result.device.capacity, capacity, 1e9);
  set(result.device.threads, threads, 1);
  if (launch)
    result.device.launch = *launch / 1e6;
  // A GPU has streams, whatever figures describe it, so `overlaps` of the base holds in any case.
  result.device.overlaps |= base.device.overlaps;
  // The kernels are the target's. A CPU in the place of a GPU has the GPU's kernels, which count on a GPU.
  result.device.products =
      result.device.overlaps ? base.device.products : cost::ProductKernel::Stated;
  if (isComplete())
    result.profile.clear();
  return result;
}

std::optional<cost::Level> Cluster::lastLevel() const {
  // If the cluster has no levels and no profile, it later gets a target's levels, which span all ranks.
  std::vector<cost::Level> all = resolve({}).levels;
  return all.empty() ? std::nullopt : std::optional(all.back());
}

Cluster readCluster(JsonText &json, const json::Value &value, const std::string &pointer) {
  return ClusterReader(json).read(value, pointer);
}

void readDevice(JsonText &json, const json::Value &value, const std::string &at, Cluster &cluster) {
  const json::Object *object =
      json.object(value, at, "a device",
                  {"tflop_per_s", "memory_gb_per_s", "memory_gb", "launch_us", "threads"});
  if (!object)
    return;
  readNumber(json, *object, at, "tflop_per_s", false, cluster.tflops);
  readNumber(json, *object, at, "memory_gb_per_s", false, cluster.memory);
  readNumber(json, *object, at, "memory_gb", false, cluster.capacity);
  readNumber(json, *object, at, "launch_us", true, cluster.launch);
  if (const json::Value *threads = object->get("threads"))
    cluster.threads =
        json.integer(*threads, at + "/threads", "a count from 1 to 1048576", 1, kMaxThreads);
}

/// Checks that the last level has the ranks of all meshes. The error is in the cluster's file, not in the
/// manifest, which may be right for other machines.
static void checkRanks(JsonText &json, const Cluster &cluster, llvm::ArrayRef<plan::Mesh> meshes) {
  std::optional<cost::Level> last = cluster.lastLevel();
  const plan::Mesh *largest = nullptr;
  int64_t most = -1;
  for (const plan::Mesh &mesh : meshes)
    for (int64_t rank : mesh.ranks)
      if (rank > most) {
        most = rank;
        largest = &mesh;
      }
  if (!last || most < last->ranks)
    return;
  // The levels of profiles span all ranks, so the last level is the cluster's own.
  std::string at = "/levels/" + std::to_string(cluster.levels.size() - 1);
  json.error(at + (cluster.levels.back().ranks ? "/ranks" : ""),
             "expected at least " + plural(most + 1, "rank") + " in level '" + last->name +
                 "', the last, because mesh '" + largest->name + "' of the manifest has rank " +
                 llvm::Twine(most) + ", found " + llvm::Twine(last->ranks));
}

std::optional<Cluster> readCluster(llvm::StringRef text, llvm::StringRef file,
                                   llvm::ArrayRef<plan::Mesh> meshes, ErrorList &errors) {
  JsonText json(text, file, errors);
  Cluster cluster;
  size_t before = errors.size();
  if (!json.read([&](const json::Value &root) {
        cluster = readCluster(json, root, "");
        if (errors.size() == before)
          checkRanks(json, cluster, meshes);
      }))
    return std::nullopt;
  return cluster;
}

void writeCluster(json::OStream &out, const Cluster &cluster) {
  auto write = [&](llvm::StringRef key, const auto &field) {
    if (!field)
      return;
    // The shortest text from which this number is read back.
    char text[32];
    auto end = std::to_chars(std::begin(text), std::end(text), *field).ptr;
    out.attributeBegin(key);
    out.rawValue(llvm::StringRef(text, end - text));
    out.attributeEnd();
  };
  if (!cluster.profile.empty())
    out.attribute("profile", cluster.profile);
  if (!cluster.levels.empty())
    out.attributeArray("levels", [&] {
      for (const ClusterLevel &level : cluster.levels)
        out.object([&] {
          out.attribute("name", level.name);
          write("ranks", level.ranks);
          write("gb_per_s", level.bandwidth);
          write("latency_us", level.latency);
          write("gap_us", level.gap);
        });
    });
  if (cluster.tflops || cluster.memory || cluster.capacity || cluster.launch || cluster.threads)
    out.attributeObject("device", [&] {
      write("tflop_per_s", cluster.tflops);
      write("memory_gb_per_s", cluster.memory);
      write("memory_gb", cluster.capacity);
      write("launch_us", cluster.launch);
      write("threads", cluster.threads);
    });
}

} // namespace stepc::manifest

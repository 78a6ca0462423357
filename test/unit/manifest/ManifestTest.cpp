// Reading, defaults, the writer, and the examples of docs/manifest.md and
// test/inputs.

#include "frontends/manifest/Manifest.h"
#include "gtest/gtest.h"
#include "runtime/geometry/Geometry.h"
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>

namespace geometry = stepc::geometry;
using namespace stepc::manifest;

namespace {

constexpr Placement kReplicate{};
constexpr Placement shard(int64_t dim) { return {PlacementKind::Shard, dim, 1}; }
constexpr Placement stridedShard(int64_t dim, int64_t factor) {
  return {PlacementKind::StridedShard, dim, factor};
}

Manifest mustRead(const std::string &text) {
  ErrorList errors;
  std::optional<Manifest> manifest = readManifest(text, "m.json", errors);
  EXPECT_TRUE(manifest) << errors.str() << text;
  return manifest.value_or(Manifest());
}

std::string slurp(const std::filesystem::path &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

TEST(Placement, TextForms) {
  std::string error;
  EXPECT_EQ(toString(kReplicate), "R");
  EXPECT_EQ(toString(shard(0)), "S(0)");
  EXPECT_EQ(toString(stridedShard(0, 2)), "_S(0, 2)");
  EXPECT_EQ(parsePlacement("R", error), kReplicate);
  EXPECT_EQ(parsePlacement("S(-1)", error), shard(-1));
  EXPECT_EQ(parsePlacement(" S( 1 ) ", error), shard(1));
  EXPECT_EQ(parsePlacement("_S(0,2)", error), stridedShard(0, 2));
  EXPECT_EQ(parsePlacement("_S(0, 2)", error), stridedShard(0, 2));
  EXPECT_EQ(splitPlacements("R"), std::vector<std::string>{"R"});
  EXPECT_EQ(splitPlacements("_S(0, 2),S(0),R"),
            (std::vector<std::string>{"_S(0, 2)", "S(0)", "R"}));
}

TEST(Manifest, Defaults) {
  Manifest m = mustRead(R"j({"version": 1,
    "meshes": [{"name": "m", "axes": [{"name": "a", "size": 2}, {"name": "b", "size": 3}]}],
    "parameters": [{"name": "w", "shape": [4, 6], "dtype": "bf16", "mesh": "m",
                    "placements": ["S(-1)", "R"]}]})j");
  ASSERT_EQ(m.parameters.size(), 1u);
  const Parameter &w = m.parameters[0];
  EXPECT_EQ(w.gradDType, DType::BF16);
  std::vector<Placement> placements = {shard(1), kReplicate};
  EXPECT_EQ(w.placements, placements);
  EXPECT_EQ(w.gradPlacements, placements);
  EXPECT_EQ(w.statePlacements, placements);
  EXPECT_EQ(w.batchAxes, 0);
  EXPECT_TRUE(w.requiresGrad);
  EXPECT_EQ(w.numElements(), 24);
  EXPECT_FALSE(m.cluster);
  EXPECT_EQ(m.meshes[0].ranks, (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

// Eight heads' queries stand before their keys and values.
TEST(Manifest, InterleavedBlocks) {
  Manifest m =
      mustRead(R"j({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "a", "size": 2}]}],
    "parameters": [{"name": "w", "shape": [12, 4], "dtype": "f32", "mesh": "m", "placements": ["S(0)"],
                    "blocks": {"axis": "rows", "sizes": [4, 1, 1], "repeat": 2}}]})j");
  EXPECT_EQ(m.parameters[0].blocks,
            (stepc::plan::Division{stepc::plan::Division::Rows,
                                   {{{0, 4}, {6, 10}}, {{4, 5}, {10, 11}}, {{5, 6}, {11, 12}}}}));
}

TEST(ManifestText, Syntax) {
  ErrorList errors;
  EXPECT_FALSE(readManifest("{\n  \"version\": 1,\n  oops\n}", "m.json", errors));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors.get()[0].line, 3u);
  EXPECT_EQ(errors.get()[0].column, 3u);
  EXPECT_EQ(errors.get()[0].str().find("m.json:3:3: expected JSON text, found a syntax error: "),
            0u);

  errors = {};
  EXPECT_FALSE(readManifest("", "m.json", errors));
  EXPECT_EQ(errors.size(), 1u);

  errors = {};
  EXPECT_FALSE(readManifest("\n " + std::string(100'000, '['), "m.json", errors));
  EXPECT_EQ(errors.str(), "m.json:2:66: expected JSON that nests at most 64 levels, found more\n");

  errors = {};
  EXPECT_FALSE(
      readManifest("{\"version\": 1,\n \"meshes\": [], \"\\u0076ersion\": 1}", "m.json", errors));
  EXPECT_EQ(errors.str(), "m.json:2:16: /version: expected each key once, found it again in the "
                          "same object\n");
}

TEST(ManifestText, Positions) {
  ErrorList errors;
  EXPECT_FALSE(
      readManifest("{\"version\": 1, \"meshes\": [],\n \"parameters\":\n   7}", "m.json", errors));
  EXPECT_EQ(errors.str(), "m.json:3:4: /parameters: expected an array of parameters, found 7\n");
}

TEST(Manifest, LooksUpNamesAndWorld) {
  Manifest m = mustRead(R"({"version": 1, "meshes": [
      {"name": "m", "axes": [{"name": "a", "size": 2}], "ranks": [7, 3]},
      {"name": "n", "axes": [{"name": "a", "size": 2}], "ranks": [3, 5]},
      {"name": "unused", "axes": [{"name": "a", "size": 64}]}],
    "parameters": [
      {"name": "module.w", "aliases": ["head"], "shape": [4], "dtype": "f32", "mesh": "m",
       "placements": ["R"]},
      {"name": "v", "shape": [4], "dtype": "f32", "mesh": "n", "placements": ["R"]}]})");
  EXPECT_EQ(m.worldRanks(), (std::vector<int64_t>{3, 5, 7}));
  EXPECT_EQ(m.findMesh("n"), &m.meshes[1]);
  EXPECT_EQ(m.findMesh("x"), nullptr);
}

TEST(Manifest, WrittenForm) {
  Manifest m = mustRead(slurp(STEPC_SOURCE_DIR "/test/inputs/hsdp.json"));
  m.parameters.resize(1);
  m.parameters[0].aliases = {"tied \"name\""};
  m.meshes[0].ranks = {3, 2, 1, 0};
  EXPECT_EQ(writeManifest(m), R"j({
  "version": 1,
  "meshes": [
    {
      "name": "hsdp",
      "axes": [
        {"name": "replicate", "size": 2},
        {"name": "shard", "size": 2}
      ],
      "ranks": [3, 2, 1, 0]
    }
  ],
  "cluster": {
    "levels": [
      {
        "name": "nvlink",
        "ranks": 2,
        "gb_per_s": 450,
        "latency_us": 3
      },
      {
        "name": "network",
        "gb_per_s": 50,
        "latency_us": 10
      }
    ]
  },
  "parameters": [
    {
      "name": "w1",
      "aliases": ["tied \"name\""],
      "shape": [8, 6],
      "dtype": "f32",
      "mesh": "hsdp",
      "placements": ["R", "S(0)"]
    }
  ]
}
)j");
}

TEST(Manifest, SampleInputsReadAndRoundTrip) {
  int files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(STEPC_SOURCE_DIR "/test/inputs")) {
    if (entry.path().extension() != ".json")
      continue;
    SCOPED_TRACE(entry.path().string());
    Manifest m = mustRead(slurp(entry.path()));
    EXPECT_EQ(mustRead(writeManifest(m)), m);
    ++files;
  }
  EXPECT_GE(files, 7);
}

TEST(Manifest, DocumentedExamplesRead) {
  std::string doc = slurp(STEPC_SOURCE_DIR "/docs/manifest.md");
  const std::string open = "```json\n", close = "```";
  int examples = 0;
  for (size_t at = doc.find(open); at != std::string::npos; at = doc.find(open, at)) {
    at += open.size();
    std::string text = doc.substr(at, doc.find(close, at) - at);
    Manifest m = mustRead(text);
    EXPECT_EQ(mustRead(writeManifest(m)), m);
    ++examples;
  }
  EXPECT_GE(examples, 3);
  // Every key that the writer knows is in the document.
  for (const char *key : {"version",
                          "meshes",
                          "cluster",
                          "parameters",
                          "name",
                          "axes",
                          "size",
                          "ranks",
                          "profile",
                          "levels",
                          "device",
                          "gb_per_s",
                          "latency_us",
                          "gap_us",
                          "tflop_per_s",
                          "memory_gb_per_s",
                          "memory_gb",
                          "launch_us",
                          "threads",
                          "aliases",
                          "shape",
                          "dtype",
                          "grad_dtype",
                          "mesh",
                          "placements",
                          "grad_placements",
                          "state_placements",
                          "batch_axes",
                          "blocks",
                          "axis",
                          "sizes",
                          "repeat",
                          "runs",
                          "requires_grad"})
    EXPECT_NE(doc.find("| `" + std::string(key) + "` |"), std::string::npos) << key;
}

namespace {

/// A random manifest that checks without errors.
class Drawer {
public:
  explicit Drawer(uint64_t seed) : random(seed) {}

  Manifest draw() {
    Manifest m;
    for (int64_t i = 0, n = upTo(1, 3); i < n; ++i)
      m.meshes.push_back(mesh("mesh " + std::to_string(i)));
    if (upTo(0, 1)) {
      m.cluster.emplace();
      if (upTo(0, 1))
        m.cluster->profile = "cpu";
      for (int64_t i = 0, levels = upTo(0, 3); i < levels; ++i) {
        ClusterLevel &level = m.cluster->levels.emplace_back();
        level.name = "level " + std::to_string(i);
        if (i + 1 < levels)
          level.ranks = int64_t(1) << (3 * i);
        level.bandwidth = std::uniform_real_distribution<>(1e-9, 1e9)(random);
        level.latency = 0;
        if (upTo(0, 1))
          level.gap = 0.5;
      }
      if (upTo(0, 1))
        m.cluster->tflops = std::uniform_real_distribution<>(1e-9, 1e4)(random);
      if (upTo(0, 1))
        m.cluster->memory = 3350;
      if (upTo(0, 1))
        m.cluster->capacity = 80;
      if (upTo(0, 1))
        m.cluster->launch = 2;
      if (upTo(0, 1))
        m.cluster->threads = 132;
    }
    for (int64_t i = 0, n = upTo(1, 6); i < n; ++i)
      m.parameters.push_back(parameter(m, i));
    return m;
  }

private:
  int64_t upTo(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }

  Mesh mesh(const std::string &name) {
    Mesh mesh{name, {}, {}, {}};
    int64_t ranks = 1;
    for (int64_t i = 0, n = upTo(1, 3); i < n; ++i) {
      mesh.axes.push_back("axis/" + std::to_string(i));
      ranks *= mesh.sizes.emplace_back(upTo(1, 4));
    }
    mesh.ranks.resize(ranks);
    std::iota(mesh.ranks.begin(), mesh.ranks.end(), upTo(0, 1) ? 0 : upTo(0, 1000));
    if (upTo(0, 1))
      std::shuffle(mesh.ranks.begin(), mesh.ranks.end(), random);
    return mesh;
  }

  Parameter parameter(const Manifest &m, int64_t index) {
    const char *names[] = {"layers.0.w", "module.x", "\xC3\xA9\"\\/~", "a\nb", "w@2"};
    Parameter p;
    p.name = names[upTo(0, 4)] + std::to_string(index);
    for (int64_t i = 0, n = upTo(0, 2); i < n; ++i)
      p.aliases.push_back("alias" + std::to_string(index) + "." + std::to_string(i));
    for (int64_t i = 0, n = upTo(0, 4); i < n; ++i)
      p.shape.push_back(upTo(1, upTo(0, 3) ? 9 : 1 << 8));
    if (p.shape.size() >= 3 && upTo(0, 1))
      p.batchAxes = p.shape.size() - 2;
    if (int64_t(p.shape.size()) == p.batchAxes + 2 && upTo(0, 1)) {
      p.blocks = {stepc::plan::Division::Axis(upTo(0, 1)), {{}, {}}};
      int64_t size =
          p.shape[p.shape.size() - (p.blocks.axis == stepc::plan::Division::Rows ? 2 : 1)];
      for (int64_t i = 0; i < size; ++i)
        p.blocks.parts[i % 2].push_back({i, i + 1});
      p.blocks.parts.resize(std::min<int64_t>(size, 2));
    }
    p.dtype = DType(upTo(0, 2));
    p.gradDType = DType(upTo(0, 2));
    p.requiresGrad = upTo(0, 3);
    const Mesh &mesh = m.meshes[upTo(0, m.meshes.size() - 1)];
    p.mesh = mesh.name;
    p.placements = placements(mesh, p.shape);
    p.gradPlacements = p.statePlacements = p.placements;
    return p;
  }

  /// Placements that can be.
  std::vector<Placement> placements(const Mesh &mesh, const std::vector<int64_t> &shape) {
    for (;;) {
      std::vector<Placement> drawn = draw(mesh, shape.size());
      for (auto [placement, size] : llvm::zip(drawn, mesh.sizes))
        if (!upTo(0, 8))
          placement = {PlacementKind::Owned, 0, 1, upTo(0, size - 1)};
        else if (!shape.empty() && !upTo(0, 8))
          placement = {PlacementKind::InterleavedShard, upTo(0, shape.size() - 1), upTo(1, 4)};
      if (!upTo(0, 4))
        flatten(drawn, mesh, shape);
      if (!geometry::checkPlacements(shape, drawn, mesh))
        return drawn;
    }
  }

  /// Makes one of the placements flat, with ranges.
  void flatten(std::vector<Placement> &placements, const Mesh &mesh,
               const std::vector<int64_t> &shape) {
    size_t axis = upTo(0, placements.size() - 1);
    placements[axis] = {};
    if (geometry::checkPlacements(shape, placements, mesh))
      return;
    int64_t most = geometry::mostElements(shape, placements, mesh);
    Placement flat{PlacementKind::Flat, 0, 1, 0, {0, most}};
    for (int64_t i = 1; i < mesh.sizes[axis]; ++i)
      flat.cuts.push_back(upTo(0, most));
    llvm::sort(flat.cuts);
    placements[axis] = flat;
  }

  /// From the last axis back, so that the cuts which a strided shard may
  /// presume are known.
  std::vector<Placement> draw(const Mesh &mesh, int64_t rank) {
    std::vector<Placement> placements(mesh.axes.size());
    std::vector<std::vector<int64_t>> cuts(rank);
    for (size_t i = placements.size(); i-- > 0;) {
      if (rank == 0 || !upTo(0, 2))
        continue;
      int64_t dim = upTo(0, rank - 1), after = upTo(0, cuts[dim].size()), factor = 1;
      for (int64_t j = 0; j < after; ++j)
        factor *= cuts[dim][j];
      // A factor of 1 may be written either way.
      placements[i] = after ? stridedShard(dim, factor) : shard(dim);
      // The checker inserts after the shortest run with this product.
      int64_t at = 0, product = 1;
      while (product != factor)
        product *= cuts[dim][at++];
      cuts[dim].insert(cuts[dim].begin() + at, mesh.sizes[i]);
    }
    return placements;
  }

  std::mt19937_64 random;
};

} // namespace

TEST(Manifest, RandomManifestsRoundTrip) {
  uint64_t seed = std::random_device()();
  if (const char *given = std::getenv("STEPC_SEED"))
    seed = std::strtoull(given, nullptr, 10);
  std::printf("STEPC_SEED=%llu\n", static_cast<unsigned long long>(seed));
  int strided = 0, batched = 0, divided = 0;
  for (int i = 0; i < 1000; ++i) {
    Manifest m = Drawer(seed + i).draw();
    std::string text = writeManifest(m);
    ErrorList errors;
    std::optional<Manifest> again = readManifest(text, "m.json", errors);
    ASSERT_TRUE(again) << "case " << i << "\n" << errors.str() << text;
    ASSERT_EQ(*again, m) << "case " << i << "\n" << text;
    ASSERT_EQ(writeManifest(*again), text) << "case " << i;
    for (const Parameter &p : m.parameters) {
      batched += p.batchAxes > 0;
      divided += !p.blocks.parts.empty();
      for (const Placement &placement : p.placements)
        strided += placement.kind == PlacementKind::StridedShard;
    }
  }
  EXPECT_GE(strided, 50);
  EXPECT_GE(batched, 50);
  EXPECT_GE(divided, 50);
}

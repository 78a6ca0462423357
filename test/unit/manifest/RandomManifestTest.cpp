// Random manifests, written and read again.

#include "frontends/manifest/Manifest.h"
#include "runtime/geometry/Geometry.h"
#include "gtest/gtest.h"
#include <numeric>
#include <random>

namespace geometry = stepc::geometry;
using namespace stepc::manifest;

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
        level.latency = 0.25 * double(upTo(0, 2));
        if (upTo(0, 1))
          level.gap = *level.latency / 2;
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
    const char *names[] = {"layers.0.w", "module.x", "\xC3\xA9\"\\/~", "a\xE2\x80\x82 b", "w@2"};
    Parameter p;
    p.name = names[upTo(0, 4)] + std::to_string(index);
    for (int64_t i = 0, n = upTo(0, 2); i < n; ++i)
      p.aliases.push_back("alias" + std::to_string(index) + "." + std::to_string(i));
    for (int64_t i = 0, n = upTo(0, 4); i < n; ++i)
      p.shape.push_back(upTo(1, upTo(0, 3) ? 9 : 1 << 8));
    if (p.shape.size() >= 3 && upTo(0, 1))
      p.batchAxes = p.shape.size() - 2;
    if (p.shape.size() >= 3 && !upTo(0, 2)) {
      p.batchAxes = p.shape.size() > 3 ? upTo(0, 1) : 0;
      p.flatten = p.batchAxes + upTo(1, p.shape.size() - p.batchAxes - 1);
    }
    if ((p.flatten || int64_t(p.shape.size()) == p.batchAxes + 2) && upTo(0, 1)) {
      constexpr int64_t kMostSizes = 1 << 16; // each of them is a line of the text
      p.blocks = {stepc::plan::Division::Axis(upTo(0, 1)), {{}, {}}};
      stepc::plan::View matrix = stepc::plan::matrixView(p.shape, p.batchAxes, p.flatten);
      int64_t size = p.blocks.axis == stepc::plan::Division::Rows ? matrix.rows : matrix.cols;
      for (int64_t i = 0; i < std::min(size, kMostSizes); ++i)
        p.blocks.parts[i % 2].push_back({i, i + 1});
      if (size > kMostSizes)
        p.blocks.parts[1].back().end = size;
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
      placements[i] = after ? Placement{PlacementKind::StridedShard, dim, factor}
                            : Placement{PlacementKind::Shard, dim};
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

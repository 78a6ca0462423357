// Reading, defaults, the writer, and the examples of docs/manifest.md and
// test/inputs.

#include "frontends/manifest/Manifest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <filesystem>
#include <fstream>
#include <sstream>

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
  // All others come out as they went in.
  for (const char *text :
       {"R", "IS(1, 4)", "owned(3)", "flat", "flat(0, 5, 12)", "P(sum)", "P(avg)"}) {
    std::string problem;
    std::optional<Placement> placement = parsePlacement(text, true, problem);
    ASSERT_TRUE(placement) << problem;
    EXPECT_EQ(toString(*placement), text);
  }
  EXPECT_EQ(parsePlacement("R", true, error), kReplicate);
  EXPECT_EQ(parsePlacement("S(-1)", true, error), shard(-1));
  EXPECT_EQ(parsePlacement(" S( 1 ) ", true, error), shard(1));
  EXPECT_EQ(parsePlacement("_S(0,2)", true, error), stridedShard(0, 2));
  EXPECT_EQ(parsePlacement("_S(0, 2)", true, error), stridedShard(0, 2));
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

TEST(ManifestText, HasNoHalfCharacters) {
  auto read = [](const std::string &name) {
    ErrorList errors;
    EXPECT_FALSE(readManifest("{\"version\": 1,\n \"" + name + "\": 1}", "m.json", errors));
    return errors.str().substr(0, errors.str().find('\n'));
  };
  const std::string wrong = "m.json:2:4: expected characters in JSON text, found '";
  EXPECT_EQ(read("x\\ud800"), wrong + "\\ud800', half of one");
  EXPECT_EQ(read("x\\udc00\\ud800"), wrong + "\\udc00', half of one");
  EXPECT_EQ(read("x\\uD83D\\n\\uDE00"), wrong + "\\uD83D', half of one");
  // Two halves are one, and an escaped backslash begins none.
  EXPECT_THAT(read("x\\ud83d\\ude00"), testing::Not(testing::HasSubstr("half of one")));
  EXPECT_THAT(read("x\\\\ud800"), testing::Not(testing::HasSubstr("half of one")));
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
                          "buckets",
                          "alignment",
                          "offset",
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

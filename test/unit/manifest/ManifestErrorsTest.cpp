// Every error of the manifest reader: where it points and what it says.

#include "frontends/manifest/JsonText.h"
#include "frontends/manifest/Manifest.h"
#include "gtest/gtest.h"

using namespace stepc::manifest;

namespace {

/// The errors of a text as "POINTER: MESSAGE[ (parameter 'NAME')]", one a line.
std::string errorsOf(const std::string &text) {
  ErrorList errors;
  std::optional<Manifest> manifest = readManifest(text, "m.json", errors);
  EXPECT_EQ(manifest.has_value(), errors.empty());
  std::string lines;
  for (InputError &error : errors.get()) {
    EXPECT_EQ(error.file, "m.json");
    EXPECT_GT(error.line, 0u);
    error.file = "";
    error.line = 0;
    lines += error.str().substr(2) + "\n";
  }
  return lines;
}

const char *const kMesh = R"({"name": "m", "axes": [{"name": "a", "size": 2},
                                                    {"name": "b", "size": 2}]})";

std::string withMesh(const std::string &mesh) {
  return R"({"version": 1, "meshes": [)" + mesh + R"(], "parameters": [
    {"name": "w", "shape": [], "dtype": "f32", "mesh": "m", "placements": []}]})";
}

std::string withParameters(const std::string &list) {
  return std::string(R"({"version": 1, "meshes": [)") + kMesh + R"(], "parameters": [)" + list +
         "]}";
}

/// A parameter w; `fields` replaces its part after the name.
std::string withParameter(const std::string &fields) {
  return withParameters(R"({"name": "w", )" + fields + "}");
}

std::string withShape(const std::string &shape, const std::string &placements,
                      const std::string &more = "") {
  return withParameter(R"("dtype": "f32", "mesh": "m", "shape": )" + shape + R"(, "placements": )" +
                       placements + more);
}

} // namespace

TEST(ManifestErrors, OnlyLikelyNamesAreSuggested) {
  EXPECT_EQ(nearestHint("grad_dtyp", {"dtype", "grad_dtype"}), ", did you mean 'grad_dtype'?");
  EXPECT_EQ(nearestHint("mech", {"mesh", "name"}), ", did you mean 'mesh'?");
  // Half of the letters are others.
  EXPECT_EQ(nearestHint("tp", {"dp"}), "");
  EXPECT_EQ(nearestHint("rank", {"name", "axes"}), "");
}

TEST(ManifestErrors, ByteOrderMarkIsSkipped) {
  // The message has the place in the text behind it.
  ErrorList errors;
  EXPECT_FALSE(readManifest("\xEF\xBB\xBF{\"version\": 3}", "m.json", errors));
  EXPECT_EQ(errors.get()[0].line, 1u);
  EXPECT_EQ(errors.get().back().column, 13u);
}

TEST(ManifestErrors, Root) {
  EXPECT_EQ(errorsOf("[]"), "expected a manifest, found an array\n");
  EXPECT_EQ(errorsOf("{}"), "expected the key 'meshes', found none\n"
                            "expected the key 'parameters', found none\n"
                            "expected the key 'version', found none\n");
  EXPECT_EQ(errorsOf(R"({"version": 2, "later": true})"),
            "/version: expected version 1, the one this stepc reads, found 2\n");
  EXPECT_EQ(errorsOf(R"({"version": "1", "meshes": [], "parameters": []})"),
            "/version: expected version 1, the one this stepc reads, found \"1\"\n");
  EXPECT_EQ(errorsOf(R"({"version": 1, "meshes": {}, "parameters": [], "a/b~": 0})"),
            "/meshes: expected an array of meshes, found an object\n"
            "/parameters: expected at least one parameter, found none\n"
            "/a~1b~0: expected a key of a manifest (version, meshes, buckets, cluster, "
            "parameters), found "
            "'a/b~'\n");
}

TEST(ManifestErrors, UnknownKeysHint) {
  EXPECT_EQ(errorsOf(withShape("[4, 4]", R"(["R", "R"])", R"(, "grad_placement": [])")),
            "/parameters/0/grad_placement: expected a key of a parameter (name, "
            "aliases, shape, "
            "dtype, grad_dtype, mesh, placements, grad_placements, state_placements, "
            "batch_axes, blocks, "
            "requires_grad), found 'grad_placement', did you mean 'grad_placements'? "
            "(parameter 'w')\n");
}

TEST(ManifestErrors, Meshes) {
  EXPECT_EQ(errorsOf(withMesh("3")), "/meshes/0: expected a mesh, found 3\n");
  EXPECT_EQ(errorsOf(withMesh(R"({"name": "m", "axes": []})")),
            "/meshes/0/axes: expected 1 to 5 axes, found 0\n");
  std::string axis = R"({"name": "a", "size": 2})";
  EXPECT_EQ(errorsOf(withMesh(R"({"name": "m", "axes": [)" + axis + "," + axis + "," + axis + "," +
                              axis + "," + axis + "," + axis + "]}")),
            "/meshes/0/axes: expected 1 to 5 axes, found 6\n");
  EXPECT_EQ(errorsOf(withMesh(R"({"name": "m", "axes": [)" + axis + "," + axis + "]}")),
            "/meshes/0/axes/1/name: expected a name that no other axis of the "
            "mesh has, found "
            "'a', also axis 0\n");
  EXPECT_EQ(errorsOf(withMesh(R"({"name": "m", "axes": [{"name": "", "size": 0}]})")),
            "/meshes/0/axes/0/name: expected a name, found \"\"\n"
            "/meshes/0/axes/0/size: expected a size from 1 to 1048576, found 0\n");
  EXPECT_EQ(errorsOf(withMesh(R"({"name": "m", "axes": [{"name": "a", "size": -2}]})")),
            "/meshes/0/axes/0/size: expected a size from 1 to 1048576, found -2\n");
  EXPECT_EQ(errorsOf(withMesh(
                R"({"name": "m", "axes": [{"name": "a", "size": 1048576},
                                                       {"name": "b", "size": 1048576}]})")),
            "/meshes/0/axes: expected at most 1048576 ranks, found a product "
            "of sizes beyond "
            "that\n");
  EXPECT_EQ(errorsOf(withMesh(R"({"name": "m", "axes": [{"name": "a", "size": 1e30}]})")),
            "/meshes/0/axes/0/size: expected a size from 1 to 1048576, found "
            "1e+30\n");
}

TEST(ManifestErrors, Ranks) {
  auto withRanks = [](const std::string &ranks) {
    return errorsOf(
        withMesh(R"({"name": "m", "axes": [{"name": "a", "size": 3}], "ranks": )" + ranks + "}"));
  };
  EXPECT_EQ(withRanks("[0, 1]"), "/meshes/0/ranks: expected 3 ranks, the product of the axes' "
                                 "sizes, found 2\n");
  EXPECT_EQ(withRanks("[4, 5, 4]"),
            "/meshes/0/ranks/2: expected each rank once, found 4, also at index 0\n");
  EXPECT_EQ(withRanks("[0, -1, 2.5]"),
            "/meshes/0/ranks/1: expected a rank from 0 to 2147483647, found -1\n"
            "/meshes/0/ranks/2: expected a rank from 0 to 2147483647, found 2.5\n");
  EXPECT_EQ(withRanks("0"), "/meshes/0/ranks: expected an array of ranks, found 0\n");
}

TEST(ManifestErrors, DoubledNames) {
  EXPECT_EQ(errorsOf(withMesh(std::string(kMesh) + "," + kMesh)),
            "/meshes/1/name: expected a name that no other mesh has, found "
            "'m', also at "
            "/meshes/0/name\n"
            "/parameters/0/placements: expected one placement for each of the "
            "2 axes of mesh 'm', "
            "found 0 (parameter 'w')\n");
  std::string rest = R"("shape": [], "dtype": "f32", "mesh": "m", "placements": ["R", "R"]})";
  EXPECT_EQ(errorsOf(withParameters(R"({"name": "a", )" + rest + R"(,{"name": "a", )" + rest +
                                    R"(,{"name": "b", "aliases": ["module.a", "c"], )" + rest +
                                    R"(,{"name": "c", )" + rest)),
            "/parameters/1/name: expected a name that no other parameter or "
            "alias has, found 'a', "
            "also at /parameters/0/name (parameter 'a')\n"
            "/parameters/2/aliases/0: expected a name that no other parameter "
            "or alias has without "
            "wrappers' prefixes, found 'module.a', also at /parameters/0/name "
            "(parameter 'b')\n"
            "/parameters/3/name: expected a name that no other parameter or "
            "alias has, found 'c', "
            "also at /parameters/2/aliases/1 (parameter 'c')\n");
}

/// Of a manifest with this cluster, on the ranks of kMesh.
static std::string errorsOfCluster(const std::string &cluster) {
  return errorsOf(std::string(R"({"version": 1, "meshes": [)") + kMesh + R"(], "cluster": )" +
                  cluster +
                  R"(, "parameters": [{"name": "w", "shape": [], "dtype": "f32", "mesh": "m",
                                       "placements": ["R", "R"]}]})");
}

TEST(ManifestErrors, Cluster) {
  EXPECT_EQ(errorsOfCluster("7"), "/cluster: expected a cluster, found 7\n");
  EXPECT_EQ(errorsOfCluster(R"({"profil": "cpu"})"),
            "/cluster/profil: expected a key of a cluster (profile, levels, device), found "
            "'profil', did you mean 'profile'?\n");
  EXPECT_EQ(errorsOfCluster(R"({"profile": 5})"),
            "/cluster/profile: expected a profile (cpu, a100, h100, h200, b200, gb200, gb300), "
            "found 5\n");
  EXPECT_EQ(errorsOfCluster(R"({"profile": "h10"})"),
            "/cluster/profile: expected a profile (cpu, a100, h100, h200, b200, gb200, gb300), "
            "found \"h10\", did you mean 'h100'?\n");
  EXPECT_EQ(errorsOfCluster(R"({"device": {"tflop_per_s": 0, "memory_gb_per_s": 1e308, "memory_gb":
                                           -1, "launch_us": "x", "threads": 0, "cores": 2}})"),
            "/cluster/device/tflop_per_s: expected a number above 0, up to 1e12, found 0\n"
            "/cluster/device/memory_gb_per_s: expected a number above 0, up to 1e12, found 1e+308\n"
            "/cluster/device/memory_gb: expected a number above 0, up to 1e12, found -1\n"
            "/cluster/device/launch_us: expected a number from 0 to 1e12, found \"x\"\n"
            "/cluster/device/threads: expected a count from 1 to 1048576, found 0\n"
            "/cluster/device/cores: expected a key of a device (tflop_per_s, memory_gb_per_s, "
            "memory_gb, launch_us, threads), found 'cores'\n");
}

TEST(ManifestErrors, ClusterLevels) {
  const std::string nvlink = R"({"name": "nvlink", "ranks": 8, "gb_per_s": 450, "latency_us": 3})";
  const std::string network = R"({"name": "network", "gb_per_s": 50, "latency_us": 9})";
  EXPECT_EQ(errorsOfCluster(R"({"levels": [)" + nvlink + ", " + network + "]}"), "");
  EXPECT_EQ(errorsOfCluster(R"({"levels": []})"),
            "/cluster/levels: expected at least one level, found none\n");
  EXPECT_EQ(errorsOfCluster(R"({"levels": [3, {"ranks": 2}]})"),
            "/cluster/levels/0: expected a level, found 3\n"
            "/cluster/levels/1: expected the key 'name', found none\n");
  EXPECT_EQ(
      errorsOfCluster(R"({"levels": [{"name": "a", "ranks": 0, "gb_per_s": 0, "latency_us": -1,
                                            "gap_us": "x"}, )" +
                      network + "]}"),
      "/cluster/levels/0/ranks: expected a count from 1 to 2147483648, found 0\n"
      "/cluster/levels/0/gb_per_s: expected a number above 0, up to 1e12, found 0\n"
      "/cluster/levels/0/latency_us: expected a number from 0 to 1e12, found -1\n"
      "/cluster/levels/0/gap_us: expected a number from 0 to 1e12, found \"x\"\n");
  EXPECT_EQ(errorsOfCluster(R"({"levels": [)" + nvlink + ", " + nvlink + "]}"),
            "/cluster/levels/1/name: expected a name that no other level has, found 'nvlink', also "
            "level 0\n"
            "/cluster/levels/1/ranks: expected a larger multiple of the 8 ranks of the level "
            "before, found 8\n");
  EXPECT_EQ(errorsOfCluster(R"({"levels": [)" + nvlink +
                            R"(, {"name": "rack", "ranks": 20, "gb_per_s": 1, "latency_us": 1}]})"),
            "/cluster/levels/1/ranks: expected a larger multiple of the 8 ranks of the level "
            "before, found 20\n");
  EXPECT_EQ(errorsOfCluster(R"({"levels": [)" + network + ", " + nvlink + "]}"),
            "/cluster/levels/0: expected the key 'ranks' of a level that is not the last, found "
            "none\n");
  // What a profile does not say has to be said; of a misspelt one that is not known.
  EXPECT_EQ(errorsOfCluster(R"({"profile": "cpu", "levels": [{"name": "network"}]})"), "");
  EXPECT_EQ(errorsOfCluster(R"({"profile": "cpu", "levels": [{"name": "net"}]})"),
            "/cluster/levels/0: expected the key 'gb_per_s', found none\n"
            "/cluster/levels/0: expected the key 'latency_us', found none\n");
  EXPECT_EQ(errorsOfCluster(R"({"profile": "cpp", "levels": [{"name": "a"}, {"name": "b"}]})"),
            "/cluster/profile: expected a profile (cpu, a100, h100, h200, b200, gb200, gb300), "
            "found \"cpp\", did you mean 'cpu'?\n");
  // Ranks 0 to 3 do not fit into a cluster of two.
  EXPECT_EQ(errorsOfCluster(
                R"({"levels": [{"name": "node", "ranks": 2, "gb_per_s": 1, "latency_us": 1}]})"),
            "/meshes/0/ranks/2: expected a rank of the cluster, whose level 'node' has 2 ranks, "
            "found 2\n");
}

TEST(ManifestErrors, ParameterKeysAndTypes) {
  EXPECT_EQ(errorsOf(withParameters("7")), "/parameters/0: expected a parameter, found 7\n");
  EXPECT_EQ(errorsOf(withParameters("{}")),
            "/parameters/0: expected the key 'dtype', found none\n"
            "/parameters/0: expected the key 'mesh', found none\n"
            "/parameters/0: expected the key 'name', found none\n"
            "/parameters/0: expected the key 'placements', found none\n"
            "/parameters/0: expected the key 'shape', found none\n");
  EXPECT_EQ(errorsOf(withParameter(R"("aliases": [1], "shape": "x", "dtype": "float32",
                                      "grad_dtype": 5, "mesh": "n", "placements": "R",
                                      "batch_axes": -1, "requires_grad": 1)")),
            "/parameters/0/aliases/0: expected a name, found 1 (parameter 'w')\n"
            "/parameters/0/shape: expected an array of sizes, found \"x\" (parameter "
            "'w')\n"
            "/parameters/0/dtype: expected f32, bf16 or f16, found \"float32\" "
            "(parameter 'w')\n"
            "/parameters/0/grad_dtype: expected f32, bf16 or f16, found 5 (parameter "
            "'w')\n"
            "/parameters/0/mesh: expected the name of a mesh (m), found \"n\" "
            "(parameter 'w')\n"
            "/parameters/0/placements: expected an array of placements, found \"R\" "
            "(parameter "
            "'w')\n"
            "/parameters/0/batch_axes: expected a number of axes, found -1 "
            "(parameter 'w')\n"
            "/parameters/0/requires_grad: expected true or false, found 1 (parameter "
            "'w')\n");
}

TEST(ManifestErrors, Shapes) {
  EXPECT_EQ(errorsOf(withShape("[4, -4, 0, 2.5, \"8\"]", R"(["R", "R"])")),
            "/parameters/0/shape/1: expected a size from 1 to 2^40, found -4 "
            "(parameter 'w')\n"
            "/parameters/0/shape/2: expected a size from 1 to 2^40, found 0 "
            "(parameter 'w')\n"
            "/parameters/0/shape/3: expected a size from 1 to 2^40, found 2.5 "
            "(parameter 'w')\n"
            "/parameters/0/shape/4: expected a size from 1 to 2^40, found "
            "\"8\" (parameter "
            "'w')\n");
  EXPECT_EQ(errorsOf(withShape("[1099511627776, 2]", R"(["R", "R"])")),
            "/parameters/0/shape: expected at most 2^40 elements, found a "
            "product of sizes beyond "
            "that (parameter 'w')\n");
  EXPECT_EQ(errorsOf(withShape("[99999999999999999999]", R"(["R", "R"])")),
            "/parameters/0/shape/0: expected a size from 1 to 2^40, found "
            "1e+20 (parameter 'w')\n");
  EXPECT_EQ(errorsOf(withShape("[1099511627776]", R"(["R", "R"])")), "");
}

TEST(ManifestErrors, BatchAxes) {
  EXPECT_EQ(errorsOf(withShape("[4, 4]", R"(["R", "R"])", R"(, "batch_axes": 1)")),
            "/parameters/0/batch_axes: expected 0 for a parameter of fewer than 3 "
            "dimensions, "
            "found 1 (parameter 'w')\n");
  EXPECT_EQ(errorsOf(withShape("[2, 2, 4, 4]", R"(["R", "R"])", R"(, "batch_axes": 1)")),
            "/parameters/0/batch_axes: expected 0 or 2, which leaves two "
            "matrix axes of 4 "
            "dimensions, found 1 (parameter 'w')\n");
  EXPECT_EQ(errorsOf(withShape("[2, 2, 4, 4]", R"(["R", "R"])", R"(, "batch_axes": 2)")), "");
  EXPECT_EQ(errorsOf(withShape("[2, 2, 4, 4]", R"(["R", "R"])")), "");
}

TEST(ManifestErrors, Blocks) {
  auto one = [](const std::string &blocks, const std::string &shape = "[6, 4]") {
    std::string error = errorsOf(withShape(shape, R"(["R", "R"])", ", \"blocks\": " + blocks));
    std::string prefix = "/parameters/0/blocks", suffix = " (parameter 'w')\n";
    EXPECT_TRUE(error.empty() || error.find(prefix) == 0u) << error;
    return error.empty()
               ? error
               : error.substr(prefix.size(), error.size() - prefix.size() - suffix.size());
  };
  EXPECT_EQ(one(R"({"axis": "rows", "sizes": [3, 1, 2]})"), "");
  EXPECT_EQ(one(R"({"axis": "columns", "sizes": [1, 1], "repeat": 2})"), "");
  EXPECT_EQ(one(R"({"axis": "rows", "runs": [[[0, 1], [2, 6]], [[1, 2]]]})"), "");
  EXPECT_EQ(one(R"({"axis": "rows", "sizes": [6]})", "[2, 6, 4]"),
            ": expected blocks of matrices, found 3 dimensions, 0 of them batch axes");
  EXPECT_EQ(one(R"({"axis": "columns", "sizes": [6]})", "[6]"),
            ": expected blocks of matrices, found 1 dimension, 0 of them batch axes");
  EXPECT_EQ(one(R"({"axis": "row", "sizes": [6]})"),
            "/axis: expected rows or columns, found \"row\"");
  EXPECT_EQ(one(R"({"sizes": [6]})"), ": expected the key 'axis', found none");
  for (auto [which, found] : {std::pair("", "neither"),
                              {R"(, "sizes": [6], "runs": [[[0, 6]]])", "runs and sizes"},
                              {R"(, "repeat": 2, "runs": [[[0, 6]]])", "runs with repeat"}})
    EXPECT_EQ(one(std::string(R"({"axis": "rows")") + which + "}"),
              std::string(": expected runs, or sizes with or without repeat, found ") + found);
  EXPECT_EQ(one(R"({"axis": "rows", "sizes": []})"),
            "/sizes: expected at least one block, found none");
  EXPECT_EQ(one(R"({"axis": "rows", "sizes": 6})"), "/sizes: expected an array of blocks, found 6");
  EXPECT_EQ(one(R"({"axis": "rows", "sizes": [6, 0]})"),
            "/sizes/1: expected a size from 1 to 2^40, found 0");
  EXPECT_EQ(one(R"({"axis": "rows", "sizes": [1099511627776], "repeat": 2})"),
            "/sizes: expected at most 2^40 rows or columns, found more");
  EXPECT_EQ(one(R"({"axis": "rows", "sizes": [6], "repeat": 0})"),
            "/repeat: expected a number from 1 to 65536, found 0");
  EXPECT_EQ(one(R"({"axis": "rows", "runs": [[0]]})"),
            "/runs/0/0: expected a run [begin, end], found 0");
  EXPECT_EQ(one(R"({"axis": "rows", "runs": [7]})"), "/runs/0: expected an array of runs, found 7");
  EXPECT_EQ(one(R"({"axis": "rows", "runs": [[[-1, 6]]]})"),
            "/runs/0/0/0: expected an index from 0 to 2^40, found -1");
  EXPECT_EQ(one(R"({"axis": "rows", "runs": [[]]})"), ": expected rows of part 0, found none");
  EXPECT_EQ(one(R"({"axis": "rows", "runs": [[[2, 6], [0, 2]]]})"),
            ": expected rows of part 0 in their order, found 0:2 behind 2:6");
  EXPECT_EQ(one(R"({"axis": "columns", "sizes": [2, 1]})"),
            "/sizes: expected sizes that add up to 4 columns, found 3");
  EXPECT_EQ(one(R"({"axis": "rows", "sizes": [3], "repeat": 65536})"),
            "/sizes: expected sizes that add up to 6 rows, found 196608");
  EXPECT_EQ(one(R"({"axis": "columns", "runs": [[[0, 3]]]})"),
            ": expected each column in one part, found column 3 in none");
  EXPECT_EQ(one(R"({"axis": "rows", "runs": [[[0, 3]], [[2, 6]]]})"),
            ": expected each row in one part, found row 2 in two");
}

TEST(ManifestErrors, PlacementTexts) {
  auto one = [](const std::string &text) {
    std::string error = errorsOf(withShape("[4, 4]", "[\"R\", \"" + text + "\"]"));
    std::string prefix = "/parameters/0/placements/1: ", suffix = " (parameter 'w')\n";
    EXPECT_EQ(error.find(prefix), 0u) << error;
    return error.substr(prefix.size(), error.size() - prefix.size() - suffix.size());
  };
  std::string expected =
      "expected R, S(dim), _S(dim, split_factor), IS(dim, stripes), owned(rank), flat, P(sum) or "
      "P(avg), found ";
  for (const char *bad :
       {"",        "r",      "S",           "S()",      "S(x)",        "S(0",  "S(0))", "S(0, 2)",
        "_S(0)",   "_S(0,)", "_S(0, 2, 3)", "Shard(0)", "Replicate()", "R(0)", "IS(0)", "owned",
        "owned()", "flat()", "flat(0, x)",  "P",        "P(max)",      "P(sum"})
    EXPECT_EQ(one(bad), expected + "'" + bad + "'");
  EXPECT_EQ(one("_S(0, 0)"), "expected a split factor of at least 1, found '_S(0, 0)'");
  EXPECT_EQ(one("IS(0, 0)"), "expected stripes of at least 1, found 'IS(0, 0)'");
  EXPECT_EQ(one("P(sum)"), "expected no partial sum but of a gradient, found 'P(sum)'");
  EXPECT_EQ(errorsOf(withShape("[4, 4]", "[0, \"R\"]")),
            "/parameters/0/placements/0: " + expected.substr(0, expected.size() - 8) +
                " as a string, found 0 (parameter 'w')\n");
}

TEST(ManifestErrors, PlacementsAgainstMeshAndShape) {
  EXPECT_EQ(errorsOf(withShape("[4, 4]", R"(["R"])")),
            "/parameters/0/placements: expected one placement for each of the "
            "2 axes of mesh 'm', "
            "found 1 (parameter 'w')\n");
  EXPECT_EQ(errorsOf(withShape("[4, 4]", R"j(["S(2)", "S(-3)"])j")),
            "/parameters/0/placements/0: expected a dimension from -2 to 1, "
            "found 'S(2)' "
            "(parameter 'w')\n"
            "/parameters/0/placements/1: expected a dimension from -2 to 1, "
            "found 'S(-3)' "
            "(parameter 'w')\n");
  EXPECT_EQ(errorsOf(withShape("[]", R"j(["S(0)", "R"])j")),
            "/parameters/0/placements/0: expected R, owned or flat for a parameter without "
            "dimensions, found "
            "'S(0)' (parameter 'w')\n");
}

TEST(ManifestErrors, StridedShardsThatCannotExist) {
  EXPECT_EQ(errorsOf(withShape("[8, 4]", R"j(["_S(0, 2)", "S(0)"])j")), "");
  EXPECT_EQ(errorsOf(withShape("[8, 4]", R"j(["_S(0, 1)", "R"])j")), "");
  EXPECT_EQ(errorsOf(withShape("[8, 4]", R"j(["_S(0, 2)", "S(1)"])j")),
            "/parameters/0/placements/0: expected a later axis of mesh 'm' "
            "that shards dimension 0 "
            "into 2 pieces first, found none in '_S(0, 2)' (parameter 'w')\n");
  EXPECT_EQ(errorsOf(withShape("[8, 4]", R"j(["S(0)", "_S(0, 2)"])j")),
            "/parameters/0/placements/1: expected a later axis of mesh 'm' "
            "that shards dimension 0 "
            "into 2 pieces first, found none in '_S(0, 2)' (parameter 'w')\n");
  EXPECT_EQ(errorsOf(withShape("[8, 4]", R"j(["_S(0, 3)", "S(0)"])j")),
            "/parameters/0/placements/0: expected a split factor that the "
            "later axes which shard "
            "dimension 0 multiply to (1, 2), found 3 in '_S(0, 3)' (parameter "
            "'w')\n");
}

TEST(ManifestErrors, PlacementsThatCannotBe) {
  std::string at = "/parameters/0/placements/", w = " (parameter 'w')\n";
  auto one = [&](const std::string &shape, const std::string &placements) {
    return errorsOf(withShape(shape, placements));
  };
  EXPECT_EQ(one("[8, 4]", R"j(["S(0)", "IS(0, 2)"])j"), "");
  EXPECT_EQ(one("[8, 4]", R"j(["S(0)", "IS(0, 3)"])j"),
            at +
                "1: expected stripes that divide the 4 indices of dimension 0 that earlier axes "
                "leave on a rank, found 'IS(0, 3)'" +
                w);
  EXPECT_EQ(one("[7, 4]", R"j(["S(0)", "IS(0, 2)"])j"),
            at +
                "1: expected stripes that divide the 3 indices of dimension 0 that earlier axes "
                "leave on a rank, found 'IS(0, 2)'" +
                w);
  EXPECT_EQ(one("[8, 4]", R"j(["_S(0, 2)", "IS(0, 2)"])j"),
            at +
                "0: expected axes in the order in which they cut dimension 0, found a later one "
                "that cuts it into stripes in '_S(0, 2)'" +
                w);
  EXPECT_EQ(one("[8, 4]", R"j(["owned(1)", "owned(0)"])j"), "");
  EXPECT_EQ(one("[]", R"j(["owned(1)", "R"])j"), "");
  EXPECT_EQ(one("[8, 4]", R"j(["owned(2)", "R"])j"),
            at + "0: expected an owner from 0 to 1, found 'owned(2)'" + w);
  EXPECT_EQ(one("[8, 4]", R"j(["R", "owned(-1)"])j"),
            at + "1: expected an owner from 0 to 1, found 'owned(-1)'" + w);
  EXPECT_EQ(one("[8, 1]", R"j(["R", "S(1)"])j"), "");
  EXPECT_EQ(
      one("[8, 1]", R"j(["S(1)", "S(1)"])j"),
      at +
          "1: expected dimension 1 to be sharded past its size of 1 once at most: earlier axes "
          "leave 1 index for 2 ranks, found 'S(1)'" +
          w);
  // Ranges of 32 elements, or of 16 where the other axis halves them.
  EXPECT_EQ(one("[8, 4]", R"j(["flat(0, 7, 32)", "R"])j"), "");
  EXPECT_EQ(one("[8, 4]", R"j(["flat(0, 16, 16)", "S(0)"])j"), "");
  EXPECT_EQ(one("[8, 4]", R"j(["flat(0, 1, 2, 3, 32)", "flat"])j"), "");
  EXPECT_EQ(one("[8, 4]", R"j(["flat(0, 7, 31)", "R"])j"),
            at +
                "0: expected ranges that begin at 0 and end at 32, the elements of the largest "
                "shard, found 'flat(0, 7, 31)'" +
                w);
  EXPECT_EQ(one("[8, 4]", R"j(["flat(1, 7, 32)", "R"])j"),
            at +
                "0: expected ranges that begin at 0 and end at 32, the elements of the largest "
                "shard, found 'flat(1, 7, 32)'" +
                w);
  EXPECT_EQ(one("[8, 4]", R"j(["flat(0, 33, 32)", "R"])j"),
            at + "0: expected ranges that do not overlap, found 'flat(0, 33, 32)'" + w);
  EXPECT_EQ(one("[8, 4]", R"j(["flat(0, 32)", "R"])j"),
            at + "0: expected a begin for each of 2 ranks and an end, found 'flat(0, 32)'" + w);
  EXPECT_EQ(one("[8, 4]", R"j(["flat(0, 1, 2, 3, 32)", "flat(0, 8, 16)"])j"),
            at + "1: expected the ranges of one flat axis, found 'flat(0, 8, 16)'" + w);
  EXPECT_EQ(one("[8, 4]", R"j(["flat", "flat(0, 8, 32)"])j"), "");
  EXPECT_EQ(one("[8, 4]", R"j(["flat", "flat(0, 8, 16, 32)"])j"),
            at + "1: expected a begin for each of 2 ranks and an end, found 'flat(0, 8, 16, 32)'" +
                w);
  EXPECT_EQ(
      one("[8, 4]", R"j(["R", "flat"])j"),
      at + "1: expected a bucket that holds 'w', which says where its ranges begin, found none" +
          w);
}

TEST(ManifestErrors, Buckets) {
  auto check = [](const std::string &buckets, const std::string &placements,
                  const std::string &other = R"(["flat"])") {
    return errorsOf(
        R"({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "a", "size": 2}]}, {"name": "n",
            "axes": [{"name": "a", "size": 2}]}], "buckets": )" +
        buckets + R"(, "parameters": [{"name": "w", "shape": [3, 4], "dtype": "f32", "mesh": "m",
            "placements": )" +
        placements + R"(}, {"name": "v", "shape": [5], "dtype": "f32", "mesh": "m",
            "placements": )" +
        other + "}]}");
  };
  std::string flat = R"(["flat"])";
  auto two = [&](const std::string &more) {
    return R"([{"name": "b", )" + more +
           R"(, "parameters": [{"name": "w", "offset": 4}, {"name": "v", "offset": 16}]}])";
  };
  EXPECT_EQ(check(two(R"("size": 24)"), flat), "");
  EXPECT_EQ(check(two(R"("size": 24, "alignment": 4)"), flat), "");
  EXPECT_EQ(check("3", flat), "/buckets: expected an array of buckets, found 3\n"
                              "/parameters/0/placements/0: expected a bucket that holds 'w', which "
                              "says where its ranges begin, found none (parameter 'w')\n"
                              "/parameters/1/placements/0: expected a bucket that holds 'v', which "
                              "says where its ranges begin, found none (parameter 'v')\n");
  std::string zero = "/buckets/0/size: expected a number of elements from 1 to 2^40, found 0\n";
  EXPECT_EQ(check(two(R"("size": 0)"), flat).substr(0, zero.size()), zero);
  EXPECT_EQ(check(two(R"("size": 23)"), flat),
            "/parameters/0/placements/0: expected a bucket whose size is a multiple of 2 ranks × 1 "
            "elements of alignment, found 'b' of 23 (parameter 'w')\n"
            "/parameters/1/placements/0: expected a bucket whose size is a multiple of 2 ranks × 1 "
            "elements of alignment, found 'b' of 23 (parameter 'v')\n");
  EXPECT_EQ(check(two(R"("size": 20)"), flat),
            "/parameters/1/placements/0: expected 'v' inside of bucket 'b' of 20 elements, found "
            "elements 16 to 21 (parameter 'v')\n");
  EXPECT_EQ(
      check(two(R"("size": 24)"), R"j(["flat(0, 6, 12)"])j"),
      "/parameters/0/placements/0: expected flat, since bucket 'b' says where the ranges begin, "
      "found 'flat(0, 6, 12)' (parameter 'w')\n");
  EXPECT_EQ(
      check(two(R"("size": 24)"), R"(["R"])"),
      "/buckets/0/parameters/0: expected a parameter with a flat placement, found 'w' without "
      "one\n");
  std::string overlap = R"([{"name": "b", "size": 24, "parameters": [{"name": "v", "offset": 11},
                             {"name": "w", "offset": 0}]}])";
  EXPECT_EQ(
      check(overlap, flat),
      "/buckets/0/parameters/0/offset: expected parameters that do not overlap, found 'v' at 11 "
      "inside of 'w', which ends at 12\n");
  std::string unknown =
      R"([{"name": "b", "size": 24, "parameters": [{"name": "u", "offset": 0}]}])";
  EXPECT_EQ(check(unknown, R"(["R"])", R"(["R"])"),
            "/buckets/0/parameters/0/name: expected the name of a parameter, found 'u'\n");
  std::string twice = R"([{"name": "b", "size": 24, "parameters": [{"name": "w", "offset": 0}]},
                          {"name": "b", "size": 24, "parameters": [{"name": "w", "offset": 0},
                           {"name": "v", "offset": 12}]}])";
  EXPECT_EQ(
      check(twice, flat),
      "/buckets/1/name: expected a name that no other bucket has, found 'b', also at "
      "/buckets/0/name\n"
      "/buckets/1/parameters/0/name: expected each parameter in one bucket once, found 'w', also "
      "at /buckets/0/parameters/0\n");
  EXPECT_EQ(errorsOf(R"({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "a", "size": 2}]},
                         {"name": "n", "axes": [{"name": "a", "size": 2}]}], "buckets": [{"name": "b",
                         "size": 24, "parameters": [{"name": "w", "offset": 0}, {"name": "v",
                         "offset": 12}]}], "parameters": [{"name": "w", "shape": [3, 4], "dtype":
                         "f32", "mesh": "m", "placements": ["flat"]}, {"name": "v", "shape": [5],
                         "dtype": "f32", "mesh": "n", "placements": ["flat"]}]})"),
            "/buckets/0/parameters/1: expected all parameters of bucket 'b' flat on axis a of mesh "
            "'m', found 'v' on axis a of mesh 'n'\n");
}

// The ranges that follow from a bucket: what each rank's half of it has of each parameter.
TEST(Manifest, BucketsSayWhereRangesBegin) {
  ErrorList errors;
  auto manifest = readManifest(
      R"j({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "a", "size": 2}, {"name": "b",
          "size": 2}]}], "buckets": [{"name": "b", "size": 24, "parameters": [{"name": "w", "offset":
          1}, {"name": "v", "offset": 16}]}], "parameters": [{"name": "w", "shape": [3, 4], "dtype":
          "f32", "mesh": "m", "placements": ["flat", "R"], "grad_placements": ["R", "R"]}, {"name":
          "v", "shape": [10], "dtype": "f32", "mesh": "m", "placements": ["R", "S(0)"],
          "state_placements": ["flat", "S(0)"]}]})j",
      "m.json", errors);
  ASSERT_TRUE(manifest) << errors.str();
  using Cuts = std::vector<int64_t>;
  EXPECT_EQ(manifest->parameters[0].placements[0].cuts, (Cuts{0, 11, 12}));
  EXPECT_EQ(manifest->parameters[0].statePlacements[0].cuts, (Cuts{0, 11, 12}));
  EXPECT_EQ(manifest->parameters[1].statePlacements[0].cuts, (Cuts{0, 0, 5}));
  EXPECT_EQ(toString(manifest->parameters[1].statePlacements), "[flat(0, 0, 5), S(0)]");
  ErrorList none;
  auto again = readManifest(writeManifest(*manifest), "m.json", none);
  ASSERT_TRUE(again) << none.str();
  EXPECT_EQ(*again, *manifest);
}

TEST(ManifestErrors, StridedShardsOnThreeAxes) {
  auto check = [](const std::string &placements) {
    return errorsOf(
        R"({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "a", "size": 2},
           {"name": "b", "size": 3}, {"name": "c", "size": 5}]}], "parameters": [{"name": "w",
           "shape": [60, 4], "dtype": "f32", "mesh": "m", "placements": )" +
        placements + "}]}");
  };
  EXPECT_EQ(check(R"j(["_S(0, 15)", "_S(0, 5)", "S(0)"])j"),
            "");                                                 // right to left: c, b, a
  EXPECT_EQ(check(R"j(["_S(0, 15)", "S(0)", "S(0)"])j"), "");    // b, c, a
  EXPECT_EQ(check(R"j(["_S(0, 3)", "S(0)", "S(0)"])j"), "");     // b, a, c
  EXPECT_EQ(check(R"j(["_S(0, 5)", "_S(0, 5)", "S(0)"])j"), ""); // c, a, b
  EXPECT_EQ(check(R"j(["_S(0, 5)", "S(1)", "S(0)"])j"), "");
  // With b before c, five pieces alone never exist.
  EXPECT_EQ(check(R"j(["_S(0, 5)", "S(0)", "S(0)"])j"),
            "/parameters/0/placements/0: expected a split factor that the "
            "later axes which shard "
            "dimension 0 multiply to (1, 3, 15), found 5 in '_S(0, 5)' "
            "(parameter 'w')\n");
}

TEST(ManifestErrors, GradientAndStatePlacements) {
  EXPECT_EQ(errorsOf(withShape("[8, 4]", R"j(["S(0)", "S(1)"])j",
                               R"j(, "grad_placements": ["S(-2)", "S(-1)"],
                                  "state_placements": ["S(0)", "S(1)"])j")),
            "");
  EXPECT_EQ(errorsOf(withShape("[8, 4]", R"j(["S(0)", "R"])j",
                               R"j(, "grad_placements": ["R", "R"],
                                  "state_placements": ["R", "S(1)"])j")),
            "");
  EXPECT_EQ(errorsOf(withShape("[8, 4]", R"j(["S(0)", "R"])j",
                               R"j(, "grad_placements": ["R", "_S(0, 3)"],
                                  "state_placements": ["R"])j")),
            "/parameters/0/grad_placements/1: expected a later axis of mesh 'm' that shards "
            "dimension 0 into 3 pieces first, found none in '_S(0, 3)' (parameter 'w')\n"
            "/parameters/0/state_placements: expected one placement for each of the "
            "2 axes of mesh "
            "'m', found 1 (parameter 'w')\n");
}

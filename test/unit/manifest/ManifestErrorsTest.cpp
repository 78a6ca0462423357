// Every error of the manifest reader but those of placements: where it points and what it says.

#include "ManifestTexts.h"

#include "frontends/manifest/JsonText.h"

using namespace stepc::manifest;

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
            "batch_axes, flatten, blocks, "
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
  // No message is there before its ports have carried it, be the latency the profile's.
  EXPECT_EQ(
      errorsOfCluster(
          R"({"levels": [{"name": "a", "gb_per_s": 1, "latency_us": 1.5, "gap_us": 2}]})"),
      "/cluster/levels/0/gap_us: expected at most the latency, 1.5, found 2\n");
  EXPECT_EQ(
      errorsOfCluster(R"({"profile": "h100", "levels": [{"name": "network", "gap_us": 23}]})"),
      "/cluster/levels/0/gap_us: expected at most the latency, 22, found 23\n");
  EXPECT_EQ(
      errorsOfCluster(R"({"profile": "h100", "levels": [{"name": "network", "gap_us": 22}]})"), "");
  // What a profile does not say has to be said; of a misspelt one that is not known.
  EXPECT_EQ(errorsOfCluster(R"({"profile": "cpu", "levels": [{"name": "network"}]})"), "");
  EXPECT_EQ(errorsOfCluster(R"({"profile": "cpu", "levels": [{"name": "net"}]})"),
            "/cluster/levels/0: expected the key 'gb_per_s', found none\n"
            "/cluster/levels/0: expected the key 'latency_us', found none\n");
  EXPECT_EQ(errorsOfCluster(R"({"profile": "cpp", "levels": [{"name": "a"}, {"name": "b"}]})"),
            "/cluster/profile: expected a profile (cpu, a100, h100, h200, b200, gb200, gb300), "
            "found \"cpp\", did you mean 'cpu'?\n");
  // Ranks 0 to 3, which the mesh does not list, do not fit into a cluster of two.
  EXPECT_EQ(errorsOfCluster(
                R"({"levels": [{"name": "node", "ranks": 2, "gb_per_s": 1, "latency_us": 1}]})"),
            "/meshes/0/axes: expected ranks below 2, because the cluster's level 'node' has 2 "
            "ranks, found ranks 0 to 3\n");
  // The profile says how many its level has.
  EXPECT_EQ(errorsOf(R"j({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "a", "size": 2}],
                         "ranks": [71, 72]}], "cluster": {"profile": "gb300", "levels": [{"name":
                         "nvlink"}]}, "parameters": [{"name": "w", "shape": [8], "dtype": "f32",
                         "mesh": "m", "placements": ["R"]}]})j"),
            "/meshes/0/ranks/1: expected a rank below 72, because the cluster's level 'nvlink' has 72 "
            "ranks, found 72\n");
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

TEST(ManifestErrors, Flatten) {
  auto one = [](const std::string &shape, const std::string &more) {
    std::string error = errorsOf(withShape(shape, R"(["R", "R"])", ", " + more));
    std::string prefix = "/parameters/0/", suffix = " (parameter 'w')\n";
    EXPECT_TRUE(error.empty() || error.find(prefix) == 0u) << error;
    return error.empty()
               ? error
               : error.substr(prefix.size(), error.size() - prefix.size() - suffix.size());
  };
  EXPECT_EQ(one("[6, 4, 3]", R"("flatten": 1)"), "");
  EXPECT_EQ(one("[6, 4, 3, 2, 2]", R"("batch_axes": 1, "flatten": 3)"), "");
  EXPECT_EQ(one("[6, 4, 3]", R"("flatten": 2, "blocks": {"axis": "rows", "sizes": [12, 12]})"), "");
  EXPECT_EQ(one("[6, 4]", R"("flatten": 1)"),
            "flatten: expected three axes or more to flatten, found 2");
  EXPECT_EQ(one("[6, 4, 3]", R"("batch_axes": 1, "flatten": 2)"),
            "flatten: expected three axes or more to flatten, found 2");
  EXPECT_EQ(one("[6, 4, 3]", R"("batch_axes": 3, "flatten": 1)"),
            "batch_axes: expected batch axes that leave axes to flatten, found 3 of 3 dimensions");
  EXPECT_EQ(one("[6, 4, 3]", R"("flatten": 0)"),
            "flatten: expected the axis where columns begin, 1 or more, found 0");
  EXPECT_EQ(one("[6, 4, 3]", R"("flatten": 3)"),
            "flatten: expected columns from axis 1 to 2 on, found 3");
  EXPECT_EQ(one("[6, 4, 3, 2]", R"("batch_axes": 1, "flatten": 1)"),
            "flatten: expected columns from axis 2 to 3 on, found 1");
  // Rows and columns of what has too many elements are not asked for.
  for (const char *more :
       {R"("flatten": 2, "blocks": {"axis": "rows", "sizes": [4]})",
        R"("batch_axes": 1, "blocks": {"axis": "rows", "sizes": [4]})",
        R"("flatten": 2, "blocks": {"axis": "rows", "runs": [[[0, 4]], [[4, 6]]]})"})
    EXPECT_EQ(one("[1099511627776, 1099511627776, 4]", more),
              "shape: expected at most 2^40 elements, found a product of sizes beyond that");
  EXPECT_EQ(one("[6, 4, 3]", R"("flatten": 1, "blocks": {"axis": "columns", "sizes": [3]})"),
            "blocks/sizes: expected sizes that add up to 12 columns, found 3");
  EXPECT_EQ(one("[6, 4, 3]", R"("flatten": 2, "blocks": {"axis": "rows", "runs": [[[0, 6]]]})"),
            "blocks: expected each row in one part, found row 6 in none");
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

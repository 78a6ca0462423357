// Every error of placements and buckets, and the ranges that follow from these.

#include "ManifestTexts.h"

using namespace stepc::manifest;

TEST(ManifestErrors, PlacementTexts) {
  auto one = [](const std::string &text) {
    std::string error = errorsOf(withShape("[4, 4]", "[\"R\", \"" + text + "\"]"));
    std::string prefix = "/parameters/0/placements/1: ", suffix = " (parameter 'w')\n";
    EXPECT_EQ(error.find(prefix), 0u) << error;
    return error.substr(prefix.size(), error.size() - prefix.size() - suffix.size());
  };
  std::string expected =
      "expected R, S(dim), _S(dim, split_factor), IS(dim, stripes), owned(rank), "
      "flat or flat(begin, …, end), found ";
  for (const char *bad :
       {"", "S", "S()", "S(x)", "S(0, 2)", "_S(0)", "_S(0, 2, 3)", "R(0)", "IS(0)", "owned",
        "owned()", "flat(0, x)", "Q", "P(max)", "Partial(max)", "Shard"})
    EXPECT_EQ(one(bad), expected + "'" + bad + "'");
  EXPECT_EQ(one("_S(0, 0)"), "expected a split factor of at least 1, found '_S(0, 0)'");
  EXPECT_EQ(one("IS(0, 0)"), "expected stripes of at least 1, found 'IS(0, 0)'");
  EXPECT_EQ(one("P(sum)"), "expected no partial sum but of a gradient, found 'P(sum)'");
  EXPECT_EQ(errorsOf(withShape("[4, 4]", "[0, \"R\"]")),
            "/parameters/0/placements/0: " + expected.substr(0, expected.size() - 8) +
                " as a string, found 0 (parameter 'w')\n");
  // Other spellings of a form: torch's, and slips.
  for (auto [bad, meant] : {std::pair("Shard(0)", "S(0)"),
                            {"Shard(dim=0)", "S(0)"},
                            {"s(-1)", "S(-1)"},
                            {"S(0", "S(0)"},
                            {"S(0))", "S(0)"},
                            {"Shrad(1)", "S(1)"},
                            {"_StridedShard(dim=0, sf=2)", "_S(0, 2)"},
                            {"_StridedShard(sf=2, dim=0)", "_S(0, 2)"},
                            {"_S(0,2,)", "_S(0, 2)"},
                            {"is(0, 2)", "IS(0, 2)"},
                            {"Replicate()", "R"},
                            {"r", "R"},
                            {"Owned(1)", "owned(1)"},
                            {"flat()", "flat"},
                            {"FLAT(0, 8, 16)", "flat(0, 8, 16)"}})
    EXPECT_EQ(one(bad), expected + "'" + bad + "', did you mean '" + meant + "'?");
  for (const char *bad : {"P", "P(mean)", "Partial(avg)", "p(sum)"})
    EXPECT_EQ(one(bad), expected + "'" + bad + "'; partial sums are of gradients alone");
}

TEST(ManifestErrors, PlacementTextsOfGradientsAndStates) {
  auto one = [](const std::string &list, const std::string &text) {
    return errorsOf(
        withShape("[4, 4]", R"(["R", "R"], ")" + list + R"(": ["R", ")" + text + "\"]"));
  };
  std::string at = "/parameters/0/", w = " (parameter 'w')\n";
  std::string forms = "expected R, S(dim), _S(dim, split_factor), IS(dim, stripes), owned(rank), ";
  std::string gradient =
      at + "grad_placements/1: " + forms + "flat, flat(begin, …, end), P(sum) or P(avg), found ";
  EXPECT_EQ(one("grad_placements", "P(max)"), gradient + "'P(max)'" + w);
  for (auto [bad, meant] : {std::pair("P(mean)", "P(avg)"),
                            {"P", "P(sum)"},
                            {"Partial()", "P(sum)"},
                            {"P(sum", "P(sum)"},
                            {"Partial(avg)", "P(avg)"},
                            {"Partial(reduce_op='sum')", "P(sum)"},
                            {"Shard(0)", "S(0)"}})
    EXPECT_EQ(one("grad_placements", bad),
              gradient + "'" + bad + "', did you mean '" + meant + "'?" + w);
  EXPECT_EQ(one("state_placements", "P(mean)"), at + "state_placements/1: " + forms +
                                                    "flat or flat(begin, …, end), found 'P(mean)'; "
                                                    "partial sums are of gradients alone" +
                                                    w);
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
  // A few bytes of text must not become loops of as many steps.
  EXPECT_EQ(one("[1099511627776]", R"j(["IS(0, 1099511627776)", "R"])j"),
            at + "0: expected stripes from 1 to 1048576, found 'IS(0, 1099511627776)'" + w);
  EXPECT_EQ(one("[1099511627776]", R"j(["flat(0, 1, 2)", "_S(0, 1099511627776)"])j"),
            at + "1: expected a split factor from 1 to 1048576, found '_S(0, 1099511627776)'" + w);
  EXPECT_EQ(errorsOf(R"j({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "a", "size":
                         1048576}]}], "parameters": [{"name": "w", "shape": [1048577, 1048575],
                         "dtype": "f32", "mesh": "m", "placements": ["_S(0, 1048576)"]}]})j"),
            at +
                "0: expected a later axis of mesh 'm' that shards dimension 0 into 1048576 pieces "
                "first, found none in '_S(0, 1048576)'" +
                w);
  EXPECT_EQ(one("[1099511627776]", R"j(["IS(0, 1048576)", "IS(0, 1048576)"])j"), "");
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
  EXPECT_EQ(check(two(R"("size": 0)"), flat),
            "/buckets/0/size: expected a number of elements from 1 to 2^40, found 0\n");
  EXPECT_EQ(check(R"([{"name": "b", "size": 24, "parameters": []}])", R"(["R"])", R"(["R"])"),
            "/buckets/0/parameters: expected at least one parameter in the bucket, found none\n");
  EXPECT_EQ(check(two(R"("size": 23)"), flat),
            "/buckets/0/size: expected a multiple of 2 ranks × 1 elements of alignment, found 23 "
            "(parameter 'w')\n");
  EXPECT_EQ(check(two(R"("size": 20)"), flat),
            "/buckets/0/parameters/1/offset: expected 'v' inside of bucket 'b' of 20 elements, "
            "found elements 16 to 21 (parameter 'v')\n");
  EXPECT_EQ(
      check(two(R"("size": 24)"), R"j(["flat(0, 6, 12)"])j"),
      "/parameters/0/placements/0: expected flat(0, 8, 12), since bucket 'b' has 'w' at 4, found "
      "'flat(0, 6, 12)' (parameter 'w')\n");
  EXPECT_EQ(check(two(R"("size": 24)"), R"j(["flat(0, 8, 12)"])j"), "");
  // An offset that is off by one.
  EXPECT_EQ(
      check(R"([{"name": "b", "size": 24, "parameters": [{"name": "w", "offset": 5}]}])",
            R"j(["flat(0, 8, 12)"])j", R"(["R"])"),
      "/parameters/0/placements/0: expected flat(0, 7, 12), since bucket 'b' has 'w' at 5, found "
      "'flat(0, 8, 12)' (parameter 'w')\n");
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

// Dimensions that count from the end are those that they mean, also where a bucket gives ranges.
TEST(Manifest, BucketsCutShardsOfNegativeDimensions) {
  auto read = [](const std::string &dim, const std::string &states) {
    ErrorList errors;
    auto manifest = readManifest(
        R"j({"version": 1, "meshes": [{"name": "m", "axes": [{"name": "a", "size": 2}, {"name": "b",
            "size": 2}]}], "buckets": [{"name": "b", "size": 24, "parameters": [{"name": "w",
            "offset": 8}]}], "parameters": [{"name": "w", "shape": [8, 4], "dtype": "f32", "mesh":
            "m", "placements": ["flat", "S()j" +
            dim + R"j()"], "state_placements": ["flat", "S()j" + states + R"j()"]}]})j",
        "m.json", errors);
    EXPECT_TRUE(manifest) << errors.str();
    return std::move(*manifest);
  };
  Manifest expected = read("0", "0");
  EXPECT_EQ(toString(expected.parameters[0].statePlacements), "[flat(0, 4, 16), S(0)]");
  EXPECT_EQ(read("0", "-2"), expected);
  EXPECT_EQ(read("-2", "0"), expected);
  EXPECT_EQ(read("-2", "-2"), expected);
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

#include "frontends/manifest/MakeManifest.h"
#include "TestFiles.h"
#include "frontends/manifest/RunTensors.h"

using namespace stepc::manifest;

namespace {

/// A file whose entries are (name, dtype, shape, bytes).
struct Entry {
  const char *name, *dtype, *shape;
  size_t bytes;
};

SafetensorsFile fileWith(const std::vector<Entry> &entries) {
  std::string header = "{";
  size_t offset = 0;
  for (const Entry &e : entries)
    header += (offset || header.size() > 1 ? ", " : "") +
              entry(e.name, e.dtype, e.shape, e.bytes, &offset);
  ErrorList errors;
  std::optional<SafetensorsFile> file =
      SafetensorsFile::read(fileOf(header + "}", offset), "f.st", errors);
  EXPECT_TRUE(file) << errors.str();
  return std::move(*file);
}

SafetensorsFile model() {
  return fileWith({{"param:w", "BF16", "[4, 6]", 48},
                   {"param:experts", "F32", "[2, 4, 6]", 192},
                   {"param:norm", "F32", "[6]", 24},
                   {"grad:w@1", "F32", "[4, 6]", 96},
                   {"grad:w@2", "F32", "[4, 6]", 96},
                   {"grad:experts", "F32", "[2, 4, 6]", 192},
                   {"grad:norm", "F32", "[6]", 24},
                   {"state:w:m", "F32", "[4, 6]", 96}});
}

std::string errorsOf(const SafetensorsFile &file, const MakeManifestOptions &options) {
  ErrorList errors;
  EXPECT_EQ(makeManifest(file, options, errors).has_value(), errors.empty());
  return errors.str();
}

} // namespace

TEST(MakeManifest, PrefixedFile) {
  ErrorList errors;
  std::optional<Manifest> m = makeManifest(
      model(), {"dp=2,tp=2", {"*=R,R", "[we]*=S(0),R", "experts=S(1),S(-1)"}, {"exp*"}, {}},
      errors);
  ASSERT_TRUE(m) << errors.str();
  EXPECT_EQ(writeManifest(*m), R"j({
  "version": 1,
  "meshes": [
    {
      "name": "mesh",
      "axes": [
        {"name": "dp", "size": 2},
        {"name": "tp", "size": 2}
      ]
    }
  ],
  "parameters": [
    {
      "name": "experts",
      "shape": [2, 4, 6],
      "dtype": "f32",
      "mesh": "mesh",
      "placements": ["S(1)", "S(2)"],
      "batch_axes": 1
    },
    {
      "name": "norm",
      "shape": [6],
      "dtype": "f32",
      "mesh": "mesh",
      "placements": ["R", "R"]
    },
    {
      "name": "w",
      "shape": [4, 6],
      "dtype": "bf16",
      "grad_dtype": "f32",
      "mesh": "mesh",
      "placements": ["S(0)", "R"]
    }
  ]
}
)j");
}

TEST(MakeManifest, PlainFileTakesEveryTensor) {
  ErrorList errors;
  SafetensorsFile file = fileWith({{"module.a", "F16", "[3]", 6}, {"b", "F32", "[2, 2, 2]", 32}});
  std::optional<Manifest> m =
      makeManifest(file, {"dp=2", {"*=S(0)", "a=R"}, {}, DType::BF16}, errors);
  ASSERT_TRUE(m) << errors.str();
  ASSERT_EQ(m->parameters.size(), 2u);
  EXPECT_EQ(m->parameters[0].name, "b");
  EXPECT_EQ(m->parameters[0].batchAxes, 0);
  EXPECT_EQ(m->parameters[0].gradDType, DType::BF16);
  EXPECT_EQ(m->parameters[1].name, "module.a");
  EXPECT_EQ(m->parameters[1].placements[0], Placement());
}

TEST(MakeManifest, MeshErrors) {
  SafetensorsFile file = fileWith({{"w", "F32", "[4]", 16}});
  for (const char *bad : {"", "dp", "dp=", "dp=0", "dp=-1", "dp=x", "=2", "dp=2000000"})
    EXPECT_EQ(errorsOf(file, {bad, {}, {}, {}}),
              "--mesh '" + std::string(bad) +
                  "': expected axes as NAME=SIZE with sizes from 1 to "
                  "1048576, found '" +
                  bad + "'\n");
  EXPECT_EQ(errorsOf(file, {"a=2,a=2", {}, {}, {}}),
            "--mesh 'a=2,a=2': expected a name that no other axis of the mesh "
            "has, found 'a', also "
            "axis 0\n");
  EXPECT_EQ(errorsOf(file, {"a=1,b=1,c=1,d=1,e=1,f=1", {}, {}, {}}),
            "--mesh 'a=1,b=1,c=1,d=1,e=1,f=1': expected 1 to 5 axes, found 6\n");
  EXPECT_EQ(errorsOf(file, {"a=1048576,b=1048576", {}, {}, {}}),
            "--mesh 'a=1048576,b=1048576': expected at most 1048576 ranks, "
            "found a product of "
            "sizes beyond that\n");
}

TEST(MakeManifest, RuleErrors) {
  SafetensorsFile file = fileWith({{"w", "F32", "[4, 4]", 64}, {"v", "F32", "[4]", 16}});
  EXPECT_EQ(errorsOf(file, {"dp=2", {"w", "=R", "w=Q", "*=R,R"}, {}, {}}),
            "--place 'w': expected PATTERN=PLACEMENT,..., found no pattern and '='\n"
            "--place '=R': expected PATTERN=PLACEMENT,..., found no pattern and '='\n"
            "--place 'w=Q': expected R, S(dim), _S(dim, split_factor), IS(dim, stripes), "
            "owned(rank), flat or flat(begin, …, end), found 'Q'\n"
            "--place '*=R,R': expected 1 placements, one for each axis of --mesh, "
            "found 2\n");
  EXPECT_EQ(errorsOf(file, {"dp=2", {"w=S(0)"}, {}, {}}),
            "f.st: expected a --place pattern that matches each parameter "
            "(--place '*=R' with one "
            "R per axis keeps the rest whole), found none (parameter 'v')\n");
  EXPECT_EQ(errorsOf(file, {"dp=2", {"*=S(1)"}, {}, {}}),
            "--place '*=S(1)': expected a dimension from -1 to 0, found 'S(1)' "
            "(parameter 'v')\n");
  // There are no buckets yet from which ranges follow.
  EXPECT_EQ(errorsOf(file, {"dp=2", {"*=R", "w=flat"}, {}, {}}),
            "--place 'w=flat': expected ranges, flat(0, …), of a parameter that no bucket holds, "
            "found 'flat' (parameter 'w')\n");
  EXPECT_EQ(errorsOf(file, {"dp=2", {"*=R", "w=flat(0, 7, 16)"}, {}, {}}), "");
  EXPECT_EQ(errorsOf(file, {"dp=2", {"*=R", "x*=S(0)"}, {"w"}, {}}),
            "--place 'x*=S(0)': expected a pattern that matches a parameter, "
            "found none for 'x*'\n"
            "--batch 'w': expected a pattern that matches a parameter of three "
            "or more dimensions, "
            "found none\n");
  EXPECT_EQ(errorsOf(file, {"dp=2", {"*=R", "[^a]*=S(0)"}, {"[a"}, {}}),
            "--place '[^a]*=S(0)': expected '!' where a set of a pattern is negated, found '^'; "
            "write '[!...]' for a character that is not in the set, and a '^' that belongs to the "
            "set behind its first character\n"
            "--batch '[a': expected ']' after '[' in a pattern; a '[' of the name itself is "
            "written '[[]'\n");
}

TEST(MakeManifest, TensorErrors) {
  MakeManifestOptions options{"dp=2", {"*=R"}, {}, {}};
  EXPECT_EQ(errorsOf(fileWith({}), options), "f.st: expected at least one tensor, found none\n");
  EXPECT_EQ(
      errorsOf(fileWith({{"w", "F64", "[1]", 8}, {"v", "U8", "[1]", 1}, {"e", "F32", "[0]", 0}}),
               options),
      "f.st: expected a parameter with elements, found a dimension of "
      "size 0 (parameter "
      "'e')\n"
      "f.st: expected F32, BF16 or F16, found U8 (parameter 'v')\n"
      "f.st: expected F32, BF16 or F16, found F64 (parameter 'w')\n");
  EXPECT_EQ(errorsOf(fileWith({{"w", "F32", "[1]", 4}, {"module.w", "F32", "[1]", 4}}), options),
            "f.st: expected a name that no other parameter or alias has, found "
            "'w', also at "
            "/parameters/0/name (parameter 'w')\n");
  EXPECT_EQ(errorsOf(fileWith({{"param:w", "F32", "[1]", 4},
                               {"v", "F32", "[1]", 4},
                               {"param:", "F32", "[1]", 4},
                               {"grad:x", "F32", "[1]", 4},
                               {"grad:w", "F32", "[1]", 4},
                               {"metric:w:n", "F32", "[7]", 28},
                               {"grad:w@1", "BF16", "[1]", 2}}),
                     options),
            "f.st: expected a parameter's name, found 'param:'\n"
            "f.st: expected a name that starts with param:, grad:, state:, input: or metric:, "
            "as others in the file "
            "do, found 'v'\n"
            "f.st: expected one dtype in all gradients (f32 in 'grad:w'), "
            "found bf16 in 'grad:w@1' "
            "(parameter 'w')\n"
            "f.st: expected a tensor 'param:x' for 'grad:x', found none\n");
  EXPECT_EQ(
      errorsOf(fileWith({{"param:w", "F32", "[2]", 8}, {"grad:w", "F32", "[3]", 12}}), options),
      "f.st: expected the parameter's shape [2] in 'grad:w', found [3] (parameter 'w')\n");
  EXPECT_EQ(errorsOf(fileWith({{"state:w:m", "F32", "[1]", 4}}), options),
            "f.st: expected a tensor named param:NAME, found none\n");
}

TEST(MakeManifest, PartialGradients) {
  SafetensorsFile file = fileWith({{"param:w", "F32", "[2]", 8}, {"grad:w", "F32", "[6, 2]", 48}});
  auto options = [](std::vector<std::string> placeGrad) {
    return MakeManifestOptions{"dp=3,tp=2", {"*=R,R"}, {}, {}, std::move(placeGrad)};
  };
  ErrorList errors;
  std::optional<Manifest> m = makeManifest(file, options({"*=R,R", "w=P(avg),P(sum)"}), errors);
  ASSERT_TRUE(m) << errors.str();
  EXPECT_EQ(toString(m->parameters[0].gradPlacements), "[P(avg), P(sum)]");
  EXPECT_EQ(toString(m->parameters[0].statePlacements), "[R, R]");
  EXPECT_EQ(errorsOf(file, options({"w=P(sum),R"})),
            "f.st: expected the parameter's shape [2] for each of 3 contributions, [3, 2], in "
            "'grad:w', found [6, 2] (parameter 'w')\n");
  EXPECT_EQ(errorsOf(file, options({})),
            "f.st: expected the parameter's shape [2] in 'grad:w', found [6, 2]; --place-grad "
            "'PATTERN=P(sum)', with a placement for each axis, says that ranks have contributions "
            "(parameter 'w')\n");
  EXPECT_EQ(
      errorsOf(file, options({"w=P(sum)"})),
      "--place-grad 'w=P(sum)': expected 2 placements, one for each axis of --mesh, found 1\n");
  EXPECT_EQ(errorsOf(file, options({"w=S(1),R"})),
            "--place-grad 'w=S(1),R': expected a dimension from -1 to 0, found 'S(1)' (parameter "
            "'w')\n");
}

TEST(RunTensors, CollectsBySteps) {
  ErrorList errors;
  SafetensorsFile file = model();
  std::optional<Manifest> m = makeManifest(file, {"dp=2", {"*=R"}, {"experts"}, {}}, errors);
  ASSERT_TRUE(m) << errors.str();
  std::optional<std::vector<RunTensors>> run = collectRunTensors(file, *m, 2, false, errors);
  ASSERT_TRUE(run) << errors.str();
  ASSERT_EQ(run->size(), 3u);
  const RunTensors &w = (*run)[2], &experts = (*run)[0];
  EXPECT_EQ(w.parameter->name, "param:w");
  EXPECT_EQ(w.gradients[0]->name, "grad:w@1");
  EXPECT_EQ(w.gradients[1]->name, "grad:w@2");
  ASSERT_EQ(w.states.size(), 1u);
  EXPECT_EQ(w.states[0].first, "m");
  EXPECT_EQ(experts.gradients[0], experts.gradients[1]);
  EXPECT_TRUE(experts.states.empty());

  EXPECT_FALSE(collectRunTensors(file, *m, 4, false, errors));
  EXPECT_EQ(errors.str(), "f.st: expected a tensor 'grad:w' or 'grad:w@3', found none (parameter "
                          "'w')\n");
  errors = {};
  run = collectRunTensors(file, *m, 4, true, errors);
  ASSERT_TRUE(run) << errors.str();
  EXPECT_EQ((*run)[2].gradients[2], nullptr);
}

TEST(RunTensors, AGradientThatCouldBeTwoParametersIsNeithers) {
  ErrorList errors;
  std::optional<Manifest> m =
      makeManifest(fileWith({{"param:w", "F32", "[1]", 4}, {"param:w@1", "F32", "[1]", 4}}),
                   {"dp=2", {"*=R"}, {}, {}}, errors);
  ASSERT_TRUE(m) << errors.str();
  auto gradients = [&](std::vector<Entry> tensors) {
    tensors.insert(tensors.begin(), {{"param:w", "F32", "[1]", 4}, {"param:w@1", "F32", "[1]", 4}});
    SafetensorsFile file = fileWith(tensors);
    errors = {};
    (void)collectRunTensors(file, *m, 2, true, errors);
    return errors.str();
  };
  EXPECT_EQ(gradients({{"grad:w@1", "F32", "[1]", 4}}),
            "f.st: expected a gradient of one parameter, found 'grad:w@1', which is that of 'w' "
            "for step 1 and that of 'w@1' for every step; 'grad:w@1@STEP' names the latter's for "
            "one step\n");
  EXPECT_EQ(gradients({{"grad:w", "F32", "[1]", 4}, {"grad:w@1@1", "F32", "[1]", 4}}), "");
  EXPECT_EQ(gradients({{"grad:w@2", "F32", "[1]", 4}, {"grad:w@1@3", "F32", "[1]", 4}}),
            "f.st: expected tensors of steps 1 to 2, found 'grad:w@1@3': --steps 3 takes all "
            "steps that have some (parameter 'w@1')\n");
}

TEST(RunTensors, Errors) {
  ErrorList errors;
  std::optional<Manifest> m = makeManifest(model(), {"dp=2", {"*=R"}, {}, {}}, errors);
  ASSERT_TRUE(m) << errors.str();
  m->parameters[0].requiresGrad = false; // experts
  SafetensorsFile file = fileWith({{"param:w", "F32", "[4, 5]", 80},
                                   {"param:module.w", "BF16", "[4, 6]", 48},
                                   {"grad:w", "BF16", "[4, 6]", 48},
                                   {"param:experts", "F32", "[2, 4, 6]", 192},
                                   {"state:w:m", "U8", "[1]", 1},
                                   {"param:x", "F32", "[1]", 4},
                                   {"y", "F32", "[1]", 4}});
  EXPECT_FALSE(collectRunTensors(file, *m, 1, false, errors));
  EXPECT_EQ(errors.str(), "f.st: expected the manifest's shape [4, 6] in 'param:w', found [4, 5] "
                          "(parameter "
                          "'w')\n"
                          "f.st: expected the manifest's dtype BF16 in 'param:w', found F32 "
                          "(parameter 'w')\n"
                          "f.st: expected one tensor for each name of the parameter, found a "
                          "second, "
                          "'param:module.w' (parameter 'w')\n"
                          "f.st: expected the manifest's dtype F32 in 'grad:w', found BF16 "
                          "(parameter 'w')\n"
                          "f.st: expected F64, F32, BF16, F16 or I64 in 'state:w:m', found U8 "
                          "(parameter 'w')\n"
                          "f.st: expected param:NAME, grad:NAME, grad:NAME@STEP, "
                          "state:NAME:STATE or input:NAME:INPUT of a "
                          "parameter of the manifest, found 'param:x'\n"
                          "f.st: expected param:NAME, grad:NAME, grad:NAME@STEP, "
                          "state:NAME:STATE or input:NAME:INPUT of a "
                          "parameter of the manifest, found 'y'\n"
                          "f.st: expected a tensor 'param:norm', found none (parameter 'norm')\n"
                          "f.st: expected a tensor 'grad:norm' or 'grad:norm@1', found none "
                          "(parameter "
                          "'norm')\n");
}

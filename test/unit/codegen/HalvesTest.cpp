//===- HalvesTest.cpp - Strategies of two hops, from another dialect -------===//
//
// Nothing but this folder knows of these strategies. They are forced by name, proven for all ranks, and
// step to the bits of a single rank; a copy that sends on what does not belong there is refused.
//
//===----------------------------------------------------------------------===//

#include "test/unit/codegen/Halves.h"
#include "test/unit/codegen/Compile.h"

#include "passes/decide/Passes.h"
#include "passes/distribute/Passes.h"
#include "passes/schedule/Passes.h"
#include "passes/verify/Verify.h"
#include "tools/stepc/Pipeline.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <mutex>

using namespace mlir;

namespace stepc::test {
namespace {

const std::string kMesh = R"(axes ["x"] sizes [4] ranks [0, 1, 2, 3])";

void registerHalves(DialectRegistry &registry) { registry.insert<HalvesDialect>(); }

/// A module at level 4, its groups stepped by a strategy; or an error.
class Scheduled {
public:
  Scheduled(const std::string &text, const std::string &strategy) {
    DialectRegistry registry;
    driver::registerDialects(registry);
    registerHalves(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    context.loadDialect<HalvesDialect>();
    context.getDiagEngine().registerHandler(
        [this](Diagnostic &diagnostic) { error += diagnostic.str() + "\n"; });
    module = parseSourceString<ModuleOp>(text, &context);
    PassManager manager(&context);
    decide::buildDecidePipeline(manager, {{"*=" + strategy}, 2});
    distribute::buildDistributePipeline(manager);
    schedule::buildSchedulePipeline(manager);
    if (!module || failed(manager.run(*module)))
      error = "not scheduled: " + error;
  }

  std::string text() {
    std::string text;
    llvm::raw_string_ostream os(text);
    module->print(os);
    return text;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string error;
};

/// visit(element of the parameter, element of its shard)
template <typename Visit>
void eachElement(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                 plan::ValueKind kind, Visit visit) {
  geometry::View view = geometry::view(group, kind);
  for (const geometry::Rect &rect : geometry::rectangles(group, mesh, position, kind))
    for (int64_t i = 0; i < rect.rows; ++i)
      for (int64_t j = 0; j < rect.cols; ++j)
        visit(((rect.block * view.rows) + rect.row + i) * view.cols + rect.col + j,
              rect.offset + i * rect.stride + j);
}

/// Each parameter and its states after three steps, put together from the ranks.
using Values = std::vector<std::vector<float>>;
Values step(const std::string &text, const std::string &strategy) {
  Scheduled made(text, strategy);
  EXPECT_EQ(made.error, "") << strategy;
  Values whole;
  if (!made.error.empty())
    return whole;
  std::vector<plan::Group> groups;
  for (auto parameter : made.module->getOps<optim::ParameterOp>()) {
    groups.push_back(parameter.toPlan());
    groups.back().parameters = {0};
    auto size = size_t(geometry::elements(groups.back().shape));
    for (int64_t count : {size, size, size / size_t(groups.back().cols())})
      whole.push_back(std::vector<float>(count, NAN));
  }
  plan::Mesh mesh = optim::toPlan(*made.module->getOps<optim::MeshOp>().begin());
  Compiled compiled =
      load({made.text(), "", Restart::None, codegen::Sanitizer::None, registerHalves});
  EXPECT_TRUE(compiled.library) << compiled.error;
  if (!compiled.library)
    return whole;
  std::mutex mutex;
  runWorld(compiled.library, [&](Rank &rank, int position) {
    auto fill = [&](size_t p, float *shard, unsigned seed) {
      std::vector<float> values = randomFloats(whole[3 * p].size(), seed);
      eachElement(groups[p], mesh, position, plan::ValueKind::Full,
                  [&](int64_t from, int64_t to) { shard[to] = values[from]; });
    };
    for (size_t p = 0; p < groups.size(); ++p)
      fill(p, rank.parameter<float>(int64_t(p)), unsigned(p));
    for (unsigned t = 1; t <= 3; ++t) {
      for (size_t p = 0; p < groups.size(); ++p)
        fill(p, rank.gradient<float>(int64_t(p)), 100 * t + unsigned(p));
      rank.step();
    }
    std::lock_guard lock(mutex);
    for (size_t p = 0; p < groups.size(); ++p) {
      auto take = [&](std::vector<float> &values, plan::ValueKind kind, const float *shard) {
        eachElement(groups[p], mesh, position, kind, [&](int64_t to, int64_t from) {
          EXPECT_TRUE(std::isnan(values[to]) || values[to] == shard[from]) << "replicas differ";
          values[to] = shard[from];
        });
      };
      take(whole[3 * p], plan::ValueKind::Full, rank.parameter<float>(int64_t(p)));
      take(whole[3 * p + 1], plan::ValueKind::Full, rank.state<float>(int64_t(p), 0));
      take(whole[3 * p + 2], plan::ValueKind::Rows, rank.state<float>(int64_t(p), 1));
    }
  });
  return whole;
}

TEST(Halves, KeepTheBitsOfASingleRank) {
  std::string text = input("turns.mlir");
  Values single = step(replaced(text, kMesh, R"(axes ["x"] sizes [1] ranks [0])"), "local");
  ASSERT_FALSE(single.empty());
  EXPECT_FALSE(std::isnan(single.front().front()));
  const std::string on2x4 = R"(axes ["y", "x"] sizes [2, 4] ranks [0, 1, 2, 3, 4, 5, 6, 7])";
  struct Layout {
    std::string mesh, placements;
  };
  for (const Layout &layout :
       {Layout{kMesh, "[#optim.shard<0>]"}, Layout{kMesh, "[#optim.replicate]"},
        Layout{on2x4, "[#optim.replicate, #optim.shard<0>]"},
        Layout{on2x4, "[#optim.shard<0>, #optim.shard<1>]"}}) {
    std::string there = replaced(text, kMesh, layout.mesh);
    there = replaced(replaced(there, "[#optim.shard<0>]", layout.placements), "[#optim.shard<2>]",
                     layout.placements);
    for (const char *strategy : {"in_turn", "joined", "shared"})
      EXPECT_EQ(step(there, strategy), single) << strategy << " " << layout.placements;
  }
}

/// Which strategies there are is said by the dialects that are loaded.
TEST(Halves, AreKnownByTheirNames) {
  std::string text = input("turns.mlir");
  EXPECT_THAT(Scheduled(text, "thirds").error,
              testing::HasSubstr("expected a strategy as PATTERN=in_turn, PATTERN=joined, "
                                 "PATTERN=shared, PATTERN=local, PATTERN=owner or PATTERN=gather, "
                                 "found \"*=thirds\""));
  std::string alone = replaced(text, kMesh, R"(axes ["x"] sizes [3] ranks [0, 1, 2])");
  EXPECT_THAT(Scheduled(alone, "in_turn").error,
              testing::HasSubstr("found in_turn: the last axis has no halves"));
}

/// One row of one rank that sends on what arrived is changed: the proof refuses each.
TEST(Halves, WrongRelaysAreRefused) {
  Scheduled made(input("turns.mlir"), "in_turn");
  ASSERT_EQ(made.error, "");
  ASSERT_TRUE(succeeded(verify::verifyPlan(*made.module)));
  auto refused = [&](const char *expected, auto change) {
    int64_t changed = 0;
    auto lying = [&](const plan::Plan &plan) {
      verify::Expand expand = verify::runtimeExpand(plan);
      expand.table = [&, truth = expand.table](int64_t index, int64_t rank) {
        const plan::Table &table = plan.tables[index];
        plan::RankTable rows = truth(index, rank);
        if (table.kind == plan::TableKind::Copy && table.from.isMoving() && table.to.isMoving() &&
            rows.copies.size() > 1 && !changed)
          changed += change(rows.copies, plan);
        return rows;
      };
      return expand;
    };
    made.error.clear();
    EXPECT_TRUE(failed(verify::verifyPlan(*made.module, lying))) << expected;
    EXPECT_EQ(changed, 1);
    EXPECT_THAT(made.error, testing::HasSubstr(expected));
  };
  using Rows = std::vector<plan::CopyRow>;
  refused("of the message from rank", [](Rows &rows, const plan::Plan &) {
    for (plan::CopyRow &row : rows)
      if (row.rows == rows[0].rows && row.cols == rows[0].cols &&
          row.parameter == rows[0].parameter && row.source != rows[0].source) {
        std::swap(row.source, rows[0].source);
        return true;
      }
    return false;
  });
  refused("expected a packed buffer that holds every element once, found element",
          [](Rows &rows, const plan::Plan &) {
            rows.erase(rows.begin());
            return true;
          });
  refused("in what is packed, found one that leads elsewhere on rank",
          [](Rows &rows, const plan::Plan &) {
            rows.back().source += 100000;
            return true;
          });
  refused(" that the rank has part in, found parameter ", [](Rows &rows, const plan::Plan &plan) {
    rows[0].parameter = int64_t(plan.parameters.size());
    return true;
  });
  refused("expected blocks of parameter 'b' in segment @", [](Rows &rows, const plan::Plan &plan) {
    bool isFirst = plan.parameters[rows[0].parameter].name == "a";
    rows[0].parameter += isFirst;
    return isFirst;
  });
}

} // namespace
} // namespace stepc::test

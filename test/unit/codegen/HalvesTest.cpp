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

#include <bit>
#include <cmath>
#include <mutex>
#include <set>

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

/// What the ranks of a world asked of their transports.
struct Asked {
  static inline std::mutex mutex;
  static inline std::set<std::vector<int32_t>> opened;
  static inline int64_t onTheWorld; // operations of exchanges
  static inline stepc_transport original;

  static int32_t open(void *context, const int32_t *members, int32_t count, void **communicator,
                      void **handle, char *error, int64_t size) {
    std::lock_guard lock(mutex);
    opened.insert({members, members + count});
    return original.open_communicator(context, members, count, communicator, handle, error, size);
  }
  static int32_t start(void *context, const stepc_operations *group, void **handle, char *error,
                       int64_t size) {
    constexpr int64_t kFirstExchangeTag = 2;
    for (int64_t i = 0; i < group->count; ++i) {
      std::lock_guard lock(mutex);
      onTheWorld +=
          group->operations[i].tag >= kFirstExchangeTag && !group->operations[i].communicator;
    }
    return original.start(context, group, handle, error, size);
  }
  static void watch(stepc_transport &transport) {
    original = transport;
    transport.open_communicator = open;
    transport.start = start;
  }
};

/// Each parameter and its states after three steps, put together from the ranks, as bits.
using Values = std::vector<std::vector<uint32_t>>;
constexpr auto kNever = std::bit_cast<uint32_t>(NAN);
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
      whole.push_back(std::vector<uint32_t>(count, kNever));
  }
  plan::Mesh mesh = optim::toPlan(*made.module->getOps<optim::MeshOp>().begin());
  Compiled compiled =
      load({made.text(), "", Restart::None, codegen::Sanitizer::None, registerHalves});
  EXPECT_TRUE(compiled.library) << compiled.error;
  if (!compiled.library)
    return whole;
  std::mutex mutex;
  Asked::opened.clear();
  Asked::onTheWorld = 0;
  auto body = [&](Rank &rank, int position) {
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
      auto take = [&](std::vector<uint32_t> &values, plan::ValueKind kind, const float *shard) {
        eachElement(groups[p], mesh, position, kind, [&](int64_t to, int64_t from) {
          auto bits = std::bit_cast<uint32_t>(shard[from]);
          EXPECT_TRUE(values[to] == kNever || values[to] == bits) << "replicas differ";
          values[to] = bits;
        });
      };
      take(whole[3 * p], plan::ValueKind::Full, rank.parameter<float>(int64_t(p)));
      take(whole[3 * p + 1], plan::ValueKind::Full, rank.state<float>(int64_t(p), 0));
      take(whole[3 * p + 2], plan::ValueKind::Rows, rank.state<float>(int64_t(p), 1));
    }
  };
  runWorld(compiled.library, body, /*threads=*/1, Asked::watch);
  return whole;
}

TEST(Halves, KeepTheBitsOfASingleRank) {
  std::string text = input("turns.mlir");
  Values single = step(replaced(text, kMesh, R"(axes ["x"] sizes [1] ranks [0])"), "local");
  ASSERT_FALSE(single.empty());
  EXPECT_NE(single.front().front(), kNever);
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
    for (const char *strategy : {"in_turn", "joined", "shared"}) {
      EXPECT_EQ(step(there, strategy), single) << strategy << " " << layout.placements;
      EXPECT_EQ(Asked::onTheWorld, 0) << strategy << " " << layout.placements;
      EXPECT_FALSE(Asked::opened.empty()) << strategy << " " << layout.placements;
    }
  }
}

/// Each hop has communicators of its own, along its half of the axis: neighbours, and those that are
/// two apart. Where the ranks are replicas of each other nothing comes together, and the results go back along
/// what owns them.
TEST(Halves, MeetOnHalvesOfTheAxis) {
  using Sets = std::set<std::vector<int32_t>>;
  std::string text = input("turns.mlir");
  const Sets neighbours = {{0, 1}, {2, 3}}, apart = {{0, 2}, {1, 3}};
  Sets both = neighbours;
  both.insert(apart.begin(), apart.end());
  for (const char *strategy : {"in_turn", "joined", "shared"}) {
    step(text, strategy);
    EXPECT_EQ(Asked::opened, both) << strategy;
  }
  std::string replicas = replaced(replaced(text, "[#optim.shard<0>]", "[#optim.replicate]"),
                                  "[#optim.shard<2>]", "[#optim.replicate]");
  step(replicas, "in_turn");
  EXPECT_EQ(Asked::opened, both);
  step(replicas, "joined");
  EXPECT_EQ(Asked::opened, apart);
  step(replicas, "shared");
  EXPECT_EQ(Asked::opened, neighbours);
}

/// The ranks of a start are changed: where one of its peers is not among them, it is refused.
TEST(Halves, WrongCommunicatorsAreRefused) {
  Scheduled made(input("turns.mlir"), "in_turn");
  ASSERT_EQ(made.error, "");
  std::vector<comm::CommunicatorOp> all;
  made.module->walk([&](comm::CommunicatorOp op) { all.push_back(op); });
  ASSERT_EQ(all.size(), 2u);
  using Factors = std::vector<plan::Factor>;
  const Factors first = {{0, 1, 2}}, second = {{0, 2, 2}};
  ASSERT_EQ(all[0].getRanks().getFactors(), llvm::ArrayRef(first));
  ASSERT_EQ(all[1].getRanks().getFactors(), llvm::ArrayRef(second));
  auto with = [&](comm::CommunicatorOp op, const Factors &factors) {
    comm::CommunicatorAttr before = op.getRanks();
    op.setRanksAttr(comm::CommunicatorAttr::get(&made.context, before.getMesh(), factors));
    made.error.clear();
    bool accepted = succeeded(verify::verifyPlan(*made.module));
    op.setRanksAttr(before);
    EXPECT_TRUE(accepted ||
                made.error.find("expected messages between ranks of the communicator, "
                                "found one between rank 0 and rank") != std::string::npos)
        << made.error;
    return accepted;
  };
  EXPECT_TRUE(with(all[0], first));
  EXPECT_FALSE(with(all[0], second)); // another stride, or the other hop's
  EXPECT_FALSE(with(all[1], first));
  EXPECT_FALSE(with(all[0], {})); // each rank alone
  EXPECT_FALSE(with(all[1], {}));
  EXPECT_TRUE(with(all[0], {{0, 1, 4}})); // more ranks, all of whose messages are right
  EXPECT_TRUE(with(all[1], {{0, 1, 2}, {0, 2, 2}}));
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
        plan::CommonTable common = truth(index, rank);
        if (table.kind != plan::TableKind::Copy || !table.from.isMoving() || !table.to.isMoving() ||
            common.rows->copies.size() < 2 || changed)
          return common;
        plan::RankTable rows = common.resolve(plan.groups[plan.segments[table.from.segment].group]);
        changed += change(rows.copies, plan);
        return plan::CommonTable(rows);
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
  refused("expected rows that each lead to the part of one peer in what is packed, found one that "
          "leads elsewhere on rank",
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

//===- Stepping.cpp - Modules at level 4, and what their steps do ----------===//

#include "test/unit/codegen/Stepping.h"
#include "test/support/Proof.h"
#include "test/unit/codegen/Compile.h"
#include "test/unit/codegen/Halves.h"

#include "passes/decide/Passes.h"
#include "passes/distribute/Passes.h"
#include "passes/schedule/Passes.h"
#include "tools/stepc/Pipeline.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

#include <mutex>

using namespace mlir;
using namespace stepc;
using namespace stepc::test;

static void registerHalves(DialectRegistry &registry) { registry.insert<HalvesDialect>(); }

Scheduled::Scheduled(const std::string &text, std::vector<std::string> forced, int64_t waves) {
  DialectRegistry registry;
  driver::registerDialects(registry);
  registerHalves(registry);
  context.appendDialectRegistry(registry);
  context.disableMultithreading();
  context.loadDialect<HalvesDialect>();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error) // of few blocks waves are a warning
      error += diagnostic.str() + "\n";
  });
  module = parseSourceString<ModuleOp>(text, &context);
  PassManager manager(&context);
  decide::buildDecidePipeline(manager, {std::move(forced), waves});
  distribute::buildDistributePipeline(manager);
  schedule::buildSchedulePipeline(manager);
  if (!module || failed(manager.run(*module)))
    error = "not scheduled: " + error;
}

std::string Scheduled::text() {
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os);
  return text;
}

std::string stepc::test::provenWithOneChanged(
    Scheduled &made, llvm::function_ref<bool(const plan::Plan &, const plan::Table &)> isMeant,
    llvm::function_ref<bool(const plan::Plan &, plan::RankTable &)> change) {
  bool changed = false;
  auto expandOtherwise = [&](const plan::Plan &plan) {
    verify::Expand expand = verify::runtimeExpand(plan);
    expand.table = [&, truth = expand.table](int64_t index, int64_t rank) {
      const plan::Table &table = plan.tables[index];
      plan::CommonTable common = truth(index, rank);
      if (changed || !isMeant(plan, table))
        return common;
      plan::RankTable rows = common.resolve(plan.groups[plan.segments[table.from.segment].group]);
      changed = change(plan, rows);
      return changed ? plan::CommonTable(rows) : common;
    };
    return expand;
  };
  made.error.clear();
  EXPECT_TRUE(failed(prove(*made.module, expandOtherwise)));
  EXPECT_TRUE(changed);
  return made.error;
}

namespace {

/// visit(element of the parameter, element of its shard)
template <typename Visit>
void eachElement(const plan::Group &group, const plan::Mesh &mesh, int64_t position,
                 plan::ValueKind kind, plan::ShardsKind of, Visit visit) {
  geometry::View view = geometry::view(group, kind);
  for (const geometry::Rect &rect : geometry::rectangles(group, mesh, position, kind, of))
    for (int64_t i = 0; i < rect.rows; ++i)
      for (int64_t j = 0; j < rect.cols; ++j)
        visit(((rect.block * view.rows) + rect.row + i) * view.cols + rect.col + j,
              rect.offset + i * rect.stride + j);
}

struct Watch : Asked {
  static inline std::mutex mutex;
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

} // namespace

Values test::step(const std::string &text, const std::vector<std::string> &forced) {
  Scheduled made(text, forced);
  EXPECT_EQ(made.error, "") << forced.front();
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
  Compiled compiled = load(
      {made.text(), "", Restart::None, codegen::Sanitizer::None, registerHalves, /*isQuick=*/true});
  EXPECT_TRUE(compiled.library) << compiled.error;
  if (!compiled.library)
    return whole;
  std::mutex mutex;
  Asked::opened.clear();
  Asked::onTheWorld = 0;
  auto body = [&](Rank &rank, int position) {
    auto fill = [&](size_t p, plan::ShardsKind of, float *shard, unsigned seed) {
      std::vector<float> values = randomFloats(whole[3 * p].size(), seed);
      eachElement(groups[p], mesh, position, plan::ValueKind::Full, of,
                  [&](int64_t from, int64_t to) { shard[to] = values[from]; });
    };
    for (size_t p = 0; p < groups.size(); ++p)
      fill(p, plan::ShardsKind::Parameter, rank.parameter<float>(int64_t(p)), unsigned(p));
    for (unsigned t = 1; t <= 3; ++t) {
      for (size_t p = 0; p < groups.size(); ++p)
        fill(p, plan::ShardsKind::Gradient, rank.gradient<float>(int64_t(p)),
             100 * t + unsigned(p));
      rank.step();
    }
    std::lock_guard lock(mutex);
    for (size_t p = 0; p < groups.size(); ++p) {
      auto take = [&](std::vector<uint32_t> &values, plan::ValueKind kind, plan::ShardsKind of,
                      const float *shard) {
        eachElement(groups[p], mesh, position, kind, of, [&](int64_t to, int64_t from) {
          auto bits = std::bit_cast<uint32_t>(shard[from]);
          EXPECT_TRUE(values[to] == kNever || values[to] == bits) << "replicas differ";
          values[to] = bits;
        });
      };
      take(whole[3 * p], plan::ValueKind::Full, plan::ShardsKind::Parameter,
           rank.parameter<float>(int64_t(p)));
      take(whole[3 * p + 1], plan::ValueKind::Full, plan::ShardsKind::State,
           rank.state<float>(int64_t(p), 0));
      take(whole[3 * p + 2], plan::ValueKind::Rows, plan::ShardsKind::State,
           rank.state<float>(int64_t(p), 1));
    }
  };
  runWorld(compiled.library, body, /*threads=*/1, Watch::watch);
  return whole;
}

//===- CommandsTest.cpp - What commands list of themselves ----------------===//

#include "test/unit/plan/RandomPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;
using testing::ElementsAre;

namespace {

/// "0 reads all", "scratch updates blocks of 64 bytes", …
std::vector<std::string> effectsOf(const Plan &plan, const Command &command) {
  constexpr const char *accesses[] = {"reads", "writes", "updates", "reads or writes"};
  constexpr const char *extents[] = {"all",     "from rows", "to rows", "blocks",
                                     "scalars", "sent",      "received"};
  std::vector<std::string> texts;
  for (const Effect &effect : effects(plan, command)) {
    std::string &text = texts.emplace_back();
    text = effect.operand ? std::to_string(effect.number) : "scratch";
    text += std::string(" ") + accesses[int(effect.access)] + " " + extents[effect.extent];
    if (effect.blockBytes)
      text += " of " + std::to_string(effect.blockBytes) + " bytes";
    if (effect.elementBytes)
      text += " of elements of " + std::to_string(effect.elementBytes) + " bytes";
    if (effect.isInFlight())
      text += ", in flight";
  }
  return texts;
}

TEST(Commands, ListTheirEffects) {
  Plan plan = richPlan();
  EXPECT_THAT(effectsOf(plan, plan.commands[0]), ElementsAre("0 writes scalars"));
  EXPECT_THAT(effectsOf(plan, plan.commands[1]),
              ElementsAre("0 updates sent, in flight", "1 writes received, in flight"));
  EXPECT_THAT(effectsOf(plan, plan.commands[2]),
              ElementsAre("scratch updates blocks of 64 bytes", "0 reads blocks of 48 bytes",
                          "1 reads blocks of 48 bytes", "2 reads blocks of 32 bytes",
                          "3 writes blocks of 32 bytes"));
  EXPECT_THAT(effectsOf(plan, plan.commands[3]), ElementsAre());
  EXPECT_THAT(effectsOf(plan, plan.commands[4]), ElementsAre());

  // An algorithm of a library uses scratch for all blocks together, even if the kernels need none.
  auto &product = std::get<Product>(plan.commands[2]);
  product.pinned.resize(1);
  for (int64_t bytes : {64, 0}) {
    product.scratchBytes = bytes;
    std::vector<std::string> found = effectsOf(plan, product);
    EXPECT_EQ(found.size(), 5u);
    EXPECT_THAT(found[0], testing::StartsWith("scratch updates all"));
  }

  Operand place{OperandKind::Workspace, 64, 128}, scalars{OperandKind::Scalars, 64, 12};
  Operand gradients{OperandKind::Gradients}, parameters{OperandKind::Parameters};
  Operand state{OperandKind::State, 0}, line{OperandKind::Line, 64, 128};
  // Tables 0 and 1 are chunks of shards and of blocks.
  EXPECT_THAT(
      effectsOf(plan, DispatchChunks{0, {{0, {scalars, gradients, parameters, state, place}}}}),
      ElementsAre("0 reads scalars", "1 reads from rows", "2 updates from rows",
                  "3 updates from rows", "4 reads or writes to rows"));
  EXPECT_THAT(effectsOf(plan, DispatchChunks{0, {{1, {line, place}}}}),
              ElementsAre("0 reads all", "1 reads or writes blocks"));
  plan.pools = {{64, 384, {{0, 96}, {0, 32}}}};
  place.pool = 0;
  place.member = 1;
  EXPECT_THAT(effectsOf(plan, DispatchChunks{0, {{1, {place}}}}),
              ElementsAre("0 reads or writes blocks of 32 bytes"));
  TableNumber last = static_cast<int64_t>(plan.tables.size()) - 1;
  for (Command command :
       {Command(Copy{last, gradients, place, {}}), Command(Sum{last, place, place})})
    EXPECT_THAT(effectsOf(plan, command), ElementsAre("0 reads from rows of elements of 2 bytes",
                                                      "1 writes to rows of elements of 2 bytes"));
  Apply apply;
  apply.sources = {{OperandKind::Batch, 64, 128, -1, 0, 6, 4, DType::BF16}};
  apply.out = {OperandKind::Batch, 192, 64, -1, 0, 1, 4, DType::F32};
  EXPECT_THAT(effectsOf(plan, apply),
              ElementsAre("0 reads blocks of 48 bytes", "1 writes blocks of 16 bytes"));
}

TEST(Commands, FieldsOfOneTypeAreVisited) {
  Plan plan = richPlan();
  auto count = [&]<typename T>(T, int64_t command) {
    int64_t visited = 0;
    forEach<T>(plan.commands[size_t(command)], [&](T &) { ++visited; });
    return visited;
  };
  EXPECT_EQ(count(Operand(), 0), 1);
  EXPECT_EQ(count(GroupNumber(), 0), 1);
  EXPECT_EQ(count(Operand(), 1), 2);
  EXPECT_EQ(count(TableNumber(), 1), 2);
  EXPECT_EQ(count(Operand(), 2), 4);
  EXPECT_EQ(count(KernelNumber(), 2), 1);
  EXPECT_EQ(count(StartNumber(), 3), 1);
  EXPECT_EQ(count(Operand(), 4), 0);
  std::get<Product>(plan.commands[2]).addend.reset();
  EXPECT_EQ(count(Operand(), 2), 3);
}

/// Changes one field, wherever it stands; `left` counts down to it.
struct Change {
  int64_t left;

  void operator()(int64_t &value) {
    change([&] { value += 1; });
  }
  void operator()(double &value) {
    change([&] { value += 0.5; });
  }
  void operator()(std::string &value) {
    change([&] { value += '?'; });
  }
  void operator()(bool &value) {
    change([&] { value = !value; });
  }
  template <typename T>
    requires std::is_enum_v<T>
  void operator()(T &value) {
    change([&] { value = T(int64_t(value) == 0 ? 1 : 0); });
  }
  template <List in> void operator()(NumberIn<in> &number) { (*this)(number.value); }
  template <typename T> void operator()(std::vector<T> &list) {
    for (T &each : list)
      (*this)(each);
    change([&] { list.emplace_back(); });
  }
  template <typename T> void operator()(std::optional<T> &some) {
    change([&] { some ? some.reset() : void(some.emplace()); });
    if (some)
      (*this)(*some);
  }
  void operator()(Communicator &ranks) { (*this)(ranks.mesh); }
  template <HasFields T> void operator()(T &value) {
    T::fields(value, [&](const char *, auto &field) { (*this)(field); });
  }
  template <typename Do> void change(Do make) {
    if (left-- == 0)
      make();
  }
};

TEST(Commands, EveryFieldIsPartOfTheBytes) {
  Plan plan = richPlan();
  Apply apply;
  apply.kernels = {{1, 7}};
  apply.sources = {{OperandKind::Batch, 64, 128, -1, 0, 6, 4, DType::BF16}};
  Product product = std::get<Product>(plan.commands[2]);
  product.pinned.resize(1);
  Operand packed{OperandKind::Workspace, 64, 128, 0, 1}, pooled{OperandKind::Workspace, 64, 128};
  pooled.pool = 0;
  for (const Command &command :
       {Command(DispatchChunks{0, {{0, {packed, pooled, {OperandKind::State, 1}}}}}),
        plan.commands[0], plan.commands[1], Command(product), Command(apply),
        Command(Copy{0, packed, pooled, 1}), Command(Sum{0, packed, pooled, 1}),
        Command(Await{0, 1}), Command(AdvanceSteps{1})}) {
    plan.commands = {command};
    std::vector<uint8_t> before = serialize(plan);
    int64_t fields = 0;
    for (;; ++fields) {
      Plan other = plan;
      Change change{fields};
      std::visit([&](auto &each) { change(each); }, other.commands[0]);
      if (change.left >= 0)
        break;
      std::vector<uint8_t> after = serialize(other);
      EXPECT_NE(after, before) << name(command) << ", field " << fields;
      std::string error;
      std::optional<Plan> read = deserialize(after.data(), after.size(), error);
      ASSERT_TRUE(read) << name(command) << ", field " << fields << ": " << error;
      EXPECT_EQ(serialize(*read), after) << name(command) << ", field " << fields;
    }
    EXPECT_GE(fields, 1) << name(command);
  }
}

} // namespace
} // namespace stepc::test

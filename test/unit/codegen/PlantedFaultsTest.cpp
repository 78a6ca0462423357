//===- PlantedFaultsTest.cpp - Mistakes of a runtime, each refused ---------===//
//
// A library whose tables follow from something else than what was asked for: another bucket, other stripes, other hops; or
// that leaves out, doubles or shifts what stands in one run, or sends what belongs to no tensor. The proof knows placements and
// hops by its own geometry, and must find each of them.
//
//===----------------------------------------------------------------------===//

#include "test/support/Proof.h"
#include "test/unit/codegen/Compile.h"
#include "test/unit/codegen/Halves.h"
#include "test/unit/codegen/Stepping.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <concepts>

using namespace mlir;

namespace stepc::test {
namespace {

/// The parameters of turns.mlir, of which each axis divides, at those placements.
std::string placed(const std::string &placements) {
  std::string text = replaced(replaced(input("turns.mlir"), "shape [18, 12]", "shape [16, 12]"),
                              "shape [3, 5, 7]", "shape [4, 6, 8]");
  std::string stack = replaced(placements, "_shard<0", "_shard<1");
  stack = replaced(stack, "#optim.shard<0", "#optim.shard<1");
  text = replaced(text, "placements [#optim.shard<0>]", "placements [" + placements + "]");
  return replaced(text, "placements [#optim.shard<2>]", "placements [" + stack + "]");
}

/// A matrix whose rows four ranks have, of which slabs are computed where they stand.
const char *const kSlabs =
    R"(module @slabs attributes {stepc.level = "optim", stepc.numerics = "fast"} {
  optim.mesh @mesh axes ["x"] sizes [4] ranks [0, 1, 2, 3]
  optim.rule @Sign hyperparameters ["lr"] states [] needs_matrix {
  ^bb0(%param: tensor<?x?xf32>, %grad: tensor<?x?xf32>, %lr: f64, %step: f64, %rows: f64, %cols: f64, %numel: f64):
    %0 = optim.orthogonalize %grad coefficients [[3.4445, -4.775, 2.0315]] eps 1.0e-07 : tensor<?x?xf32>
    %1 = optim.splat %lr : tensor<?x?xf32>
    %2 = arith.mulf %1, %0 : tensor<?x?xf32>
    %3 = arith.subf %param, %2 : tensor<?x?xf32>
    optim.yield %3 : tensor<?x?xf32>
  }
  optim.route @Sign rule @Sign rest patterns [] except [] defaults [1.0] missing_grad error
  optim.parameter @a shape [ROWS, 5] batch 0 type f32 gradient f32 mesh @mesh placements [#optim.shard<0>] aliases []
})";

/// The same matrix stepped by blocks, and all ranks contribute to its gradient.
std::string averaged() {
  return replaced(replaced(kSlabs, "ROWS", "16"), "placements [#optim.shard<0>]",
                  "placements [#optim.shard<0>] gradient_placements [#optim.partial_average]");
}

/// The plan that tables are made from is changed, or every group of it; the proof sees the plan as it is.
template <typename Change>
std::string provenWithout(const std::string &text, const std::string &strategy, Change change) {
  Scheduled made(text, {"*=" + strategy});
  EXPECT_EQ(made.error, "");
  EXPECT_TRUE(succeeded(prove(*made.module)));
  auto lying = [&](const plan::Plan &plan) {
    auto other = std::make_shared<plan::Plan>(plan);
    if constexpr (std::invocable<Change, plan::Plan &>)
      change(*other);
    else
      for (plan::Group &group : other->groups)
        change(group);
    verify::Expand truth = verify::runtimeExpand(*other);
    verify::Expand expand = truth; // each keeps the plan that it was made from
    expand.table = [other, truth](int64_t index, int64_t rank) { return truth.table(index, rank); };
    return expand;
  };
  made.error.clear();
  EXPECT_TRUE(failed(prove(*made.module, lying)));
  return made.error;
}

/// The first table of a kind that has enough rows on a rank is changed there.
template <typename Change>
std::string provenWith(const std::string &text, plan::TableKind kind, Change change,
                       const std::string &strategy = "owner") {
  Scheduled made(text, {"*=" + strategy}, strategy == "slabs" ? 1 : 2);
  EXPECT_EQ(made.error, "");
  return provenWithOneChanged(
      made,
      [&](const plan::Plan &, const plan::Table &table) {
        return table.kind == kind && (table.to != table.from || kind == plan::TableKind::Message);
      },
      [&](const plan::Plan &, plan::RankTable &rows) { return change(rows); });
}

using testing::HasSubstr;

TEST(PlantedFaults, ABucketOffsetOffByOne) {
  std::string error =
      provenWithout(placed("#optim.flat<0, 50, 100, 150, 192>"), "owner", [](plan::Group &group) {
        for (plan::Placement &placement : group.placements)
          for (int64_t &cut : placement.cuts)
            cut += cut > 0 && cut < 192;
      });
  EXPECT_THAT(error, HasSubstr("expected rows inside of the shard of parameter 'a', found 1 x 51 "
                               "elements from local element 0 of 50 on rank 0"));
}

TEST(PlantedFaults, AStripeOfAnotherExpert) {
  std::string error =
      provenWithout(placed("#optim.interleaved_shard<0, 2>"), "owner", [](plan::Group &group) {
        for (plan::Placement &placement : group.placements)
          placement.factor = 1;
      });
  EXPECT_THAT(error, HasSubstr("expected the row that starts at local element"));
}

TEST(PlantedFaults, AStripeOfEqualSizeOfAnotherExpert) {
  // Two experts' gate and up projections, of which each rank has a row. All ranks agree on the wrong one.
  std::string text = replaced(replaced(kSlabs, "ROWS", "16"), "placements [#optim.shard<0>]",
                              "placements [#optim.interleaved_shard<0, 4>] blocks <rows, [0, 4], "
                              "[4, 8], [8, 12], [12, 16]>");
  std::string error = provenWithout(text, "owner", [](plan::Group &group) {
    std::swap(group.division.parts[1], group.division.parts[3]);
  });
  EXPECT_THAT(error, HasSubstr("expected the row that starts at local element"));
}

TEST(PlantedFaults, AHopToTheWrongFactor) {
  std::string error = provenWithout(placed("#optim.shard<0>"), "in_turn", [](plan::Group &group) {
    std::swap(group.hops.front().owned, group.hops.back().owned);
  });
  EXPECT_THAT(
      error,
      HasSubstr("expected messages between ranks of the communicator, found one between rank "
                "0 and rank 2, which do not meet in it"));
}

TEST(PlantedFaults, RunsThatAreMissingDoubledOrShifted) {
  std::string text = placed("#optim.interleaved_shard<0, 2>");
  auto edited = [&](auto change) {
    return provenWith(text, plan::TableKind::ShardChunks, [&](plan::RankTable &rows) {
      if (rows.chunks.size() < 2)
        return false;
      change(rows.chunks);
      return true;
    });
  };
  using Rows = std::vector<plan::Chunk>;
  EXPECT_THAT(edited([](Rows &rows) { rows.erase(rows.begin()); }), HasSubstr("once, found"));
  EXPECT_THAT(edited([](Rows &rows) { rows.push_back(rows.front()); }), HasSubstr("once, found"));
  EXPECT_THAT(edited([](Rows &rows) { ++rows.front().local; }),
              HasSubstr("expected the row that starts at local element"));
}

TEST(PlantedFaults, PaddingThatOneSideSends) {
  // An element more in the last part, as where each peer has as many as the most.
  std::string error =
      provenWith(placed("#optim.shard<0>"), plan::TableKind::Message, [](plan::RankTable &rows) {
        for (plan::Message &message : rows.messages)
          if (message.sendCount > 0 && &message == &rows.messages.back()) {
            ++message.sendCount;
            return true;
          }
        return false;
      });
  EXPECT_THAT(error, HasSubstr("bytes that rank"));
}

/// Of the first start, a message between two ranks is longer by `elements` on both ends, in the table and in what is laid
/// out; its part is the last of what the one sends and of what the other receives, so that nothing else moves.
std::string provenWithPadding(const std::string &text, int64_t elements) {
  Scheduled made(text, {"*=owner"}, 1);
  EXPECT_EQ(made.error, "");
  EXPECT_TRUE(succeeded(prove(*made.module)));
  int64_t from = -1, to = -1;
  auto padded = [&](const plan::Plan &plan) {
    verify::Expand truth = verify::runtimeExpand(plan), expand = truth;
    int64_t table = 0, ranks = int64_t(plan.world().size());
    while (plan.tables[table].kind != plan::TableKind::Message)
      ++table;
    // The last sender of the rank to which all send, for it alone has the block.
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (const plan::Message &message : truth.table(table, rank).rows->messages)
        if (message.sendCount > 0 && message.peer != rank)
          std::tie(from, to) = std::tie(rank, message.peer);
    auto lengthen = [=](std::vector<plan::Message> &messages, int64_t rank, int64_t by) {
      for (plan::Message &message : messages) {
        message.sendCount += rank == from && message.peer == to ? by : 0;
        message.receiveCount += rank == to && message.peer == from ? by : 0;
      }
    };
    expand.table = [=](int64_t index, int64_t rank) {
      plan::CommonTable common = truth.table(index, rank);
      if (index != table)
        return common;
      plan::RankTable rows = *common.rows;
      lengthen(rows.messages, rank, elements);
      return plan::CommonTable(std::move(rows));
    };
    expand.start = [=, bytes = plan.tables[table].elementBytes](int64_t index, int64_t rank) {
      auto start = std::make_shared<plan::RankStart>(*truth.start(index, rank));
      if (index > 0)
        return std::shared_ptr<const plan::RankStart>(start);
      lengthen(start->messages, rank, elements * bytes);
      for (auto [parcel, pads] :
           {std::pair(&start->sent, rank == from), {&start->received, rank == to}})
        if (pads) {
          parcel->values[0].back().count += elements;
          parcel->bytes += elements * bytes;
        }
      return std::shared_ptr<const plan::RankStart>(start);
    };
    return expand;
  };
  made.error.clear();
  EXPECT_TRUE(failed(prove(*made.module, padded)));
  EXPECT_NE(from, to);
  return made.error;
}

TEST(PlantedFaults, PaddingOnWhichBothSidesAgree) {
  std::string text = replaced(kSlabs, "ROWS", "15"); // slabs of 4, 4, 4 and 3 rows of 5 elements
  EXPECT_THAT(provenWithPadding(text, 5),
              HasSubstr("expected messages of the 15 elements that rank 3 packs, found none beyond "
                        "element 15"));
  // A bucket of which each rank has 20 elements, the last 5 of them behind the tensor.
  text = replaced(text, "#optim.shard<0>", "#optim.flat<0, 20, 40, 60, 75>");
  EXPECT_THAT(provenWithPadding(text, 5),
              HasSubstr("expected messages of the 15 elements that rank 3 packs, found none beyond "
                        "element 15"));
}

/// The first rows of a rank that add up Gram matrices are changed, or those that add up contributions to a gradient.
template <typename Change>
std::string addedUp(Change change, const std::string &text = replaced(kSlabs, "ROWS", "20"),
                    const std::string &strategy = "slabs") {
  return provenWith(
      text, plan::TableKind::Sum,
      [&](plan::RankTable &rows) {
        // Norms are one element, which the last rank adds up.
        bool isMatrix = !rows.sums.empty() && rows.sums.front().cols > 1;
        if (isMatrix)
          change(rows);
        return isMatrix;
      },
      strategy);
}

TEST(PlantedFaults, AContributionThatIsAddedTwiceOrLeftOut) {
  using Rows = plan::RankTable;
  for (auto [text, strategy] : {std::pair(replaced(kSlabs, "ROWS", "20"), "slabs"),
                                {averaged(), "owner"},
                                {averaged(), "agrs"}}) {
    auto changed = [&, text = text, strategy = strategy](auto change) {
      return addedUp(change, text, strategy);
    };
    SCOPED_TRACE(strategy);
    EXPECT_THAT(
        changed([](Rows &rows) { rows.lists.back() = rows.lists.front(); }),
        HasSubstr("expected contribution 3 of the mesh in its place of a sum, found that of "
                  "rank 0 on rank 0"));
    EXPECT_THAT(changed([](Rows &rows) { --rows.sums.front().count; }),
                HasSubstr("expected the 4 contributions to a sum, found 3"));
    EXPECT_THAT(
        changed([](Rows &rows) { std::swap(rows.lists[1], rows.lists[2]); }),
        testing::AnyOf(
            HasSubstr("expected contribution 1 of the mesh in its place of a sum, found that "
                      "of rank 2 on rank 0"),
            HasSubstr("expected contribution 2 of the mesh in its place of a sum, found that "
                      "of rank 1 on rank 0")));
    // Of another element of all contributions.
    EXPECT_THAT(changed([](Rows &rows) { ++rows.sums.front().source; }),
                testing::AnyOf(HasSubstr("in its place of a sum, found no part of one peer"),
                               HasSubstr("as element 0 of the message")));
  }
}

TEST(PlantedFaults, AnotherDivisorOfAnAverage) {
  for (const char *strategy : {"owner", "agrs"}) {
    Scheduled made(averaged(), {std::string("*=") + strategy}, 1);
    EXPECT_EQ(made.error, "");
    EXPECT_TRUE(succeeded(prove(*made.module)));
    for (auto [divisor, found] : {std::pair(1, "by 1"), {3, "by 3"}, {16, "by 16"}}) {
      int64_t sums = 0;
      made.module->walk([&, divisor = divisor](comm::SumOp op) {
        op.setDivisor(divisor);
        ++sums;
      });
      EXPECT_GT(sums, 0);
      made.error.clear();
      EXPECT_TRUE(failed(prove(*made.module)));
      EXPECT_THAT(made.error, HasSubstr("with the result of comm.sum by 4, found the result of "
                                        "comm.sum " +
                                        std::string(found) + " in its place"));
    }
  }
}

TEST(PlantedFaults, ARangeThatIsOffByOne) {
  using Rows = plan::RankTable;
  EXPECT_THAT(addedUp([](Rows &rows) { ++rows.sums.front().target; }),
              HasSubstr("expected rows inside of"));
  EXPECT_THAT(addedUp([](Rows &rows) { --rows.sums.front().cols; }),
              HasSubstr("sums of the rank's range once each, found"));
  EXPECT_THAT(addedUp([](Rows &rows) { ++rows.sums.front().source; }),
              HasSubstr("in its place of a sum, found no part of one peer"));
}

TEST(PlantedFaults, AnAllGatherOfSlabsThatNotAllHave) {
  // Slabs of 2, 2, 1 and no rows: a rank without one gathers nothing.
  Scheduled made(replaced(kSlabs, "ROWS", "5"), {"*=slabs"}, 1);
  EXPECT_TRUE(succeeded(prove(*made.module)));
  int64_t gathers = 0;
  made.module->walk([&](comm::StartOp op) {
    if (comm::placeOf(op.getSends().front()).getFrom() == plan::Distribution::Ranges) {
      EXPECT_EQ(op.getKind(), comm::CollectiveKind::Exchange);
      op.setKind(comm::CollectiveKind::AllGather);
      ++gathers;
    }
  });
  EXPECT_GT(gathers, 0);
  EXPECT_TRUE(failed(prove(*made.module)));
  EXPECT_THAT(made.error, HasSubstr("expected an all-gather of sums that all ranks get, found some "
                                    "over slabs that not all have in segment @"));
}

TEST(PlantedFaults, ASlabOfAnotherRank) {
  std::string error = provenWithout(replaced(kSlabs, "ROWS", "20"), "slabs", [](plan::Plan &plan) {
    std::swap(plan.meshes[0].ranks[0], plan.meshes[0].ranks[1]);
  });
  EXPECT_THAT(error, HasSubstr("expected the row that starts at local element"));
}

/// Of a scheduled step whose slabs have 2, 2, 1 and no rows, what sets a batch to zero is changed.
template <typename Change> std::string provenWithoutZeros(Change change) {
  Scheduled made(replaced(kSlabs, "ROWS", "5"), {"*=slabs"}, 1);
  EXPECT_EQ(made.error, "");
  EXPECT_TRUE(succeeded(prove(*made.module)));
  SmallVector<comm::StageOp> fills;
  made.module->walk([&](comm::StageOp op) {
    if (op.getIns().empty())
      fills.push_back(op);
  });
  EXPECT_EQ(fills.size(), 1u);
  change(fills.front());
  EXPECT_TRUE(failed(prove(*made.module)));
  return made.error;
}

TEST(PlantedFaults, SomethingBehindAShorterSlab) {
  EXPECT_THAT(provenWithoutZeros([](comm::StageOp fill) { fill.erase(); }),
              HasSubstr("expected to read blocks of 2 x 5 of f32 at byte 192, found none"));
  std::string error = provenWithoutZeros([](comm::StageOp fill) {
    fill.walk([](arith::ConstantOp op) { op.setValueAttr(FloatAttr::get(op.getType(), 0x1p-20)); });
  });
  EXPECT_THAT(error, HasSubstr("expected what rule @Sign makes of parameter 'a'"));
}

} // namespace
} // namespace stepc::test

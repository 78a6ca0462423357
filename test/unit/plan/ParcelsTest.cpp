//===- ParcelsTest.cpp - One message per peer and start -------------------===//

#include "test/unit/plan/RandomPlan.h"

#include "runtime/plan/Parcels.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace stepc::test {

using namespace plan;

namespace {

using Parts = std::vector<PackedRun>;

TEST(Parcels, ValuesStandByFallingSizeAndPeersApart) {
  // Three bf16 elements, then one f32, go to each of two peers; a third gets bf16 alone.
  std::vector<Message> halves{{0, 0, 3, 0, 3}, {1, 3, 3, 3, 5}, {2, 6, 1, 8, 0}};
  std::vector<Message> singles{{0, 0, 1, 0, 1}, {1, 1, 1, 1, 2}};
  std::vector<Traveller> values{{&halves, 2}, {&singles, 4}};
  RankStart start = layOut(CollectiveKind::Exchange, values, 4);
  EXPECT_EQ(start.sent.values[0], (Parts{{0, 3, 4}, {3, 3, 68}, {6, 1, 128}}));
  EXPECT_EQ(start.sent.values[1], (Parts{{0, 1, 0}, {1, 1, 64}}));
  EXPECT_EQ(start.sent.bytes, 130 + kSealBytes);
  EXPECT_EQ(start.received.values[0], (Parts{{0, 3, 4}, {3, 5, 72}}));
  EXPECT_EQ(start.received.values[1], (Parts{{0, 1, 0}, {1, 2, 64}}));
  ASSERT_EQ(start.messages.size(), 3u);
  EXPECT_EQ(start.messages[1].sendOffset, 64);
  EXPECT_EQ(start.messages[1].sendCount, 10 + kSealBytes);
  EXPECT_EQ(start.messages[1].receiveCount, 18 + kSealBytes);
  EXPECT_EQ(start.messages[2].receiveCount, 0);
  EXPECT_EQ(start.sent.find(0, 5)->byte, 68);
  EXPECT_EQ(start.sent.find(0, 7), nullptr);
  EXPECT_EQ(start.sent.find(1, 2), nullptr);
}

TEST(Parcels, WideElementsStandByTheSizeOfTheirWords) {
  // 172 bytes are words of 4, and 40 are words of 8.
  std::vector<Message> one{{0, 0, 1, 0, 1}}, three{{0, 0, 3, 0, 3}};
  std::vector<Traveller> values{{&one, 172}, {&three, 2}, {&one, 40}, {&one, 4}};
  for (CollectiveKind kind : {CollectiveKind::Exchange, CollectiveKind::AllGather}) {
    RankStart start = layOut(kind, values, 1);
    EXPECT_EQ(start.sent.values[2], (Parts{{0, 1, 0}}));
    EXPECT_EQ(start.sent.values[0], (Parts{{0, 1, 40}}));
    EXPECT_EQ(start.sent.values[3], (Parts{{0, 1, 212}}));
    EXPECT_EQ(start.sent.values[1], (Parts{{0, 3, 216}}));
  }
}

TEST(Parcels, PeersShareACopyInAnyOrder) {
  std::vector<Message> rows{{0, 0, 3, 0, 0}, {1, 3, 5, 0, 0}, {2, 0, 3, 0, 0}, {3, 3, 5, 0, 0}};
  std::vector<Traveller> values{{&rows, 4}};
  RankStart start = layOut(CollectiveKind::Exchange, values, 4);
  EXPECT_EQ(start.sent.values[0], (Parts{{0, 3, 0}, {3, 5, 64}}));
  EXPECT_EQ(start.messages[2].sendOffset, 0);
  EXPECT_EQ(start.messages[3].sendOffset, 64);
  EXPECT_EQ(start.sent.bytes, 84 + kSealBytes);
}

TEST(Parcels, AGatherSendsOneCopyToAllAndHasNoGaps) {
  std::vector<Message> halves{{0, 0, 3, 0, 3}, {1, 0, 3, 3, 3}};
  std::vector<Traveller> values{{&halves, 2}, {&halves, 2}};
  RankStart start = layOut(CollectiveKind::AllGather, values, 2);
  EXPECT_EQ(start.sent.values[1], (Parts{{0, 3, 6}}));
  EXPECT_EQ(start.received.values[1], (Parts{{0, 3, 6}, {3, 3, 18 + kSealBytes}}));
  EXPECT_EQ(start.sent.bytes, 12 + kSealBytes);
  EXPECT_EQ(start.received.bytes, 24 + 2 * kSealBytes);
  EXPECT_EQ(start.messages[1].sendOffset, 0);
  EXPECT_EQ(start.messages[1].receiveOffset, 12 + kSealBytes);
}

TEST(Parcels, WhatIsSharedBesideOtherValuesIsCopied) {
  // Three elements go to each of three peers; two of these get the same of another value, too.
  std::vector<Message> shared{{0, 0, 3, 0, 0}, {1, 0, 3, 0, 0}, {2, 0, 3, 0, 0}};
  std::vector<Message> others{{1, 0, 2, 0, 0}, {2, 0, 2, 0, 0}};
  std::vector<Traveller> values{{&shared, 4}, {&others, 2}};
  RankStart start = layOut(CollectiveKind::Exchange, values, 4);
  EXPECT_EQ(start.sent.values[0], (Parts{{0, 3, 0}}));
  EXPECT_EQ(start.sent.values[1], (Parts{{0, 2, 76}}));
  EXPECT_EQ(start.sent.copies, (std::vector<PartCopy>{{0, 64, 12}}));
  EXPECT_EQ(start.messages[1].sendOffset, 64);
  EXPECT_EQ(start.messages[2].sendOffset, 64);
  EXPECT_EQ(start.sent.bytes, 80 + kSealBytes);
}

/// All ranks' starts of one command, carried out byte by byte.
class Carrier {
public:
  Carrier(const Plan &plan, const Start &start) : plan(plan), start(start) {
    Expander expander(plan);
    for (size_t rank = 0; rank < plan.world().size(); ++rank) {
      ranks.push_back(*expander.start(start, static_cast<int64_t>(rank)));
      sent.emplace_back(static_cast<size_t>(ranks.back().sent.bytes), Byte{});
      received.emplace_back(static_cast<size_t>(ranks.back().received.bytes), Byte{});
    }
  }

  /// What is wrong, or nothing.
  std::string run() {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      fill(rank);
      repeat(rank);
      seal(rank);
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      for (const Message &message : ranks[rank].messages)
        carry(rank, message);
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      for (size_t value = 0; value < start.tables.size(); ++value)
        read(static_cast<int64_t>(rank), value);
    return error;
  }

private:
  /// Value, element and byte of the element; of the sending rank.
  struct Byte {
    int64_t value = -1, rank = -1, element = -1, index = -1;
    bool operator==(const Byte &) const = default;
  };
  int64_t bytesOf(size_t value) const {
    return plan.tables[static_cast<size_t>(start.tables[value])].elementBytes;
  }

  void fill(size_t rank) {
    const Parcel &parcel = ranks[rank].sent;
    for (size_t value = 0; value < parcel.values.size(); ++value)
      for (const PackedRun &part : parcel.values[value]) {
        if (part.byte % bytesOf(value))
          error = "a part is not aligned";
        for (int64_t i = 0; i < part.count * bytesOf(value); ++i) {
          Byte &byte = sent[rank].at(static_cast<size_t>(part.byte + i));
          if (byte.value >= 0)
            error = "a byte is packed twice";
          byte = {static_cast<int64_t>(value), static_cast<int64_t>(rank),
                  part.first + i / bytesOf(value), i % bytesOf(value)};
        }
      }
  }

  void repeat(size_t rank) {
    for (const PartCopy &copy : ranks[rank].sent.copies)
      for (int64_t i = 0; i < copy.bytes; ++i) {
        Byte &to = sent[rank].at(static_cast<size_t>(copy.to + i));
        if (to.value >= 0)
          error = "a copy overwrites what is packed";
        to = sent[rank].at(static_cast<size_t>(copy.from + i));
      }
  }

  /// Behind the values of each message stands the sender's seal, which no value overlaps.
  void seal(size_t rank) {
    for (const Message &message : ranks[rank].messages)
      for (int64_t i = 0; message.sendCount > 0 && i < kSealBytes; ++i) {
        Byte &byte = sent[rank].at(
            static_cast<size_t>(message.sendOffset + message.sendCount - kSealBytes + i));
        Byte seal{1000, static_cast<int64_t>(rank), 0, i};
        if (byte.value >= 0 && !(byte == seal))
          error = "a seal overwrites what is packed";
        byte = seal;
      }
  }

  void carry(size_t rank, const Message &message) {
    const auto &theirs = ranks[static_cast<size_t>(message.peer)].messages;
    auto other = std::find_if(theirs.begin(), theirs.end(), [&](const Message &m) {
      return m.peer == static_cast<int64_t>(rank);
    });
    if (other == theirs.end() || other->receiveCount != message.sendCount) {
      error = "a send and its receive differ";
      return;
    }
    for (int64_t i = 0; i < message.sendCount; ++i) {
      Byte &to = received[static_cast<size_t>(message.peer)].at(
          static_cast<size_t>(other->receiveOffset + i));
      if (to.value >= 0)
        error = "a byte arrives twice";
      to = sent[rank].at(static_cast<size_t>(message.sendOffset + i));
      if (to.value < 0)
        error = "a gap is sent";
    }
  }

  /// What arrived of a value is what its Message table alone would bring.
  void read(int64_t rank, size_t value) {
    Expander expander(plan);
    auto rows = [&](int64_t of) {
      return expander.table(plan.tables[static_cast<size_t>(start.tables[value])], of).messages;
    };
    const Parcel &parcel = ranks[static_cast<size_t>(rank)].received;
    for (const Message &row : rows(rank)) {
      std::vector<Message> theirs = rows(row.peer);
      for (int64_t i = 0; i < row.receiveCount; ++i) {
        const PackedRun *part = parcel.find(static_cast<int64_t>(value), row.receiveOffset + i);
        if (!part) {
          error = "an element has no part";
          return;
        }
        auto sender = std::find_if(theirs.begin(), theirs.end(),
                                   [&](const Message &m) { return m.peer == rank; });
        for (int64_t b = 0; b < bytesOf(value); ++b) {
          int64_t at = part->byte + (row.receiveOffset + i - part->first) * bytesOf(value) + b;
          Byte expected{static_cast<int64_t>(value), row.peer, sender->sendOffset + i, b};
          if (!(received[static_cast<size_t>(rank)].at(static_cast<size_t>(at)) == expected))
            error = "another element arrives";
        }
      }
    }
  }

  const Plan &plan;
  const Start &start;
  std::vector<RankStart> ranks;
  std::vector<std::vector<Byte>> sent, received;
  std::string error;
};

TEST(Parcels, RandomValuesArriveTogether) {
  Histogram histogram;
  int starts = 0, several = 0, copied = 0;
  for (uint64_t seed = 20000; seed < 20100; ++seed) {
    Drawn drawn = drawPlan(seed, histogram);
    std::mt19937_64 random(seed);
    for (Distribution to : {Distribution::Blocks, Distribution::Shards}) {
      Start start;
      if (random() % 2)
        start.collective = CollectiveKind::AllGather;
      for (const ValueTables &value : drawn.values) {
        int64_t table = to == Distribution::Blocks ? value.gather : value.scatter;
        if (table < 0 || random() % 4 == 0)
          continue;
        // The same value in other types, twice in one.
        for (int64_t bytes : {2, 4, 2, 8})
          if (random() % 3) {
            Table other = drawn.plan.tables[static_cast<size_t>(table)];
            other.elementBytes = bytes;
            if (start.collective == CollectiveKind::AllGather && !start.tables.empty() &&
                !gatherTogether(drawn.plan,
                                drawn.plan.tables[static_cast<size_t>(start.tables[0])].from,
                                other.from))
              continue;
            drawn.plan.tables.push_back(other);
            start.tables.push_back(static_cast<int64_t>(drawn.plan.tables.size()) - 1);
          }
      }
      ++starts;
      for (size_t rank = 0; rank < drawn.plan.world().size(); ++rank)
        copied +=
            !Expander(drawn.plan).start(start, static_cast<int64_t>(rank))->sent.copies.empty();
      several += start.tables.size() > 1;
      ASSERT_EQ(Carrier(drawn.plan, start).run(), "") << "seed " << seed;
    }
  }
  printf("%d starts, %d of several values, %d with copies\n", starts, several, copied);
  EXPECT_GT(copied, 10);
  EXPECT_GT(several, 40);
}

} // namespace
} // namespace stepc::test

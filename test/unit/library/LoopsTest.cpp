//===- LoopsTest.cpp - Compiled steps on a trainer's loop that strays -------===//
//
// Each loop of a step loses a piece, or runs one twice, or in place of another, on every device that asks
// the trainer for loops. The step must say so: its bits would be other ones.
//
//===----------------------------------------------------------------------===//

#include "test/support/Tier.h"
#include "test/unit/library/Compiled.h"
#include "test/unit/library/World.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <thread>

namespace stepc::test {
namespace {

using testing::HasSubstr;

enum class Fault { None, Drop, Repeat, Swap, Beyond, Early };

struct Piece {
  int64_t first, last;
};

/// A loop that strays when it is called for the time `at`. A rank's own, on the rank's thread.
struct Loop {
  Fault fault = Fault::None;
  int64_t at = -1, calls = 0;
  bool cutsOtherwise = false; // than the grain says, which it may

  static void run(void *context, stepc_task task, void *arguments, int64_t count, int64_t grain) {
    Loop &self = *static_cast<Loop *>(context);
    std::vector<Piece> pieces;
    int64_t each = self.cutsOtherwise ? grain * 3 / 2 + 1 : grain;
    for (int64_t first = 0; first < count; first += each)
      pieces.push_back({first, std::min(first + each, count)});
    size_t one = size_t(self.calls) % pieces.size(), other = (one + 1) % pieces.size();
    if (self.calls++ == self.at) {
      if (self.fault == Fault::Drop)
        pieces.erase(pieces.begin() + int64_t(one));
      else if (self.fault == Fault::Repeat)
        pieces.push_back(pieces[one]);
      else if (self.fault == Fault::Swap)
        pieces[one] = pieces[other]; // as many pieces, and mostly as many items
      else if (self.fault == Fault::Beyond)
        pieces.push_back({count, count + grain});
      else if (self.fault == Fault::Early)
        pieces.push_back({-grain, 0});
    }
    std::reverse(pieces.begin(), pieces.end());
    std::thread helper([&] {
      for (const Piece &piece : pieces)
        task(arguments, piece.first, piece.last);
    });
    helper.join();
  }
};

/// What rank 0's step came to, and how often it asked for a loop.
struct Outcome {
  int32_t status = 0;
  std::string message;
  int64_t calls = 0;
  std::vector<int64_t> steps;
};

Outcome stepOn(const stepc_library *library, Loop loop) {
  Loop loops[2] = {loop, {}};
  Options options;
  options.timeout = 5;
  options.change = [&](int rank, stepc_options &own) {
    own.parallel_for = Loop::run;
    own.parallel_context = &loops[rank];
  };
  Outcome outcome;
  auto created = runWorld({library}, options, [&](Rank &self, int rank) {
    loops[rank].calls = 0; // create's are not looked at
    ASSERT_EQ(self.bind(), 0) << self.error();
    self.fillGradients(rank, 0);
    int32_t status = library->step(self.instance);
    if (rank == 0)
      outcome = {status, self.error(), loops[0].calls, self.steps};
  });
  for (const Created &rank : created)
    EXPECT_EQ(rank.status, STEPC_OK) << rank.message;
  return outcome;
}

class Loops : public testing::TestWithParam<const char *> {
public:
  const stepc_library *library() {
    return compiled(kMuon, STEPC_TEST_ROOT "/test/unit/library/loops.json --target " +
                               std::string(GetParam()));
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Loops, testing::Values("cpu", "emulated:sm_80"),
                         [](const auto &info) { return std::string(info.param).substr(0, 3); });

TEST_P(Loops, MayBeCutInAnyWay) {
  Outcome plain = stepOn(library(), {});
  EXPECT_EQ(plain.status, STEPC_OK) << plain.message;
  EXPECT_GT(plain.calls, 20);
  Outcome otherwise = stepOn(library(), {.cutsOtherwise = true});
  EXPECT_EQ(otherwise.status, STEPC_OK) << otherwise.message;
}

TEST_P(Loops, ThatStrayFailTheStep) {
  int64_t calls = stepOn(library(), {}).calls;
  const int64_t apart = tier() == "all" ? 1 : 5; // calls from one that strays to the next
  struct Kind {
    Fault fault;
    const char *message;
  };
  for (Kind kind :
       {Kind{Fault::Drop, "run: pieces that were dropped"},
        Kind{Fault::Repeat, "run: pieces that ran again"}, Kind{Fault::Swap, "run: pieces that "},
        Kind{Fault::Beyond, "expected pieces of the loop that it was called for, found items"},
        Kind{Fault::Early, "expected pieces of the loop that it was called for, found items"}})
    for (int64_t at = 0; at < calls; at += kind.fault == Fault::Drop ? apart : 3 * apart) {
      Outcome outcome = stepOn(library(), {kind.fault, at});
      EXPECT_EQ(outcome.status, STEPC_ERROR_COUNTS) << int(kind.fault) << " in call " << at;
      EXPECT_THAT(outcome.message, HasSubstr(kind.message)) << int(kind.fault) << " in call " << at;
      EXPECT_THAT(outcome.message, HasSubstr("rank 0: parallel_for: expected"));
      EXPECT_EQ(outcome.steps, std::vector<int64_t>(outcome.steps.size(), 0));
    }
}

} // namespace
} // namespace stepc::test

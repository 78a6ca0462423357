//===- TableProof.h - What the tables of all ranks do together --*- C++ -*-===//
//
// The core of P4, without IR: given a plan, what its program does with the
// tables, and a function that gives every rank's tables, it shows that
//
//  - a stage over shards visits every element of the segment's shards once,
//  - every block that a rank computes is filled once from what it receives, and
//    every element of a shard once on the way back,
//  - what is sent between two ranks is received with equal bytes, and the
//    element that leaves is the element that arrives, also where it is sent on by ranks on its way,
//  - each start sends one message to a peer, in which its values stand apart, in one order on both
//    ends.
//
// The tables are the thing under proof, the ground truth is GroundTruth.h's.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_PASSES_VERIFY_TABLEPROOF_H
#define STEPC_PASSES_VERIFY_TABLEPROOF_H

#include "passes/verify/CommonCheck.h"

#include <array>
#include <atomic>
#include <functional>
#include <memory>

namespace stepc::verify {

/// The subject of the proof: the tables, starts and pools of a world rank, by index into the plan, and the
/// blocks of a group that it computes, by which the trainer binds states that stay with blocks. If ranks get
/// the same rows or start, these are checked once.
struct Expand {
  std::function<plan::CommonTable(int64_t table, int64_t rank)> table;
  std::function<std::shared_ptr<const plan::RankStart>(int64_t start, int64_t rank)> start;
  std::function<plan::RankPool(int64_t pool, int64_t rank)> pool;
  std::function<std::vector<int64_t>(int64_t group, int64_t rank)> computed;
};

/// Makes the functions of a plan. Each worker calls it once. A test may pass one whose tables are wrong.
using MakeExpand = std::function<Expand(const plan::Plan &)>;
/// Calls a function with 0 to count - 1, each call on a thread of its own or one call after another.
using RunBeside = std::function<void(size_t count, const std::function<void(size_t)> &)>;

/// The way of one value: the table that packs it, the messages, the table that unpacks it.
struct Way {
  int64_t producer, message, consumer;
  bool operator==(const Way &) const = default;
};

/// How a program uses the tables of its plan. Each table and each way is listed once.
struct ProgramUse {
  std::vector<TableUse> uses;
  std::vector<Way> ways;
};

/// A refusal: the table to blame, and another one that does not agree with it (or -1).
struct Fault {
  int64_t table, other;
  std::string message;
};

/// The largest number that any rank has, and the number of that rank.
struct Reach {
  int64_t most = 0, rank = 0;
  void include(int64_t end, int64_t ofRank) {
    if (end > most)
      *this = {end, ofRank};
  }
  void include(const Reach &other) { include(other.most, other.rank); }
};
/// How far a table reaches into its buffers, in elements.
struct TableReach {
  Reach from, to; ///< `from`: the staged operand or source; `to`: the target
};
/// How far a start reaches into its buffers, in bytes.
struct StartReach {
  Reach sent, received;
};

/// Totals of one step. `messages` and `bytes` count what travels between different ranks; `routedElements`
/// also counts what ranks send to themselves.
struct Proven {
  int64_t ranks = 0, blocks = 0, messages = 0, bytes = 0, routedElements = 0;
};

class TableProof {
public:
  /// `plan` must outlive the proof and be one that plan::validate accepts.
  TableProof(const plan::Plan &plan, MakeExpand makeExpand);

  /// Tables of all ranks together.
  size_t tableCount() const { return plan.tables.size() * size_t(truth.rankCount()); }
  /// Proves what the comment at the top of this file says. Returns the first fault of every table and way
  /// that fails, in an order that does not depend on the number of workers. Without `runBeside` the workers
  /// run one after another.
  std::vector<Fault> prove(const ProgramUse &program, size_t workers = 1,
                           const RunBeside &runBeside = {});

  /// The next three may be called after `prove`.
  const TableReach &reach(int64_t table) const { return reaches[table]; }
  const StartReach &startReach(int64_t start) const { return startReaches[start]; }
  const Proven &proven() const { return result; }
  /// The most blocks of a segment that a rank computes.
  Reach mostComputed(int64_t segment);
  /// Checks that on every rank each member of a pool has room for all blocks that the rank computes, apart
  /// from the other members. Returns the error, or an empty text.
  std::string checkPool(int64_t pool);

private:
  using Rows = std::shared_ptr<const plan::RankTable>;

  /// Lists what there is to prove, as tasks that do not depend on each other.
  void begin(const ProgramUse &program);
  /// Runs the tasks whose numbers `next` counts up. Proofs of the same program may share `next`; then each
  /// task runs in one of them.
  void doTasks(std::atomic<size_t> &next);
  /// Adds the results and the faults of another proof of the same program.
  void include(TableProof &other);

  enum class Side { None, Sent, Received };
  /// Checks a table on one rank. Unless `side` is None, also checks that each row stays in one peer's part of
  /// what is packed on that side, as `messages` has it. Returns the packed buffer, or nullopt after a fault.
  std::optional<Packed> check(const TableUse &use, int64_t rank, Side side);
  bool staysInParts(int64_t table, const Rows &rows, int64_t rank, Side side);
  /// Whether each sum lists its contributions in the order of the mesh.
  bool addsInOrder(int64_t table, const plan::RankTable &rows, int64_t rank);
  bool checkAlone(const TableUse &use);
  /// Checks that the ranks' parts of a number of the model have each element once, and that tables that
  /// collect the parts name them all.
  bool checkModel(const TableUse &use);
  /// The block, row and column of the first element that a rank has of a parameter: those of no two shards
  /// are equal, unless the shards are copies.
  std::array<int64_t, 3> firstElement(const plan::Place &place, int64_t rank);
  /// Checks on all ranks the blocks of the group of a table, which copies a state that stays with blocks.
  bool checkBlockStates(int64_t table);
  /// Checks that an all-gather is used only along hops without owners, or for sums that go to ranks with
  /// slabs of the same blocks.
  bool checkGathers(int64_t table);
  void checkWay(const Way &way, const std::vector<Packed> *relayed = nullptr);
  bool isRelay(int64_t table) const {
    return plan.tables[table].from.isMoving() && plan.tables[table].to.isMoving();
  }
  /// Whether a rank reads only some of what arrives: the blocks that it computes.
  bool isChoice(int64_t table) const {
    const plan::Table &copy = plan.tables[table];
    return copy.from.isMoving() && copy.to.isResting(plan::Distribution::Blocks) &&
           copy.from.standsIn() != copy.to.from;
  }
  /// The pieces that arrive on a rank, by receive offset. Returns nullopt after a fault.
  std::optional<std::vector<Piece>> arrived(const Way &way, int64_t rank,
                                            const std::vector<Packed> &sent);
  /// Checks that what a rank reads is what arrived there. For ways on which a rank reads only some of that.
  bool checkChosen(const Way &way, int64_t rank, const Packed &read,
                   const std::vector<Packed> &sent);
  /// The buffer that a rank packs from what arrived, to send it on. Returns nullopt after a fault.
  std::optional<Packed> relay(const Way &way, int64_t rank, const std::vector<Packed> &sent);
  /// Checks that what travels together stands in one message per peer.
  bool checkStart(int64_t index, const plan::Start &start);

  // The rest is for the Message table of a way (TableMessages.cpp).
  /// Checks that the messages of all ranks come in pairs with equal counts.
  bool checkMessages(int64_t table);
  const std::vector<plan::Message> &messagesOf(int64_t rank) const {
    return messages[rank]->messages;
  }
  /// The row of `rank` about `peer`. If there is none, the row of an empty message.
  plan::Message message(int64_t rank, int64_t peer);
  /// Checks that a rank sends all that it packs, and nothing beyond.
  bool checkSent(const Way &way, int64_t rank, const Packed &sent);
  /// The messages that a rank receives, by receive offset. Returns nullopt after a fault if there is a gap or
  /// overlap between them.
  std::optional<std::vector<const plan::Message *>> arriving(const Way &way, int64_t rank);
  bool checkReceived(const Way &way, int64_t rank, const Packed &received,
                     const std::vector<Packed> &sent);

  bool fail(int64_t table, std::string message, int64_t other = -1);

  const plan::Plan &plan;
  MakeExpand makeExpand;
  Expand expand;
  GroundTruth truth;
  std::vector<TableUse> useOf; // per table
  std::vector<TableReach> reaches;
  std::vector<StartReach> startReaches;
  CommonCheck common;
  std::vector<Rows> messages;      // of the way's Message table, per rank
  std::vector<size_t> lastMessage; // per rank, where `message` found the last peer
  std::vector<size_t> lastSent;    // per rank, the piece that was compared last
  struct {
    Rows rows, messages;
  } stayed; // the rows and messages that staysInParts accepted last
  /// The last comparison of checkReceived. If the next rank receives equal pieces from equal senders, the
  /// comparison need not be repeated.
  struct Compared {
    Packed received;
    std::vector<std::array<int64_t, 4>> arriving; // sender, its offset, the offset here, elements
  } compared;
  struct Task {
    int64_t group; ///< whose tables it checks; the number of groups if of several
    std::function<void()> run;
  };
  std::vector<Task> tasks;
  size_t task = 0;
  std::vector<std::vector<Fault>> faults; // per task
  std::vector<Way> ways;
  Proven result;
};

} // namespace stepc::verify

#endif

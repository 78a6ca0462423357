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

/// The subject of the proof: the tables, starts and pools of a world rank, by index into the plan. If ranks
/// get the same rows or start, these are checked once.
struct Expand {
  std::function<plan::CommonTable(int64_t table, int64_t rank)> table;
  std::function<std::shared_ptr<const plan::RankStart>(int64_t start, int64_t rank)> start;
  std::function<plan::RankPool(int64_t pool, int64_t rank)> pool;
};

/// Gives the tables of a plan, to each worker of its own; a test may pass one that lies.
using MakeExpand = std::function<Expand(const plan::Plan &)>;
/// Calls a function with 0 to count - 1, on threads of their own or one after another.
using RunBeside = std::function<void(size_t count, const std::function<void(size_t)> &)>;

/// The way of one value: the table that packs it, the messages, the table that unpacks it.
struct Way {
  int64_t producer, message, consumer;
  bool operator==(const Way &) const = default;
};

/// What a program does with the tables of its plan; tables and ways once each.
struct ProgramUse {
  std::vector<TableUse> uses;
  std::vector<Way> ways;
};

/// A refusal: the table to blame, and another one that does not agree with it (or -1).
struct Fault {
  int64_t table, other;
  std::string message;
};

/// The most that any rank has, and that rank.
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
  Reach from, to; ///< staged operand or source; target
};
/// How far a start reaches into its buffers, in bytes.
struct StartReach {
  Reach sent, received;
};

/// What was shown, per step: what travels between different ranks, and the blocks in all.
struct Proven {
  int64_t ranks = 0, blocks = 0, messages = 0, bytes = 0, routedElements = 0;
};

class TableProof {
public:
  /// `plan` must outlive the proof and be one that plan::validate accepts.
  TableProof(const plan::Plan &plan, MakeExpand makeExpand);

  /// Tables of all ranks together.
  size_t tableCount() const { return plan.tables.size() * size_t(truth.rankCount()); }
  /// Shows what the comment at the top says. Gives the first fault of every table and way that fails, in an
  /// order that does not depend on the number of workers. Without `runBeside` the workers run one after
  /// another.
  std::vector<Fault> prove(const ProgramUse &program, size_t workers = 1,
                           const RunBeside &runBeside = {});

  /// After `prove`.
  const TableReach &reach(int64_t table) const { return reaches[table]; }
  const StartReach &startReach(int64_t start) const { return startReaches[start]; }
  const Proven &proven() const { return result; }
  /// The most blocks of a segment that a rank computes.
  Reach mostComputed(int64_t segment);
  /// What is wrong with a pool on some rank: each member has room for all blocks that the rank
  /// computes, apart from the other members.
  std::string checkPool(int64_t pool);

private:
  using Rows = std::shared_ptr<const plan::RankTable>;

  /// Says what there is to prove, as tasks that do not depend on each other.
  void begin(const ProgramUse &program);
  /// Does the tasks that `next` gives, which proofs of the same program may share.
  void doTasks(std::atomic<size_t> &next);
  /// Takes over what another proof has shown and found.
  void include(TableProof &other);

  enum class Side { None, Sent, Received };
  /// Checks a table on one rank, and that its rows stay in the parts of `messages` on that side. Gives its
  /// packed buffer, or nothing and a fault.
  std::optional<Packed> check(const TableUse &use, int64_t rank, Side side);
  bool staysInParts(int64_t table, const Rows &rows, int64_t rank, Side side);
  /// Whether contributions that are added up stand in the order of the mesh.
  bool addsInOrder(int64_t table, const plan::RankTable &rows, int64_t rank);
  bool checkAlone(const TableUse &use);
  /// Checks that an all-gather leads along hops that own nothing, or gives sums to ranks that all have the
  /// same slabs.
  bool checkGathers(int64_t table);
  void checkWay(const Way &way, const std::vector<Packed> *relayed = nullptr);
  bool isRelay(int64_t table) const {
    return plan.tables[table].from.isMoving() && plan.tables[table].to.isMoving();
  }
  /// Whether a rank reads only what it computes of what arrives.
  bool isChoice(int64_t table) const {
    const plan::Table &copy = plan.tables[table];
    return copy.from.isMoving() && copy.to.isResting(plan::Distribution::Blocks) &&
           copy.from.standsIn() != copy.to.from;
  }
  /// What arrives on a rank, where it arrives; or nothing and a fault.
  std::optional<std::vector<Piece>> arrived(const Way &way, int64_t rank,
                                            const std::vector<Packed> &sent);
  /// Checks what a rank reads of what arrived.
  bool checkChosen(const Way &way, int64_t rank, const Packed &read,
                   const std::vector<Packed> &sent);
  /// What a rank that sends on what arrives packs; or nothing and a fault.
  std::optional<Packed> relay(const Way &way, int64_t rank, const std::vector<Packed> &sent);
  /// Checks that what travels together stands in one message per peer.
  bool checkStart(int64_t index, const plan::Start &start);

  // The rest is for the Message table of a way (TableMessages.cpp).
  /// Checks that the messages of all ranks come in pairs with equal counts.
  bool checkMessages(int64_t table);
  const std::vector<plan::Message> &messagesOf(int64_t rank) const {
    return messages[rank]->messages;
  }
  /// What `rank` says of its message with `peer`; none counts as empty.
  plan::Message message(int64_t rank, int64_t peer);
  /// Checks that a rank sends all that it packs, and nothing beyond.
  bool checkSent(const Way &way, int64_t rank, const Packed &sent);
  /// The messages of a rank by where they arrive, without a break between them; or nothing and a fault.
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
  std::vector<Rows> messages;      // of one table, per rank
  std::vector<size_t> lastMessage; // per rank, the one asked for last: peers are asked for in order
  std::vector<size_t> lastSent;    // per rank, the piece that was compared last
  struct {
    Rows rows, messages;
  } stayed; // rows that were shown to stay in the parts of messages, the last ones
  /// What was compared last: pieces that equal pieces of equal senders again arrive in.
  struct Compared {
    Packed received;
    std::vector<std::array<int64_t, 4>> arriving; // sender, its offset, the offset here, elements
  } compared;
  struct Task {
    int64_t group; ///< whose tables it looks at; behind all groups what looks at many
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

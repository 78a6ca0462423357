//===- RankProgram.h - A plan as one rank carries it out --------*- C++ -*-===//
#ifndef STEPC_RUNTIME_CORE_RANKPROGRAM_H
#define STEPC_RUNTIME_CORE_RANKPROGRAM_H

#include "runtime/core/DeviceSeals.h"
#include "runtime/core/commands/Prepared.h"
#include "runtime/host/Memory.h"
#include "runtime/plan/Tables.h"
#include "stepc/stepc.h"

#include <memory>
#include <string>
#include <vector>

namespace stepc::runtime {

/// The default of an input, as memory that kernels read when the trainer gives no tensor. It has as many
/// elements as the largest shard of such an input.
struct InputDefault {
  double value;
  std::string dtype;
  std::vector<uint8_t> elements;
};

/// The shards that a rank has of a group's parameters. Only states that stay with blocks differ between
/// parameters.
struct LocalGroup {
  bool member = false;
  int64_t position = 0; ///< in the group's mesh; only of a member
  struct LocalShard {
    std::vector<int64_t> shape;
    int64_t bytes = 0;
  };
  LocalShard parameter, gradient;
  std::vector<LocalShard> states;  // parallel to GroupText::states
  std::vector<LocalShard> metrics; // parallel to GroupText::metrics
  std::vector<LocalShard> inputs;  // parallel to GroupText::inputs
  std::vector<const void *>
      defaultAddresses; // parallel to inputs: what is read if nothing is given; or null
  /// States that stay with blocks, also parallel to GroupText::states: a shard for each of the group's
  /// parameters. Empty for other states.
  std::vector<std::vector<LocalShard>> blockStates;

  /// Number `i` of GroupText::states, of one of the group's parameters.
  const LocalShard &state(size_t i, int64_t indexInGroup) const {
    return blockStates[i].empty() ? states[i] : blockStates[i][size_t(indexInGroup)];
  }
  /// World ranks with a non-empty gradient; filled if a route of the group may skip.
  std::vector<int32_t> holders;
};

/// An exchange as `create` prepares it, and how far the running step is with it.
struct PreparedExchange {
  struct LocalCopy {
    const char *from;
    char *to;
    int64_t bytes;
  };
  stepc_instance *instance = nullptr;
  int64_t order = 0;
  std::vector<stepc_operation> operations;
  int64_t meeting = 0;             ///< number of the meeting whose ranks take part
  std::vector<LocalCopy> repeated; ///< within the send buffer, made before the start
  std::vector<LocalCopy> own;      ///< what this rank sends to itself
  /// Where a message has its seal: `offset` bytes behind the begin of what `operation` sends or receives.
  /// `number` is the seal's number in RunningStep::sealedMeshes. The address is found by way of the
  /// operation, because a device may give the operation other buffers.
  struct MessageSeal {
    size_t operation;
    int64_t offset;
    size_t number;
    int32_t peer;
    const void *sent(const PreparedExchange &exchange) const {
      return static_cast<const char *>(exchange.operations[operation].send) + offset;
    }
    void *received(const PreparedExchange &exchange) const {
      return static_cast<char *>(exchange.operations[operation].receive) + offset;
    }
  };
  std::vector<MessageSeal> sealsSent, sealsReceived;
  /// On a device's stream: the launches that put seals on messages, and that compare the received seals.
  SealLaunch seal, check;
  void *handle = nullptr;
  bool started = false, inFlight = false, finished = false;
};

/// A set of ranks that meet in exchanges, this rank among them. Operations name its ranks by a communicator
/// if `isOpened`, and otherwise as ranks of the world.
struct Meeting {
  std::vector<int32_t> members; ///< world ranks, ascending
  std::vector<int64_t> meshes;  ///< to which all members belong
  bool isOpened = false;
  void *communicator = nullptr;
};

/// What `create` makes of the plan for its rank.
struct RankProgram {
  plan::RankTables tables;
  std::vector<LocalGroup> groups;
  std::vector<PreparedExchange> exchanges;
  std::vector<Meeting> meetings;                          // each set of ranks once
  std::vector<std::unique_ptr<PreparedCommand>> commands; // in the order of the plan
  Memory arena;
  std::vector<float> metrics; // their memory, if the device works on the host's
  std::vector<InputDefault> inputDefaults;
  Memory zeros; // what kernels read for an absent gradient if its route says zero
  stepc_counters planned{};
  bool maySkip = false;
  // For a step that was recorded as a graph. `recorded` is what a replay counts. `replayCalls` says that each
  // replay calls the host's functions, which count by themselves.
  bool hasGraph = false, isRecording = false, replayCalls = false;
  stepc_counters recorded{};
};

} // namespace stepc::runtime

#endif

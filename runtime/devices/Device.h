//===- Device.h - What carries out the commands of a step --------*- C++ -*-===//
//
// A device is a table of functions. Each begins something on a stream and may return
// before it is done: what stands on one stream is done in order, streams are ordered by
// events alone. The walker (runtime/core/Walk.cpp) knows no other order.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_DEVICES_DEVICE_H
#define STEPC_RUNTIME_DEVICES_DEVICE_H

#include "runtime/host/Memory.h"
#include "runtime/host/Parallel.h"
#include "runtime/plan/Tables.h"
#include "stepc/kernel_abi.h"
#include "stepc/stepc.h"

#include <memory>
#include <string>
#include <vector>

namespace stepc::runtime {

/// Kernels and copies on one, messages on the other.
enum class Stream : int32_t { Compute = 0, Communication = 1 };

struct MemoryUses; // runtime/emulated/Races.h

/// What a device keeps for one instance, from `open` to the instance's end.
class DeviceState {
public:
  virtual ~DeviceState() = default;
};

/// The library that multiplies on a GPU in place of kernels. Ranks compare it, because their bits would
/// differ.
struct ProductLibrary {
  int64_t version = 0; ///< cublasLtGetVersion(); 0 if none was needed or found
  int64_t chip = 0, multiprocessors = 0;
  uint64_t choices = 0; ///< a hash of the plan's products that it makes, and of how; 0: none
};

/// The programs of a library for devices of one kind.
struct LibraryPrograms {
  std::string name; ///< the library's
  std::vector<const stepc_program *> programs;
};

/// What a device knows of the instance that it works for, and what it counts for it.
struct DeviceContext {
  Parallel &parallel;
  stepc_counters &executed;
  const plan::Plan &plan;
  const stepc_program &program;
  const std::vector<stepc_parameter_record> &records;
  const bool &someInactive; ///< whether this step skips a parameter
  std::unique_ptr<DeviceState> state = nullptr;
  std::string failure = {};    ///< the first thing that went wrong in the running step, if any
  bool isCaptured = false;     ///< the running step becomes part of a graph of the trainer's
  ProductLibrary library = {}; ///< set by `open`
};

/// A list in the host's memory that kernels read at `address`. On a CPU that is the list itself, elsewhere a
/// copy of the device's. The address stays; when binds or steps change the list, the copy follows.
struct HostList {
  const void *data = nullptr;
  int64_t bytes = 0;
  bool changes = false;
  const void *address = nullptr; ///< set by the device
};

/// A kernel over the items [0, items). What it points to stays until the device has finished.
struct Launch {
  stepc_kernel kernel = nullptr;
  int64_t number = 0; ///< of the plan's kernels
  void *const *arguments = nullptr;
  int64_t argumentCount = 0;
  int64_t items = 0;
  const plan::LaunchShape *shape = nullptr; ///< for a GPU; null where the plan says none
  int64_t grain = 0;    ///< items that are worth a piece of their own; 0: by `elements`
  int64_t elements = 0; ///< over all items
  /// The parameter of each item, `stride` apart. Items of a parameter that is not active are left out. Null
  /// with stride 0: no item is left out.
  const int64_t *parameters = nullptr;
  int64_t stride = 0;
};

/// Copies rows between two buffers, or between a buffer and shards. Rows of shards whose parameter is not
/// active are left out.
struct RowCopy {
  const plan::CopyRow *rows = nullptr;
  int64_t count = 0; ///< of rows
  const char *from = nullptr;
  char *to = nullptr;
  void *const *fromShards = nullptr, *const *toShards = nullptr; ///< where a side is shards
  int64_t elementBytes = 0;
  int64_t elements = 0; ///< over all rows
  Launch launch;        ///< of the kernel that copies, where the target has one
};

/// A product or a function of computed blocks: what it is, and the kernels that do it one after another.
struct BatchWork {
  const plan::Product *planned = nullptr; ///< null: no product
  int64_t blocks = 0;
  void *const *arguments = nullptr; ///< the scratch, then the command's operands
  std::vector<Launch> kernels;
  int64_t product = -1; ///< that the device's library makes in place of the kernels; -1: none
};

} // namespace stepc::runtime

/// For devices with graphs: a step that is recorded once and carried out again as a whole.
struct stepc_graph_table {
  using Context = stepc::runtime::DeviceContext;

  /// Records what is handed to the device between the two, and does not carry it out. Functions that `call`
  /// names are called while it is recorded, or by each replay.
  void (*begin)(Context &);
  void (*end)(Context &);
  /// Stands in place of a step's commands, between the device's `begin` and `finish`.
  void (*replay)(Context &);
  /// Called before the recording is destroyed. It is not under way then.
  void (*forget)(Context &) noexcept;

  // Graphs of the trainer's, who captures its stream.
  /// Whether the trainer captures its stream.
  bool (*isCaptured)(Context &);
  /// Called before a step that is captured. Lists that change reach the device at once, as replays read them.
  /// The text says why this step cannot be part of the graph; what went wrong is in the context.
  std::string (*prepare)(Context &);
  /// The number of the trainer's graphs that hold steps of this instance.
  int64_t (*living)(Context &);
  /// Brings lists that change to the device, as `begin` does, for replays that come later on the trainer's
  /// stream.
  void (*refresh)(Context &);
};

struct stepc_device_table {
  using Context = stepc::runtime::DeviceContext;
  using Stream = stepc::runtime::Stream;

  const char *name;
  int32_t kind; ///< stepc_device: whose memory it works on
  /// Called before anything else of an instance. The text says what is missing for it.
  std::string (*open)(Context &, const stepc_options &options);
  /// Allocates memory of the device for the workspace, with the options' allocator if they have one.
  bool (*allocate)(Context &, stepc::runtime::Memory &memory, int64_t bytes,
                   const stepc_options &options);
  /// Allocates zeros that kernels read.
  bool (*allocateZeros)(Context &, stepc::runtime::Memory &memory, int64_t bytes);
  /// Gives each list the address at which kernels read it. The text says why it cannot.
  std::string (*lend)(Context &, std::vector<stepc::runtime::HostList> &lists);
  /// Called before the first command of a step. Lists that change have their new values by then.
  void (*begin)(Context &);
  /// Counts a launch and its items.
  void (*launch)(Context &, Stream, const stepc::runtime::Launch &);
  /// Computes by means of its own or by the kernels. Counts a launch and its blocks.
  void (*compute)(Context &, Stream, const stepc::runtime::BatchWork &);
  /// Counts a launch and its rows.
  void (*copy)(Context &, Stream, const stepc::runtime::RowCopy &);
  void (*move)(Context &, Stream, const char *from, char *to, int64_t bytes);
  /// Calls a function of the host when the stream has come to it.
  void (*call)(Context &, Stream, void (*function)(void *), void *argument);
  /// What follows `wait` on a stream begins when all is done that stood before `record` of the
  /// event.
  void (*record)(Context &, Stream, int64_t event);
  void (*wait)(Context &, Stream, int64_t event);
  /// Called after the last command of a step.
  void (*finish)(Context &);
  /// Whether all that was enqueued is done. Never waits; what went wrong meanwhile is in the context.
  bool (*poll)(Context &);
  /// Waits until all that was enqueued is done. May be called for an instance that was never opened.
  void (*drain)(Context &);
  /// Called instead of `finish` if an exception ended the walk: what has not begun does not begin.
  void (*abandon)(Context &) noexcept;
  /// The stream as a transport of the device's memory knows it. Null for devices that work on the host's
  /// memory: there, messages begin and end in functions that are called.
  void *(*stream)(Context &, Stream);
  /// Only for devices with streams. `marks` gives two words of the host's memory, which stay while the device
  /// is open; null if there are none. `mark` writes a number below `values` to both when a stream has come so
  /// far. Replayed graphs write again.
  int32_t *(*marks)(Context &, int64_t values);
  void (*mark)(Context &, Stream, int32_t value);
  /// Only for devices with streams: zeroed memory of the host to which kernels write by its address. It stays
  /// while the device is open; null if there is none.
  void *(*report)(Context &, int64_t bytes);
  /// Why a pointer does not lead to memory of that kind (stepc_memory); empty if it does. Null for devices
  /// that work on the host's memory.
  std::string (*checkPointer)(Context &, const void *pointer, int32_t memory);
  /// Why no step could begin a launch; empty if one could. Asked once, when all commands are ready. May be
  /// null.
  std::string (*checkLaunch)(Context &, const stepc::runtime::Launch &);
  const stepc_graph_table *graphs; ///< null where the device has none
  /// Only for devices that look for races. Called before commands, with a function that gives the memory that
  /// they use when they are carried out.
  void (*declare)(Context &, void (*uses)(void *, stepc::runtime::MemoryUses &),
                  void *argument) = nullptr;
  /// Only for devices with a library of products. Called when all addresses are known: readies the product
  /// that the library computes in place of kernels. The text says why it cannot.
  std::string (*prepare)(Context &, stepc::runtime::BatchWork &) = nullptr;
  /// Chooses the program that the device of the options runs, where a library has several. Called before
  /// `open`. The text says why there is none. Null for devices of which a library has one program.
  std::string (*choose)(const stepc::runtime::LibraryPrograms &, const stepc_options &options,
                        size_t &chosen) = nullptr;
};

#endif

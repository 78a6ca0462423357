//===- Device.h - What carries out the commands of a step --------*- C++ -*-===//
//
// A device is a table of functions. A function begins its work on a stream, and may return before the work is
// done. Work on one stream is done in order. Only events order one stream against the other, and the walker
// (runtime/core/Walk.cpp) relies on no other order.
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

/// The two streams of a step: kernels and copies are on Compute, messages on Communication.
enum class Stream : int32_t { Compute = 0, Communication = 1 };

struct MemoryUses; // runtime/emulated/Races.h

/// What a device keeps for one instance, from `open` to the instance's end.
class DeviceState {
public:
  virtual ~DeviceState() = default;
};

/// The library that multiplies on a GPU in place of kernels, and the algorithms that it takes. Ranks compare
/// `choices`, because other algorithms give other bits.
struct ProductLibrary {
  int64_t version = 0; ///< cublasLtGetVersion(); 0 if none was needed or found
  int64_t chip = 0, multiprocessors = 0;
  uint64_t choices = 0; ///< hash of the products that it computes, and how; 0 if none
};

/// The programs of a library for devices of one kind.
struct LibraryPrograms {
  std::string name; ///< the library's
  std::vector<const stepc_program *> programs;
};

/// What a device knows of its instance. The device adds its counts to `executed`.
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

/// A list in the host's memory that kernels read at `address`. On a CPU `address` is the list itself,
/// elsewhere it is the device's copy. The address never changes. If the list `changes`, each step brings the
/// copy up to date.
struct HostList {
  const void *data = nullptr;
  int64_t bytes = 0;
  bool changes = false;
  const void *address = nullptr; ///< set by the device
};

/// A launch of a kernel over the items [0, items). The caller must keep what it points to until the device is
/// done.
struct Launch {
  stepc_kernel kernel = nullptr;
  int64_t number = 0; ///< the kernel's number in the plan
  void *const *arguments = nullptr;
  int64_t argumentCount = 0;
  int64_t items = 0;
  const plan::LaunchShape *shape = nullptr; ///< for a GPU; null if the plan gives none
  int64_t grain = 0;           ///< items per piece of the loop; 0: computed from `elements`
  int64_t elements = 0;        ///< over all items
  bool besideMessages = false; ///< over lists of tiles: messages may be under way beside it
  /// The record of item i's parameter is number parameters[i * stride]. The device leaves out items of
  /// skipped parameters. Null, with stride 0, if no item may be left out.
  const int64_t *parameters = nullptr;
  int64_t stride = 0;
};

/// Copies rows between two buffers, or between a buffer and shards. The device leaves out rows of shards of
/// skipped parameters.
struct RowCopy {
  const plan::CopyRow *rows = nullptr;
  int64_t count = 0; ///< of rows
  const char *from = nullptr;
  char *to = nullptr;
  void *const *fromShards = nullptr, *const *toShards = nullptr; ///< null if the side is no shards
  int64_t elementBytes = 0;
  int64_t elements = 0; ///< over all rows
  Launch launch;        ///< the kernel that copies, if the target has one
};

/// A stack of matrices that a kernel of tiles reads or writes, row by row without gaps.
struct MatrixStack {
  const void *address = nullptr;
  int64_t matrices = 0, rows = 0, columns = 0;
  plan::DType type = plan::DType::BF16;
  int64_t boxRows = 0; ///< of a box, which a load or a store moves (plan::boxColumns)
};
/// Why tensor loads would refuse a stack; empty if they take it.
std::string checkStack(const MatrixStack &stack);

/// A product or a function of computed blocks: what it is, and the kernels that do it one after another.
struct BatchWork {
  const plan::Product *planned = nullptr; ///< null if it is no product
  int64_t blocks = 0;
  void *const *arguments = nullptr; ///< the scratch, then the command's operands
  std::vector<Launch> kernels;
  int64_t product = -1; ///< number of the library's product that replaces the kernels; -1 if none
};

} // namespace stepc::runtime

/// For devices with graphs: a step that is recorded once and carried out again as a whole.
struct stepc_graph_table {
  using Context = stepc::runtime::DeviceContext;

  /// Between `begin` and `end` the device records what it is handed, and carries nothing out. It calls
  /// functions of the host (`call`) either while it records, or in each replay.
  void (*begin)(Context &);
  void (*end)(Context &);
  /// Carries out the recording in place of a step's commands, between the device's `begin` and `finish`.
  void (*replay)(Context &);
  /// Destroys the recording. Must be called when no replay is under way.
  void (*forget)(Context &) noexcept;

  // For graphs of the trainer's, which capture the trainer's stream.
  /// Whether the trainer captures its stream.
  bool (*isCaptured)(Context &);
  /// Called before a captured step. Uploads the lists that change and waits, because replays read them.
  /// Returns why the step cannot be part of the graph; empty if it can. A failure of the device is in the
  /// context.
  std::string (*prepare)(Context &);
  /// The number of the trainer's graphs that hold steps of this instance.
  int64_t (*living)(Context &);
  /// Uploads the lists that change, as the device's `begin` does, for later replays on the trainer's stream.
  void (*refresh)(Context &);
};

struct stepc_device_table {
  using Context = stepc::runtime::DeviceContext;
  using Stream = stepc::runtime::Stream;

  const char *name;
  int32_t kind; ///< a stepc_device: whose memory the device works on
  /// Called for an instance before all other functions. Returns what is missing; empty if nothing is.
  std::string (*open)(Context &, const stepc_options &options);
  /// Allocates memory of the device for the workspace, with the options' allocator if they have one.
  bool (*allocate)(Context &, stepc::runtime::Memory &memory, int64_t bytes,
                   const stepc_options &options);
  /// Allocates zeros that kernels read.
  bool (*allocateZeros)(Context &, stepc::runtime::Memory &memory, int64_t bytes);
  /// Gives each list the address at which kernels read it. Returns why it cannot; empty if it can.
  std::string (*lend)(Context &, std::vector<stepc::runtime::HostList> &lists);
  /// Called before the first command of a step. The caller must have given new values to lists that change.
  void (*begin)(Context &);
  /// Launches a kernel. Counts a launch and its items.
  void (*launch)(Context &, Stream, const stepc::runtime::Launch &);
  /// Computes a product or a function of blocks, by the device's library or by the kernels. Counts a launch
  /// and its blocks.
  void (*compute)(Context &, Stream, const stepc::runtime::BatchWork &);
  /// Copies rows. Counts a launch and its rows.
  void (*copy)(Context &, Stream, const stepc::runtime::RowCopy &);
  void (*move)(Context &, Stream, const char *from, char *to, int64_t bytes);
  /// Calls a function of the host: when the stream reaches the call, or at once if the function itself
  /// enqueues.
  void (*call)(Context &, Stream, void (*function)(void *), void *argument);
  /// What follows a `wait` on a stream begins when all is done that stood before the `record` of the event on
  /// the other.
  void (*record)(Context &, Stream, int64_t event);
  void (*wait)(Context &, Stream, int64_t event);
  /// Called after the last command of a step.
  void (*finish)(Context &);
  /// Whether all that was enqueued is done. Never waits. A failure is in the context.
  bool (*poll)(Context &);
  /// Waits until all that was enqueued is done. May be called for an instance that was never opened.
  void (*drain)(Context &);
  /// Called instead of `finish` if an exception ended the walk. Commands that have not begun must not begin.
  void (*abandon)(Context &) noexcept;
  /// The stream's handle, for a transport of the device's memory. The function is null for devices on the
  /// host's memory, where messages begin and end in functions of the host (`call`).
  void *(*stream)(Context &, Stream);
  /// Only for devices with `stream`. `marks` allocates two words of the host's memory, which stay while the
  /// device is open, and returns null if it cannot. `mark` writes a number below `values` to both words when
  /// a stream has done all work before the mark, also in each replay of a graph. The watchdog clears one of
  /// the words, so that it sees a replay that writes the same number again.
  int32_t *(*marks)(Context &, int64_t values);
  void (*mark)(Context &, Stream, int32_t value);
  /// Only for devices with `stream`. Allocates zeroed memory of the host, to which kernels write by the same
  /// address. The memory stays while the device is open. Returns null if it cannot.
  void *(*report)(Context &, int64_t bytes);
  /// Returns why a pointer does not lead to `memory` (a stepc_memory); empty if it does. The function is null
  /// for devices on the host's memory.
  std::string (*checkPointer)(Context &, const void *pointer, int32_t memory);
  /// Returns why no step could begin the launch; empty if one could. Called once, when all commands are
  /// ready. The function may be null.
  std::string (*checkLaunch)(Context &, const stepc::runtime::Launch &);
  const stepc_graph_table *graphs; ///< null if the device has none
  /// Only for devices that look for races. Called before each command. When the device carries the command
  /// out, it calls `uses` with `argument`, to learn what memory the command uses.
  void (*declare)(Context &, void (*uses)(void *, stepc::runtime::MemoryUses &),
                  void *argument) = nullptr;
  /// Only for devices with a library of products. Called when all addresses are known. Prepares the product
  /// that the library will compute in place of kernels. Returns why it cannot; empty if it can.
  std::string (*prepare)(Context &, stepc::runtime::BatchWork &) = nullptr;
  /// Only for devices whose kernels may work off lists of tiles. `lists` returns how many lists such a
  /// launch takes, one for each cluster of GPU blocks that runs at a time. Beside messages, some
  /// multiprocessors are left to them. `mapMatrices` makes the map by which the kernel
  /// finds matrices, and returns why it cannot; empty if it can.
  int64_t (*lists)(Context &, const stepc::runtime::Launch &) = nullptr;
  std::string (*mapMatrices)(Context &, const stepc::runtime::MatrixStack &,
                             stepc_tensor_map &map) = nullptr;
  /// Chooses the program that the options' device runs, if a library has several. Called before `open`.
  /// Returns why no program fits; empty if one does. The function is null for devices of which a library has
  /// one program.
  std::string (*choose)(const stepc::runtime::LibraryPrograms &, const stepc_options &options,
                        size_t &chosen) = nullptr;
};

#endif

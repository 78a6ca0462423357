//===- Prepared.h - A command with the addresses of one instance -*- C++ -*-===//
//
// All that a command needs is looked up when the instance is made, so that a step decides nothing.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_RUNTIME_CORE_COMMANDS_PREPARED_H
#define STEPC_RUNTIME_CORE_COMMANDS_PREPARED_H

#include "runtime/devices/Device.h"
#include "runtime/plan/commands/Command.h"

#include <functional>
#include <memory>
#include <vector>

namespace stepc::runtime {

/// Maps a list of the host to the address at which the device reads it. If the device has no copy, this is
/// the list itself.
using AddressOf = std::function<const void *(const void *)>;

/// Adds memory that a kernel reads, and perhaps writes, beside its operands. `what` names the memory in
/// messages.
using AddUse = std::function<void(const void *data, int64_t bytes, const char *what, bool writes)>;

class PreparedCommand {
public:
  PreparedCommand(stepc_instance &instance, int64_t number) : instance(instance), number(number) {}
  virtual ~PreparedCommand() = default;

  const plan::Command &planned() const;

  /// Hands the command to the device.
  virtual void enqueue() = 0;
  /// Adds what the command adds to the counters of a step.
  virtual void count(stepc_counters &) const {}
  /// Adds the lists of the host that its kernels read. Called when the addresses of these lists are final.
  virtual void lend(std::vector<HostList> &) const {}
  /// Sets the kernels' arguments to the device's addresses of such lists. Returns what the device refuses, or
  /// nothing.
  virtual std::string place(const AddressOf &) { return {}; }
  /// Lists what its kernels read and write beside its operands.
  virtual void declare(const AddUse &) const {}
  /// The list of pointers by which kernels find an operand on shards. Null for other operands.
  virtual const void *shardList(int64_t /*operand*/) const { return nullptr; }
  /// Whether the kernel counts steps by itself.
  virtual bool countsSteps() const { return false; }
  /// The exchange that the command starts or awaits. -1 if it does neither.
  virtual int64_t exchange() const { return -1; }

  stepc_instance &instance;
  const int64_t number; ///< in the plan
  bool begun = false;   ///< set in the running step
};

/// A command that is the launch of one kernel.
class PreparedKernel : public PreparedCommand {
public:
  using PreparedCommand::PreparedCommand;
  void enqueue() override;
  void count(stepc_counters &) const override;
  void lend(std::vector<HostList> &) const override;
  std::string place(const AddressOf &) override;
  void declare(const AddUse &) const override;
  const void *shardList(int64_t operand) const override;

  /// Finds the argument that points to the instance's records (a stepc_parameter_record per parameter), and
  /// stores its number in `recordsArgument`. Must be called when `arguments` is complete.
  void findRecords();

  std::vector<void *> arguments; ///< the first is the rows, if the kernel reads rows
  std::vector<int64_t> rows;
  /// By operand: the number of the argument that is its list of shards; -1 if there is none.
  std::vector<int64_t> shardArguments;
  size_t recordsArgument = 0; ///< the number of the argument that is the records
  bool writesRecords = false;
  Launch launch;
};

/// Gives a launch its arguments. Returns why the device could not begin it; empty if it could.
std::string checkLaunch(stepc_instance &, Launch &, std::vector<void *> &arguments);
/// Adds a list of the host that never changes.
template <typename T> void lendList(std::vector<HostList> &lists, const std::vector<T> &list) {
  lists.push_back({list.data(), int64_t(list.size() * sizeof(T)), false});
}

/// Looks up what commands of an instance need. The overloads make a command of each kind ready.
class Preparer {
public:
  explicit Preparer(stepc_instance &instance);

#define STEPC_COMMAND(Kind) std::unique_ptr<PreparedCommand> operator()(const plan::Kind &);
  STEPC_COMMANDS(STEPC_COMMAND)
#undef STEPC_COMMAND

  stepc_instance &instance;
  const plan::Plan &plan;
  int64_t number = 0;                ///< the next command's number in the plan
  std::string failure;               ///< why the device cannot run a command; empty if it can
  int64_t underWay = 0;              ///< exchanges that are started and not yet awaited
  PreparedCommand *joined = nullptr; ///< the product whose launch later products may join

private:
  std::unique_ptr<PreparedCommand> prepareMatrix(const plan::MatrixCommand &,
                                                 const std::vector<const plan::Operand *> &,
                                                 const plan::Product *);
  int64_t recordOf(int64_t group, int64_t parameter) const;
  char *arena() const;
  void *shardsOf(const plan::Operand &) const;
  /// An element of a packed value stands at its number times its size plus this many bytes. 0 for other
  /// operands.
  int64_t shiftOf(const plan::Operand &, const plan::Place &, int64_t element) const;
  /// The word for an operand in a row of `parameter`: where the operand begins in the workspace.
  int64_t wordOf(const plan::Operand &, int64_t parameter) const;

  const std::vector<plan::RankTable> &tables;
  std::vector<const plan::Start *> starts;
  int64_t started = 0;
};

/// The grain of launches over parameters, high because a kernel does few operations per parameter.
inline constexpr int64_t kParameterGrain = 256;

} // namespace stepc::runtime

#endif

//===- Prepared.h - A command with the addresses of one instance -*- C++ -*-===//
//
// All that a command needs is looked up when the instance is made: a step decides nothing.
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

/// Where the device reads a list of the host; the list itself if the device has no copy of it.
using AddressOf = std::function<const void *(const void *)>;

/// Adds memory that a kernel reads beside its operands: `what` names it in messages.
using AddUse = std::function<void(const void *data, int64_t bytes, const char *what)>;

class PreparedCommand {
public:
  PreparedCommand(stepc_instance &instance, int64_t number) : instance(instance), number(number) {}
  virtual ~PreparedCommand() = default;

  const plan::Command &planned() const;

  /// Hands the command to the device.
  virtual void enqueue() = 0;
  /// Adds what it makes a step count.
  virtual void count(stepc_counters &) const {}
  /// Adds lists of the host that its kernels read. Their addresses are final by then.
  virtual void lend(std::vector<HostList> &) const {}
  /// Tells it where the device has such lists. The text says what the device refuses.
  virtual std::string place(const AddressOf &) { return {}; }
  /// Lists what its kernels read beside its operands, and how the list of pointers of each operand on
  /// shards is found.
  virtual void declare(const AddUse &) const {}
  virtual const void *shardList(int64_t /*operand*/) const { return nullptr; }
  /// Whether the kernel counts steps by itself.
  virtual bool countsSteps() const { return false; }
  /// The exchange that it starts or awaits; -1: none.
  virtual int64_t exchange() const { return -1; }

  stepc_instance &instance;
  const int64_t number; ///< in the plan
  bool begun = false;   ///< in the running step
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

  /// Notes which argument the instance's records are. Called when all arguments are there.
  void findRecords();

  std::vector<void *> arguments; ///< the first is the rows, if it has any
  std::vector<int64_t> rows;
  std::vector<int64_t>
      shardArguments;         ///< by operand: the argument that is its list of shards; -1: none
  size_t recordsArgument = 0; ///< which argument the parameters' records are
  Launch launch;
};

/// Lists that `place` maps, and launches that it checks.
std::string checkLaunch(stepc_instance &, Launch &, std::vector<void *> &arguments);
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
  int64_t number = 0; ///< of the command that comes next

private:
  std::unique_ptr<PreparedCommand> prepareMatrix(const plan::MatrixCommand &,
                                                 const std::vector<const plan::Operand *> &,
                                                 const plan::Product *);
  int64_t recordOf(int64_t group, int64_t parameter) const;
  char *arena() const;
  void *shardsOf(const plan::Operand &) const;
  /// How far from its number an element of what is packed stands in its start's buffer, in bytes.
  int64_t shiftOf(const plan::Operand &, const plan::Place &, int64_t element) const;
  /// What a row says of an operand, for an element of `parameter` of `group`.
  int64_t wordOf(const plan::Operand &, int64_t group, int64_t parameter) const;

  const std::vector<plan::RankTable> &tables;
  std::vector<const plan::Start *> starts;
  int64_t started = 0;
};

/// What is done per parameter is a few operations.
inline constexpr int64_t kParameterGrain = 256;

} // namespace stepc::runtime

#endif

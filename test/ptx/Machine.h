//===- Machine.h - A GPU that runs PTX in drawn orders -----------*- C++ -*-===//
//
// One thread of the host runs all warps, a few instructions of a drawn one at a time. Tensor copies and wgmma do their
// work at drawn times between their issue and the wait for them. What is not ordered by the kernel is an error.
//
//===----------------------------------------------------------------------===//
#ifndef STEPC_TEST_PTX_MACHINE_H
#define STEPC_TEST_PTX_MACHINE_H

#include "test/ptx/GlobalMemory.h"
#include "test/ptx/Program.h"
#include "test/ptx/Random.h"
#include "test/ptx/SharedMemory.h"
#include "test/ptx/TensorMap.h"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>

namespace stepc::ptx {

/// Generic addresses of a block's memory and of parameters. Addresses below are the GPU's memory.
constexpr uint64_t kSharedWindow = 0x700000000000, kParameterWindow = 0x710000000000;
/// An address in the memory of a cluster's block: its rank plus one stands above these bits.
constexpr uint32_t kRankShift = 24;

class Machine;
struct Cluster;
struct Cta;

/// A barrier in a block's memory (mbarrier).
struct Mbarrier {
  uint32_t expected = 0, pending = 0;
  int64_t bytes = 0; ///< that are still to arrive in this phase
  uint32_t phase = 0;
  /// Whether its beginning was made visible to other blocks and to tensor copies.
  bool isVisible = false;
  uint32_t initializer = 0; ///< the warp
};

struct NamedBarrier {
  uint32_t expected = 0, arrived = 0, generation = 0;
};

struct Wait {
  enum class Kind { None, Mbarrier, Named, Cluster, Meeting };
  Kind kind = Kind::None;
  uint32_t at = 0, phase = 0;
  int line = 0;
};

/// Lanes of a warp that stand at one instruction. A branch splits them, and only a meeting joins them again.
struct Lanes {
  uint32_t mask = 0, pc = 0;
  Wait wait;
  bool givesUp = false; ///< it has waited for an mbarrier as long as an instruction may
};

/// An access by a thread that no fence of the proxy has followed.
struct Unfenced {
  uint32_t address;
  uint16_t bytes;
  uint8_t lane;
};

/// One wgmma of a warp: a quarter of its 64 rows.
struct Product {
  const Instruction *instruction = nullptr;
  uint64_t left = 0, right = 0;
  bool adds = false;
  std::vector<uint32_t> atoms; ///< of the block's memory that it reads
};
struct ProductGroup {
  std::vector<Product> products;
  uint64_t due = 0;
  bool isDone = false;
};

/// A tensor store of a thread.
struct Store {
  TensorMap map;
  std::array<int32_t, 5> at{};
  uint32_t from = 0;
  uint64_t due = 0;
  bool isDone = false, isWaited = false;
};
struct StoreGroups {
  std::vector<Store> open;
  std::deque<std::vector<Store>> groups;
};

struct Warp {
  Cta *cta = nullptr;
  uint32_t number = 0;
  std::vector<uint32_t> file;
  /// Per register: products in flight that accumulate in it, and the number of wgmma.fence before its last write and
  /// its last read (0: there was none).
  std::vector<uint8_t> busy;
  std::vector<uint32_t> written, read;
  uint32_t fences = 1;
  std::vector<Lanes> lanes;
  Lanes *current = nullptr; ///< whose instruction is being carried out
  std::vector<Unfenced> reads, writes;
  std::vector<Product> openProducts;
  std::deque<ProductGroup> products;
  uint64_t productCount = 0, productHash = 0;
  std::array<StoreGroups, 32> stores;
  /// Tensor maps that lanes have acquired.
  std::map<uint64_t, uint32_t> acquired;
  std::optional<uint32_t> clusterArrival;
  uint32_t registers = 0; ///< as setmaxnreg says
  /// Lanes that have waited for the kernels before this one.
  uint32_t hasWaited = 0;
  uint32_t slowness = 1; ///< in how many of its turns it goes on

  template <class Container> Container *at(Slot slot) {
    return reinterpret_cast<Container *>(&file[slot.offset]);
  }
  uint32_t &predicate(Slot slot) { return file[slot.offset]; }
  uint32_t liveLanes() const;
  uint64_t address(const Address &operand, uint32_t lane) {
    uint64_t base =
        operand.isWide ? at<uint64_t>(operand.base)[lane] : at<uint32_t>(operand.base)[lane];
    return base + uint64_t(operand.offset);
  }
  Machine &machine();
  /// Refuses an access of the GPU's memory, as long as kernels before this one may run.
  void expectWaited(uint32_t lane);
};

struct Cta {
  Cluster *cluster = nullptr;
  uint32_t rank = 0, number = 0;
  SharedMemory shared;
  std::map<uint32_t, Mbarrier> barriers;
  std::array<NamedBarrier, 16> named;
  std::vector<Warp> warps;
  uint32_t liveWarps = 0;

  explicit Cta(uint32_t sharedBytes) : shared(sharedBytes) {}
  Mbarrier &barrier(uint64_t address);
  void arrive(Mbarrier &barrier, uint32_t count);
  void expect(Mbarrier &barrier, int64_t bytes);
  /// Ends a phase that has all arrivals and bytes.
  void advance(Mbarrier &barrier);
};

/// A tensor load that is to land in one block.
struct Load {
  uint64_t due = 0;
  Cta *cta = nullptr;
  uint32_t to = 0, barrier = 0;
  TensorMap map;
  std::array<int32_t, 5> at{};
};

struct Cluster {
  Machine *machine = nullptr;
  const Program *program = nullptr;
  uint32_t number = 0;
  std::vector<std::unique_ptr<Cta>> ctas;
  uint32_t arrived = 0, generation = 0;
  std::vector<Load> loads;
  uint32_t liveWarps = 0;
  const std::vector<uint8_t> *parameters = nullptr;
  uint32_t clusters = 0;

  /// The block that an address of the cluster names, and the address there.
  Cta &blockOf(Cta &own, uint64_t &address);
};

struct Launch {
  const Program *program = nullptr;
  uint32_t clusters = 1;
  uint32_t dynamicBytes = 0;
  std::vector<uint8_t> parameters;
  bool isDependent = false; ///< it begins while kernels before it run
};

class Machine {
public:
  explicit Machine(uint64_t seed);

  GlobalMemory memory;
  Random random;
  uint64_t clock = 0; ///< instructions of all warps
  /// A launch that carries out more is taken to have no end.
  uint64_t mostInstructions = 200'000'000;
  bool isDependent = false; ///< the launch that runs
  /// The GPU's time in nanoseconds, beside one for each instruction.
  uint64_t slept = 0;
  /// Clusters that run beside each other.
  uint32_t residentClusters = 1;

  /// Runs a kernel to its end. Throws an error that names the line, the block and the warp.
  void run(const Launch &launch);

  /// When what is issued now is done: drawn, from at once to very late.
  uint64_t dueTime();
  /// The lane that elect.sync elects. It is the same each time.
  uint32_t electedLane(uint32_t mask) const;
  void landLoads(Cluster &cluster, bool isForced);
  void finishProducts(Warp &warp, bool isForced);

private:
  uint32_t latency = 1, most = 60;
  uint32_t election = 0;

  /// Where a launch has its module's variables.
  std::vector<uint64_t> variables;

  std::unique_ptr<Cluster> begin(const Launch &launch, uint32_t number);
  bool isReady(const Warp &warp, const Lanes &lanes) const;
  bool isRunnable(const Warp &warp) const;
  /// Some instructions of a warp.
  void turn(Warp &warp);
  /// One instruction of a group of lanes. Returns false if it waits or has ended.
  bool step(Warp &warp, size_t group);
  bool meet(Warp &warp, size_t group, uint32_t required);
  void checkRegisters(Warp &warp, const Instruction &instruction);
  void leave(Warp &warp, size_t group, uint32_t mask);
  void finishStores(Warp &warp);
  void endOf(Warp &warp);
  bool passTime(const Launch &launch, const std::vector<std::unique_ptr<Cluster>> &clusters);
  [[noreturn]] void deadlock(const std::vector<std::unique_ptr<Cluster>> &clusters);
};

inline Machine &Warp::machine() { return *cta->cluster->machine; }

/// Carries out a tensor store, or takes what a load brings.
void carryOut(Machine &machine, Cta &cta, Store &store);
void carryOut(Machine &machine, const Load &load);
void carryOut(Warp &warp, const Product &product);
/// Ends the first group of products that a wait was for.
void retire(Warp &warp);

} // namespace stepc::ptx

#endif

//===- Program.cpp - A program written by hand, as the compiler would ------===//
//
// Linked with libstepc_runtime.a into a module that the tests load, once per world
// and fault (Harness.h). It has what a generated library has: kernels, and a plan with its
// commands in bytes; only that the bytes are made when the module is loaded. Its device is
// the CPU, `emulated`, or one that loses or repeats what it is asked for.
//
//   Decay(lr, keep):  m = keep * m + grad;  param -= lr * m / step      (shards only)
//   Double(lr):       o = 2 * grad in matrix space, at the owner;  param -= lr * o
//
//===----------------------------------------------------------------------===//
#include "runtime/devices/Device.h"
#include "runtime/plan/Fnv1a.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace stepc::plan;

namespace {

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

const std::string fault = environment("STEPC_TEST_FAULT");
const int64_t worldSize = std::max(1, std::atoi(environment("STEPC_TEST_WORLD").c_str()));

// Tables and groups of the plan, by index.
enum : int64_t { kDecay, kPack, kGather, kPlace, kBlocks, kFetch, kScatter, kUnpack };
enum : int64_t { kDecayGroups = 5, kDoubleGroup = kDecayGroups };
enum : int64_t {
  kRatesKernel,
  kDecayKernel,
  kPackKernel,
  kTwiceKernel,
  kScalesKernel,
  kUnpackKernel,
  kCopyKernel
};

int64_t arenaBytes = 0;

int64_t largest(const Plan &plan, const Place &place) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < worldSize; ++rank)
    most = std::max(most, Expander(plan).elements(place, rank));
  return (most * 4 + 63) / 64 * 64;
}

void addGroup(Plan &plan, std::string name, int64_t route, std::vector<int64_t> shape,
              Placement placement, std::vector<std::string> parameters) {
  Group group;
  group.name = name;
  group.rule = plan.routes[route].rule;
  group.shape = shape;
  group.placements = {placement};
  for (const std::string &parameter : parameters) {
    group.parameters.push_back(plan.parameters.size());
    plan.parameters.push_back(
        {parameter, route, int64_t(plan.groups.size()), int64_t(group.parameters.size()) - 1});
  }
  plan.groups.push_back(group);
  Segment segment;
  segment.name = name;
  segment.group = plan.groups.size() - 1;
  segment.all = true;
  plan.segments.push_back(segment);
}

Plan makePlan() {
  Plan plan;
  plan.name = "hand";
  plan.chip = fault == "chip" ? "dragon;+sse2,+avx99" : "generic;+sse2,+prfchw";
  if (fault == "hash")
    plan.programHash = 99;
  Mesh mesh{"dp", {"dp"}, {worldSize}, {}};
  for (int64_t rank = 0; rank < worldSize; ++rank)
    mesh.ranks.push_back(fault == "sparse" ? 3 + 2 * rank : rank);
  plan.meshes = {mesh};
  double nan = std::nan("");
  plan.rules = {
      {"Decay", {"lr", "keep"}, {{"m"}, {"master", DType::F32, ValueKind::Full, 0, true}}},
      {"Double", {"lr"}, {}}};
  plan.routes = {{"Decay", 0, {0.5, 0.25}, MissingGrad::Error},
                 {"Decay.1", 0, {0.5, 0.25}, MissingGrad::Zero},
                 {"Double", 1, {0.125}, MissingGrad::Error},
                 {"Decay.2", 0, {nan, 0.5}, MissingGrad::Error}};
  if (fault == "skip")
    plan.routes[0].missingGrad = plan.routes[2].missingGrad = MissingGrad::Skip;
  Placement shard{PlacementKind::Shard, 0, 1};
  addGroup(plan, "g_matrix", 0, {6, 4}, shard, {"a", "b"});
  addGroup(plan, "g_short", 0, {3}, shard, {"short"}); // empty on the last of four ranks
  addGroup(plan, "g_whole", 0, {5}, {}, {"whole"});
  addGroup(plan, "g_zero", 1, {70, 1000}, shard, {"zero"}); // several chunks: work for threads
  addGroup(plan, "g_ask", 3, {4}, shard, {"ask"});          // lr has no default
  addGroup(plan, "g_double", 2, {8, 6}, shard, {"w0", "w1", "w2"});
  Group &owned = plan.groups[kDoubleGroup];
  owned.computes = true;
  owned.hops = {{wholeAxes(mesh), {}, {}}};
  for (int64_t block = 0; block < 3; ++block)
    owned.hops[0].base.push_back((block + 1) % worldSize);

  for (int64_t g = 0; g < kDecayGroups; ++g) {
    Place shards = Place::resting(g, ValueKind::Full, Distribution::Shards);
    plan.tables.push_back({TableKind::ShardChunks, shards, shards});
  }
  int64_t first = kDecayGroups - 1, s = kDoubleGroup;
  using enum Distribution::Kind;
  auto at = [&](Distribution from, Distribution to, End end) {
    return Place{s, ValueKind::Full, from, to, end};
  };
  Place inShards = at(Shards, Shards, End::Rest), inBlocks = at(Blocks, Blocks, End::Rest);
  Place sent = at(Shards, Blocks, End::Sent), received = at(Shards, Blocks, End::Received);
  Place sentBack = at(Blocks, Shards, End::Sent), receivedBack = at(Blocks, Shards, End::Received);
  plan.tables.push_back({TableKind::ShardChunks, inShards, sent, 4});
  plan.tables.push_back({TableKind::Message, sent, received, 4});
  plan.tables.push_back({TableKind::Copy, received, inBlocks, 4});
  plan.tables.push_back({TableKind::BlockChunks, inBlocks, inBlocks, 4});
  plan.tables.push_back({TableKind::Copy, inBlocks, sentBack, 4});
  plan.tables.push_back({TableKind::Message, sentBack, receivedBack, 4});
  plan.tables.push_back({TableKind::ShardChunks, inShards, receivedBack, 4});

  int64_t end = 0;
  auto place = [&](int64_t bytes) {
    Operand operand{OperandKind::Workspace, end, bytes};
    end += (bytes + 63) / 64 * 64;
    return operand;
  };
  // One side of a start that takes one value along.
  auto side = [&](int64_t table, int64_t number, Parcel RankStart::*parcel) {
    Start start;
    start.tables = {first + table};
    int64_t most = 0;
    for (int64_t rank = 0; rank < worldSize; ++rank)
      most = std::max(most, (Expander(plan).start(start, rank).get()->*parcel).bytes);
    Operand operand = place(most);
    operand.start = number;
    return operand;
  };
  Operand send = side(kGather, 0, &RankStart::sent),
          receive = side(kGather, 0, &RankStart::received);
  Operand blocks = place(largest(plan, inBlocks));
  Operand backSend = side(kScatter, 1, &RankStart::sent);
  Operand backReceive = side(kScatter, 1, &RankStart::received);

  for (const char *name : {"rates", "decay", "pack", "twice", "scales", "unpack", "copy_rows"})
    plan.kernels.push_back({name, {}});
  auto chunks = [&](int64_t kernel, int64_t table, std::vector<Operand> operands) {
    plan.commands.push_back(DispatchChunks{kernel, {{first + table, std::move(operands)}}});
  };
  auto copy = [&](int64_t table, Operand from, Operand to) {
    plan.commands.push_back(Copy{first + table, from, to, kCopyKernel});
  };
  auto start = [&](int64_t table, Operand from, Operand to) {
    plan.commands.push_back(Start{CollectiveKind::Exchange, {}, {first + table}, from, to, {}});
  };
  auto scalars = [&](int64_t group, int64_t columns) {
    auto count = static_cast<int64_t>(plan.groups[group].parameters.size());
    return Operand{OperandKind::Scalars, place(count * columns * 4).value, columns * 4};
  };
  Operand parameters{OperandKind::Parameters}, gradients{OperandKind::Gradients};
  Operand moments{OperandKind::State, 0};
  // One dispatch serves all groups of the rule.
  DispatchParameters rating{kRatesKernel, {}};
  DispatchChunks decaying{kDecayKernel, {}};
  for (int64_t g = 0; g < kDecayGroups; ++g) {
    Operand rates = scalars(g, 3);
    rating.runs.push_back({g, {rates}});
    decaying.runs.push_back({g, {rates, parameters, gradients, moments}});
  }
  plan.commands = {rating, decaying};
  chunks(kPackKernel, kPack, {gradients, send});
  start(kGather, send, receive);
  plan.commands.push_back(Await{0, {}});
  copy(kPlace, receive, blocks);
  // A product by a matrix that the kernel does not look at: it doubles what stands in the out.
  Operand batch{OperandKind::Batch, blocks.value, blocks.bytes, -1, 0, 8, 6, DType::F32};
  Operand square{OperandKind::Batch, blocks.value, blocks.bytes, -1, 0, 6, 6, DType::F32};
  Product product;
  product.table = first + kBlocks;
  product.kernels = {{kTwiceKernel, 4}};
  product.lhs = product.out = batch;
  product.rhs = square;
  plan.commands.push_back(product);
  copy(kFetch, blocks, backSend);
  start(kScatter, backSend, backReceive);
  Operand scale = scalars(kDoubleGroup, 1);
  plan.commands.push_back(DispatchParameters{kScalesKernel, {{kDoubleGroup, {scale}}}});
  plan.commands.push_back(Await{1, {}});
  chunks(kUnpackKernel, kUnpack, {scale, parameters, backReceive});
  plan.commands.push_back(AdvanceSteps{});

  if (fault == "pairs")
    for (Command &command : plan.commands)
      if (auto *start = std::get_if<Start>(&command))
        start->communicator = {0, {{0, 1, 2}}};

  plan.arenaBytes = fault == "memory" ? int64_t(1) << 49 : end;
  arenaBytes = end;
  return plan;
}

// --- kernels ---

float *shard(void *table, const stepc_chunk &chunk) {
  return static_cast<float *>(static_cast<void *const *>(table)[chunk.parameter]);
}

/// Of a row with `Words` operands that are no shards.
template <int Words> struct Row {
  stepc_chunk chunk;
  int64_t words[Words];
};
float *at(void *const *arguments, int64_t word) {
  return reinterpret_cast<float *>(static_cast<char *>(arguments[1]) + word);
}

template <typename Body> void forElements(const stepc_chunk &chunk, Body body) {
  for (int64_t r = 0; r < chunk.rows; ++r)
    for (int64_t c = 0; c < chunk.cols; ++c)
      body(chunk.local + r * chunk.local_stride + c, chunk.staged + r * chunk.staged_stride + c);
}

struct ParameterRow {
  int64_t parameter, word;
};

void rates(void *const *arguments, int64_t first, int64_t last) {
  auto *rows = static_cast<const ParameterRow *>(arguments[0]);
  auto *records = static_cast<const stepc_parameter_record *>(arguments[2]);
  for (int64_t i = first; i < last; ++i) {
    const stepc_parameter_record &record = records[rows[i].parameter];
    float *out = at(arguments, rows[i].word);
    out[0] = float(record.hyperparameters[0]);
    out[1] = float(record.hyperparameters[1]);
    out[2] = float(*record.steps_taken + 1);
  }
}

// A plain counter, for ThreadSanitizer to find when the fault "race" asks for it.
int64_t racing = 0;

void decay(void *const *arguments, int64_t first, int64_t last) {
  if (fault == "race")
    racing += last - first;
  auto *rows = static_cast<const Row<1> *>(arguments[0]);
  for (int64_t i = first; i < last; ++i) {
    const stepc_chunk &chunk = rows[i].chunk;
    const float *rates = at(arguments, rows[i].words[0]);
    float lr = rates[0], keep = rates[1], step = rates[2];
    float *param = shard(arguments[3], chunk), *m = shard(arguments[5], chunk);
    const float *grad = shard(arguments[4], chunk);
    forElements(chunk, [&](int64_t at, int64_t) {
      m[at] = keep * m[at] + grad[at];
      param[at] -= lr * m[at] / step;
    });
  }
}

void pack(void *const *arguments, int64_t first, int64_t last) {
  auto *rows = static_cast<const Row<1> *>(arguments[0]);
  for (int64_t i = first; i < last; ++i) {
    float *send = at(arguments, rows[i].words[0]);
    if (rows[i].chunk.staged >= 0)
      forElements(rows[i].chunk, [&](int64_t at, int64_t staged) {
        send[staged] = shard(arguments[3], rows[i].chunk)[at];
      });
  }
}

// Items are quarters of 8 × 6 blocks.
void twice(void *const *arguments, int64_t first, int64_t last) {
  auto *blocks = static_cast<float *>(arguments[3]); // behind the scratch and two operands
  for (int64_t at = first * 12; at < last * 12; ++at)
    blocks[at] = 2 * blocks[at];
}

void scales(void *const *arguments, int64_t first, int64_t last) {
  auto *rows = static_cast<const ParameterRow *>(arguments[0]);
  auto *records = static_cast<const stepc_parameter_record *>(arguments[2]);
  for (int64_t i = first; i < last; ++i)
    *at(arguments, rows[i].word) = float(records[rows[i].parameter].hyperparameters[0]);
}

void unpack(void *const *arguments, int64_t first, int64_t last) {
  auto *rows = static_cast<const Row<2> *>(arguments[0]);
  for (int64_t i = first; i < last; ++i) {
    float scale = *at(arguments, rows[i].words[0]);
    const float *receive = at(arguments, rows[i].words[1]);
    forElements(rows[i].chunk, [&](int64_t at, int64_t staged) {
      shard(arguments[3], rows[i].chunk)[at] -= scale * receive[staged];
    });
  }
}

// Of devices that are a GPU; others copy without it.
void copyRows(void *const *arguments, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    const CopyRow &row = static_cast<const CopyRow *>(arguments[0])[i];
    auto *from = static_cast<const float *>(arguments[1]) + row.source;
    auto *to = static_cast<float *>(arguments[2]) + row.target;
    for (int64_t r = 0; r < row.rows; ++r)
      std::copy_n(from + r * row.sourceStride, row.cols, to + r * row.targetStride);
  }
}

/// What a trainer's thread may have left on: kernels must not see it.
bool flushesDenormals() {
#if defined(__x86_64__)
  return (_mm_getcsr() & 0x8040) != 0;
#else
  return false;
#endif
}

// --- devices that stray ---

using namespace stepc::runtime;

thread_local int64_t launches = 0, calls = 0; // of this step; ranks are threads

/// The fifth launch is lost, or made twice; the fault "overrun" writes behind the workspace.
void strayLaunch(DeviceContext &context, Stream stream, const Launch &launch) {
  if (fault == "denormals" && flushesDenormals())
    return;
  int64_t at = launches++;
  if (fault == "overrun" && launch.kernel == pack)
    std::memset(static_cast<char *>(launch.arguments[1]) + arenaBytes - 8, 0, 16);
  if (fault == "launch-missing" && at == 4)
    return;
  stepc_device_cpu.launch(context, stream, launch);
  if (fault == "launch-extra" && at == 4)
    stepc_device_cpu.launch(context, stream, launch);
}

void strayCompute(DeviceContext &context, Stream stream, const BatchWork &work) {
  if (fault != "product-missing")
    stepc_device_cpu.compute(context, stream, work);
}

/// Calls of the host: start, await, start, await, advance the step counts.
void strayCall(DeviceContext &context, Stream stream, void (*function)(void *), void *argument) {
  int64_t at = calls++;
  bool lost = (fault == "nostart" && at == 2) || (fault == "nowait" && at == 3) ||
              (fault == "noend" && at == 4);
  if (!lost)
    stepc_device_cpu.call(context, stream, function, argument);
  if (fault == "twice" && at == 2)
    stepc_device_cpu.call(context, stream, function, argument);
}

void endStray(DeviceContext &) { launches = calls = 0; }

stepc_device_table makeDevice() {
  stepc_device_table device = stepc_device_cpu;
  device.launch = strayLaunch;
  device.compute = strayCompute;
  device.call = strayCall;
  device.finish = endStray;
  return device;
}
const stepc_device_table stray = makeDevice();

const stepc_device_table *chooseDevice() {
  return fault.empty() ? &stepc_device_cpu : fault == "emulated" ? &stepc_device_emulated : &stray;
}

uint8_t planBytes[65536];
const stepc_kernel kernels[] = {rates, decay, pack, twice, scales, unpack, copyRows};
const int64_t abi = fault == "abi" ? 99 : STEPC_KERNEL_ABI_VERSION;
stepc_program program = {abi, "cpu", planBytes, 0, 0, 0, kernels, nullptr, chooseDevice()};

} // namespace

// --- what generated object code defines ---

extern "C" {

extern const stepc_program *const stepc_programs[] = {&program, nullptr, nullptr};

// The library's own name for its table; the reference also pulls the table out of the archive.
__attribute__((visibility("default"))) const void *hand_library() { return stepc_rt_library(); }

} // extern "C"

namespace {
const struct Loader {
  Loader() {
    Plan plan = makePlan();
    std::vector<uint8_t> bytes = serialize(plan);
    if (bytes.size() > sizeof(planBytes))
      std::abort();
    std::copy(bytes.begin(), bytes.end(), planBytes);
    program.plan_bytes = fault == "short-plan" ? 17 : int64_t(bytes.size());
    program.plan_hash = fnv1a({}, planBytes, program.plan_bytes);
    program.numbers_hash = fnv1a({uint64_t(program.plan_bytes), program.plan_hash});
    if (fault == "plan")
      planBytes[bytes.size() / 2] ^= 1;
    if (fault == "length")
      program.plan_bytes = int64_t(1) << 60;
  }
} loader;
} // namespace

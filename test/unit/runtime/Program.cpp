//===- Program.cpp - A program written by hand, as the compiler would ------===//
//
// Linked with libstepc_runtime.a into a module that the tests load, once per world
// and fault (Harness.h). It has what a generated library has: kernels, a straight-line
// step, and a plan in bytes; only that the bytes are made when the module is loaded.
//
//   Decay(lr, keep):  m = keep * m + grad;  param -= lr * m / step      (shards only)
//   Double(lr):       o = 2 * grad in matrix space, at the owner;  param -= lr * o
//
//===----------------------------------------------------------------------===//
#include "runtime/plan/Tables.h"
#include "stepc/kernel_abi.h"

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

struct Offsets {
  int64_t send, receive, blocks, backSend, backReceive, bytes;
} offsets;

int64_t largest(const Plan &plan, const Place &place) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < worldSize; ++rank)
    most = std::max(most, elements(plan, place, rank));
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
  owned.strategy = Strategy::Owner;
  for (int64_t block = 0; block < 3; ++block)
    owned.owners.push_back((block + 1) % worldSize);

  for (int64_t g = 0; g < kDecayGroups; ++g) {
    Place shards = Place::resting(g, ValueKind::Full, Distribution::Shards);
    plan.tables.push_back({TableKind::ShardChunks, shards, shards});
    plan.launches.push_back({LaunchKind::Chunks, g});
  }
  int64_t first = kDecayGroups - 1, s = kDoubleGroup;
  using enum Distribution;
  auto at = [&](Distribution from, Distribution to, End end) {
    return Place{s, ValueKind::Full, from, to, end};
  };
  Place shards = at(Shards, Shards, End::Rest), blocks = at(Blocks, Blocks, End::Rest);
  Place sent = at(Shards, Blocks, End::Sent), received = at(Shards, Blocks, End::Received);
  Place backSent = at(Blocks, Shards, End::Sent), backReceived = at(Blocks, Shards, End::Received);
  plan.tables.push_back({TableKind::ShardChunks, shards, sent, 4});
  plan.tables.push_back({TableKind::Message, sent, received, 4});
  plan.tables.push_back({TableKind::Copy, received, blocks, 4});
  plan.tables.push_back({TableKind::BlockChunks, blocks, blocks, 4});
  plan.tables.push_back({TableKind::Copy, blocks, backSent, 4});
  plan.tables.push_back({TableKind::Message, backSent, backReceived, 4});
  plan.tables.push_back({TableKind::ShardChunks, shards, backReceived, 4});
  plan.exchanges = {{CollectiveKind::Exchange, {}, {first + kGather}},
                    {CollectiveKind::Exchange, {}, {first + kScatter}}};
  plan.launches.push_back({LaunchKind::Chunks, first + kPack});
  plan.launches.push_back({LaunchKind::Copy, first + kPlace});
  plan.launches.push_back({LaunchKind::Blocks, first + kBlocks, 4});
  plan.launches.push_back({LaunchKind::Copy, first + kFetch});
  plan.launches.push_back({LaunchKind::Group, kDoubleGroup});
  plan.launches.push_back({LaunchKind::Chunks, first + kUnpack});
  if (fault == "launch-missing")
    plan.launches.push_back({LaunchKind::Chunks, first + kUnpack});
  if (fault == "launch-extra")
    plan.launches.pop_back();
  if (fault == "launch-other")
    plan.launches[plan.launches.size() - 4].itemsPerBlock = 5;

  int64_t end = 256; // scalars of the group come first
  auto place = [&](const Place &what) {
    int64_t begin = end;
    end += largest(plan, what);
    return begin;
  };
  offsets.send = place(sent);
  offsets.receive = place(received);
  offsets.blocks = place(blocks);
  offsets.backSend = place(backSent);
  offsets.backReceive = place(backReceived);
  offsets.bytes = end;
  plan.arenaBytes = fault == "memory" ? int64_t(1) << 49 : end;
  return plan;
}

// --- kernels ---

float *shard(void *const *table, const stepc_chunk &chunk) {
  return static_cast<float *>(table[chunk.parameter]);
}

template <typename Body> void forElements(const stepc_chunk &chunk, Body body) {
  for (int64_t r = 0; r < chunk.rows; ++r)
    for (int64_t c = 0; c < chunk.cols; ++c)
      body(chunk.local + r * chunk.local_stride + c, chunk.staged + r * chunk.staged_stride + c);
}

// A plain counter, for ThreadSanitizer to find when the fault "race" asks for it.
int64_t racing = 0;

void decay(void *const *arguments, int64_t first, int64_t last) {
  if (fault == "race")
    racing += last - first;
  auto *chunks = static_cast<const stepc_chunk *>(arguments[0]);
  auto *parameters = static_cast<void *const *>(arguments[1]);
  auto *gradients = static_cast<void *const *>(arguments[2]);
  auto *moments = static_cast<void *const *>(arguments[3]);
  auto *records = static_cast<const stepc_parameter_record *>(arguments[4]);
  for (int64_t i = first; i < last; ++i) {
    const stepc_parameter_record &record = records[chunks[i].parameter];
    float lr = float(record.hyperparameters[0]), keep = float(record.hyperparameters[1]);
    float step = float(record.step);
    float *param = shard(parameters, chunks[i]), *m = shard(moments, chunks[i]);
    const float *grad = shard(gradients, chunks[i]);
    forElements(chunks[i], [&](int64_t at, int64_t) {
      m[at] = keep * m[at] + grad[at];
      param[at] -= lr * m[at] / step;
    });
  }
}

void pack(void *const *arguments, int64_t first, int64_t last) {
  auto *chunks = static_cast<const stepc_chunk *>(arguments[0]);
  auto *gradients = static_cast<void *const *>(arguments[1]);
  auto *send = static_cast<float *>(arguments[2]);
  for (int64_t i = first; i < last; ++i)
    if (chunks[i].staged >= 0)
      forElements(chunks[i], [&](int64_t at, int64_t staged) {
        send[staged] = shard(gradients, chunks[i])[at];
      });
}

// Items are quarters of 8 × 6 blocks.
void twice(void *const *arguments, int64_t first, int64_t last) {
  auto *blocks = static_cast<float *>(arguments[0]);
  for (int64_t at = first * 12; at < last * 12; ++at)
    blocks[at] = 2 * blocks[at];
}

void scales(void *const *arguments, int64_t first, int64_t last) {
  auto *parameters = static_cast<const int64_t *>(arguments[0]);
  auto *records = static_cast<const stepc_parameter_record *>(arguments[1]);
  auto *out = static_cast<float *>(arguments[2]);
  for (int64_t i = first; i < last; ++i)
    out[i] = float(records[parameters[i]].hyperparameters[0]);
}

void unpack(void *const *arguments, int64_t first, int64_t last) {
  auto *chunks = static_cast<const stepc_chunk *>(arguments[0]);
  auto *parameters = static_cast<void *const *>(arguments[1]);
  auto *receive = static_cast<const float *>(arguments[2]);
  auto *scale = static_cast<const float *>(arguments[3]);
  for (int64_t i = first; i < last; ++i)
    forElements(chunks[i], [&](int64_t at, int64_t staged) {
      shard(parameters, chunks[i])[at] -= scale[chunks[i].block] * receive[staged];
    });
}

/// What a trainer's thread may have left on: kernels must not see it.
bool flushesDenormals() {
#if defined(__x86_64__)
  return (_mm_getcsr() & 0x8040) != 0;
#else
  return false;
#endif
}

} // namespace

// --- what generated object code defines ---

extern "C" {

uint8_t planBytes[65536] __asm__("stepc_program_plan");
int64_t planSize __asm__("stepc_program_plan_bytes");
int64_t programAbi __asm__("stepc_program_abi_version");

// The library's own name for its table; the reference also pulls the table out of the archive.
__attribute__((visibility("default"))) const void *hand_library() { return stepc_rt_library(); }

void stepc_program_step(stepc_context *context) {
  char *arena = static_cast<char *>(stepc_rt_arena(context));
  void *parameters = const_cast<void *>(stepc_rt_parameters(context));
  void *gradients = const_cast<void *>(stepc_rt_gradients(context));
  void *records = const_cast<void *>(stepc_rt_records(context));
  void *moments = const_cast<void *>(stepc_rt_states(context, 0));
  auto chunks = [&](int64_t table) { return const_cast<void *>(stepc_rt_chunks(context, table)); };

  if (fault == "denormals" && flushesDenormals())
    return; // shows as missing launches
  for (int64_t g = 0; g < kDecayGroups; ++g) {
    void *arguments[] = {chunks(g), parameters, gradients, moments, records};
    stepc_rt_launch_chunks(context, decay, arguments, g);
  }
  const int64_t base = kDecayGroups - 1;
  void *send = arena + offsets.send, *receive = arena + offsets.receive;
  void *blocks = arena + offsets.blocks;
  void *backSend = arena + offsets.backSend, *backReceive = arena + offsets.backReceive;

  void *packing[] = {chunks(base + kPack), gradients, send};
  stepc_rt_launch_chunks(context, pack, packing, base + kPack);
  int64_t gather = base + kGather, scatter = base + kScatter;
  stepc_rt_exchange_start(context, 0, 1, &gather, &offsets.send, &offsets.receive);
  if (fault == "twice")
    stepc_rt_exchange_start(context, 0, 1, &gather, &offsets.send, &offsets.receive);
  stepc_rt_exchange_wait(context, 0);
  if (stepc_rt_failed(context))
    return;
  stepc_rt_copy(context, base + kPlace, receive, blocks, -1);
  stepc_rt_launch_blocks(context, twice, &blocks, base + kBlocks, 4);
  stepc_rt_copy(context, base + kFetch, blocks, backSend, -1);
  if (fault == "other-table")
    scatter = gather;
  stepc_rt_exchange_start(context, 1, 1, &scatter, &offsets.backSend, &offsets.backReceive);
  void *scaling[] = {const_cast<void *>(stepc_rt_group_parameters(context, kDoubleGroup)), records,
                     arena};
  stepc_rt_launch_group(context, scales, scaling, kDoubleGroup);
  if (fault != "nowait")
    stepc_rt_exchange_wait(context, 1);
  if (stepc_rt_failed(context))
    return;
  if (fault == "overrun")
    std::memset(arena + offsets.bytes - 8, 0, 16);
  void *unpacking[] = {chunks(base + kUnpack), parameters, backReceive, arena};
  stepc_rt_launch_chunks(context, unpack, unpacking, base + kUnpack);
}

} // extern "C"

namespace {
const struct Loader {
  Loader() {
    Plan plan = makePlan();
    std::vector<uint8_t> bytes = serialize(plan);
    if (bytes.size() > sizeof(planBytes))
      std::abort();
    std::copy(bytes.begin(), bytes.end(), planBytes);
    planSize = fault == "plan" ? 17 : int64_t(bytes.size());
    programAbi = fault == "abi" ? 99 : STEPC_KERNEL_ABI_VERSION;
  }
} loader;
} // namespace

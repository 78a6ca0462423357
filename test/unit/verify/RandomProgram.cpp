//===- RandomProgram.cpp - Random programs of level 4, as text ------------===//

#include "RandomProgram.h"

#include "runtime/geometry/Geometry.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>

using namespace stepc;

namespace {

using plan::Placement;
using plan::PlacementKind;

template <typename T> std::string join(const std::vector<T> &list) {
  std::ostringstream out;
  for (size_t i = 0; i < list.size(); ++i)
    out << (i ? ", " : "") << list[i];
  return out.str();
}

/// A group with what the text says of it.
struct DrawnGroup {
  plan::Group group;
  std::string strategy, stateKind; // stateKind: of the second state, or empty
  int64_t meshIndex = 0, parameterCount = 1, waves = 1;
  std::vector<int64_t> waveOf; // per block
};

class Generator {
public:
  Generator(test::Random &random, std::map<std::string, int> &histogram)
      : random(random), histogram(histogram) {}

  std::string run() {
    drawMeshes();
    for (int64_t left = test::draw(random, 1, 3); left > 0; --left)
      drawGroup();
    writeSymbols();
    writeStep();
    return "module @random attributes {stepc.level = \"scheduled\"} {\n" + symbols.str() +
           "  func.func @step() attributes {comm.arena_bytes = " + std::to_string(arena) +
           " : i64} {\n" + body.str() + "    return\n  }\n}\n";
  }

private:
  bool chance(int64_t percent) { return test::draw(random, 1, 100) <= percent; }

  //===--- What is drawn ------------------------------------------------------===//

  void drawMeshes() {
    int64_t count = chance(25) ? 2 : 1;
    for (int64_t i = 0; i < count; ++i) {
      plan::Mesh mesh;
      int64_t axes = test::draw(random, 1, 3), ranks = 1;
      for (int64_t axis = 0; axis < axes; ++axis) {
        mesh.sizes.push_back(test::draw(random, 1, axes == 1 ? 5 : 3));
        ranks *= mesh.sizes.back();
      }
      std::vector<int64_t> all(ranks + 3);
      std::iota(all.begin(), all.end(), 0);
      std::shuffle(all.begin(), all.end(), random);
      mesh.ranks.assign(all.begin(), all.begin() + ranks);
      ++histogram["mesh axes " + std::to_string(axes)];
      meshes.push_back(mesh);
    }
  }

  void drawGroup() {
    DrawnGroup drawn;
    plan::Group &group = drawn.group;
    drawn.meshIndex = test::draw(random, 0, int64_t(meshes.size()) - 1);
    const plan::Mesh &mesh = meshes[drawn.meshIndex];
    drawn.strategy = std::vector<std::string>{"owner", "owner", "gather", "local",
                                              "elementwise"}[test::draw(random, 0, 4)];
    bool matrix = drawn.strategy != "elementwise";
    if (matrix) {
      group.batchAxes = chance(40) || drawn.strategy == "local" ? 1 : 0;
      group.shape = {test::draw(random, chance(5) ? 0 : 1, 7), test::draw(random, 1, 7)};
      if (chance(8)) // rows of tables are cut at plan::kChunkElements
        group.shape[test::draw(random, 0, 1)] *= 4000, ++histogram["long"];
      if (group.batchAxes)
        group.shape.insert(group.shape.begin(), test::draw(random, 1, 5));
    } else {
      for (int64_t axes = test::draw(random, 0, 3); axes > 0; --axes)
        group.shape.push_back(test::draw(random, 1, 7));
    }
    for (size_t axis = 0; axis < mesh.sizes.size(); ++axis) {
      int64_t last = drawn.strategy == "local" ? 0 : int64_t(group.shape.size()) - 1;
      Placement placement;
      if (last >= 0 && chance(75))
        placement = {PlacementKind::Shard, test::draw(random, 0, last), 1};
      group.placements.push_back(placement);
    }
    drawStrided(group, mesh);
    if (drawn.strategy == "local" && !geometry::blocksAreWhole(group, mesh))
      drawn.strategy = "gather";
    drawn.parameterCount = test::draw(random, 1, 4);
    if (matrix && chance(50))
      drawn.stateKind = std::vector<std::string>{"rows", "cols", "one"}[test::draw(random, 0, 2)];
    group.parameters.resize(drawn.parameterCount);
    int64_t blocks = group.blockCount();
    if (drawn.strategy == "owner")
      for (int64_t block = 0; block < blocks; ++block)
        group.owners.push_back(test::draw(random, 0, int64_t(mesh.ranks.size()) - 1));
    drawn.waves = test::draw(random, 1, 3);
    for (int64_t block = 0; block < blocks; ++block)
      drawn.waveOf.push_back(test::draw(random, 0, drawn.waves - 1));
    ++histogram["strategy " + drawn.strategy];
    ++histogram["waves " + std::to_string(drawn.waves)];
    if (!drawn.stateKind.empty())
      ++histogram["state " + drawn.stateKind];
    if (group.batchAxes)
      ++histogram["batched"];
    for (size_t axis = 0; axis < mesh.sizes.size(); ++axis)
      ++histogram[std::string("placement ") +
                  std::array{"R", "S", "_S"}[size_t(group.placements[axis].kind)]];
    groups.push_back(drawn);
  }

  /// Turns an S(d) that later axes shard again into the _S(d, sf) that says so.
  void drawStrided(plan::Group &group, const plan::Mesh &mesh) {
    for (size_t axis = 0; axis < mesh.sizes.size(); ++axis) {
      Placement &placement = group.placements[axis];
      int64_t later = 1;
      for (size_t other = axis + 1; other < mesh.sizes.size(); ++other)
        if (placement.kind == PlacementKind::Shard &&
            group.placements[other].kind == PlacementKind::Shard &&
            group.placements[other].dim == placement.dim)
          later *= mesh.sizes[other];
      if (later > 1 && chance(60))
        placement = {PlacementKind::StridedShard, placement.dim, later};
    }
  }

  //===--- Symbols --------------------------------------------------------------===//

  void writeSymbols() {
    for (size_t i = 0; i < meshes.size(); ++i) {
      std::vector<std::string> axes;
      for (size_t axis = 0; axis < meshes[i].sizes.size(); ++axis)
        axes.push_back("\"x" + std::to_string(axis) + "\"");
      symbols << "  optim.mesh @mesh" << i << " axes [" << join(axes) << "] sizes ["
              << join(meshes[i].sizes) << "] ranks [" << join(meshes[i].ranks) << "]\n";
    }
    for (size_t i = 0; i < groups.size(); ++i)
      writeGroup(i);
  }

  void writeGroup(size_t i) {
    const DrawnGroup &g = groups[i];
    bool matrix = g.strategy != "elementwise";
    const char *full = "tensor<?x?xf32>";
    std::string extra = g.stateKind == "rows"   ? "tensor<?x1xf32>"
                        : g.stateKind == "cols" ? "tensor<1x?xf32>"
                                                : "tensor<1x1xf32>";
    bool hasExtra = !g.stateKind.empty();
    symbols << "  optim.rule @rule" << i << " hyperparameters [] states ["
            << (matrix ? "#optim.state<\"m\", f32, full, 0.0 : f64, false>" : "")
            << (hasExtra ? ", #optim.state<\"v\", f32, " + g.stateKind + ", 0.0 : f64, false>" : "")
            << "] {\n  ^bb0(%p: " << full << ", %g: " << full << (matrix ? ", %m: " : "")
            << (matrix ? full : "") << (hasExtra ? ", %v: " + extra : "")
            << ", %step: f64, %rows: f64, %cols: f64, %numel: f64):\n"
            << (matrix ? "    %l = arith.subf %g, %m : tensor<?x?xf32>\n"
                         "    %o = arith.negf %l : tensor<?x?xf32>\n"
                         "    %q = arith.subf %p, %o : tensor<?x?xf32>\n"
                         "    %n = arith.mulf %q, %l : tensor<?x?xf32>\n"
                       : "    %n = arith.subf %p, %g : tensor<?x?xf32>\n")
            << (hasExtra ? "    %w = arith.negf %v : " + extra + "\n" : "") << "    optim.yield %n"
            << (matrix ? ", %l" : "") << (hasExtra ? ", %w" : "") << " : " << full
            << (matrix ? ", tensor<?x?xf32>" : "") << (hasExtra ? ", " + extra : "")
            << "\n  }\n  optim.route @route" << i << " rule @rule" << i
            << " patterns [] except [] defaults [] missing_grad error\n";
    std::vector<std::string> names, placements;
    for (const Placement &placement : g.group.placements)
      placements.push_back(placement.kind == PlacementKind::Replicate ? "#optim.replicate"
                           : placement.kind == PlacementKind::Shard
                               ? "#optim.shard<" + std::to_string(placement.dim) + ">"
                               : "#optim.strided_shard<" + std::to_string(placement.dim) + ", " +
                                     std::to_string(placement.factor) + ">");
    for (int64_t p = 0; p < g.parameterCount; ++p) {
      names.push_back("@w" + std::to_string(i) + "_" + std::to_string(p));
      symbols << "  optim.parameter " << names.back() << " shape [" << join(g.group.shape)
              << "] batch " << g.group.batchAxes << " type f32 gradient f32 mesh @mesh"
              << g.meshIndex << " placements [" << join(placements) << "] aliases [] route @route"
              << i << "\n";
    }
    symbols << "  optim.group @g" << i << " rule @rule" << i << " parameters [" << join(names)
            << "] strategy " << g.strategy;
    if (!g.group.owners.empty())
      symbols << " owners [" << join(g.group.owners) << "]";
    symbols << "\n";
    for (int64_t wave = 0; wave < g.waves; ++wave) {
      symbols << "  comm.segment @g" << i << "_w" << wave << " group @g" << i;
      std::vector<int64_t> blocks;
      for (size_t block = 0; block < g.waveOf.size(); ++block)
        if (g.waveOf[block] == wave)
          blocks.push_back(int64_t(block));
      std::shuffle(blocks.begin(), blocks.end(), random);
      symbols << (g.waves == 1 ? " all\n" : " blocks [" + join(blocks) + "]\n");
    }
  }

  //===--- The step -------------------------------------------------------------===//

  std::string name(const char *what) { return "%" + std::string(what) + std::to_string(next++); }

  /// A buffer with room for a whole group on one rank, in a place of its own.
  std::string buffer(size_t i, int64_t wave, const std::string &use,
                     const std::string &type = "memref<?xf32>") {
    const plan::Group &group = groups[i].group;
    int64_t elements = group.blockCount() * std::max<int64_t>(1, group.rows()) *
                       std::max<int64_t>(1, group.cols());
    // To the shards, an owner sends an element to every replica.
    int64_t bytes = elements * 4 * int64_t(meshes[groups[i].meshIndex].ranks.size());
    std::string extent = name("n"), value = name("b");
    body << "    " << extent << " = comm.extent " << segment(i, wave) << " " << use << "\n    "
         << value << " = comm.buffer offset " << arena << " bytes " << bytes << " (" << extent
         << ") : " << type << "\n";
    arena += (bytes + 63) / 64 * 64;
    return value;
  }

  /// Values that travel together.
  struct Pairs {
    std::vector<std::string> sends, receives, segments;
    std::vector<int64_t> kinds;
  };
  void exchange(const Pairs &pairs, const char *direction) {
    if (pairs.sends.empty())
      return;
    std::string token = name("t");
    std::string types =
        " : " + join(std::vector<std::string>(pairs.sends.size(), "memref<?xf32>")) + ")";
    body << "    " << token << " = comm.start %world " << direction << " order " << order++
         << " sends [" << join(pairs.segments) << "] (" << join(pairs.sends) << types
         << " receives [" << join(pairs.segments) << "] (" << join(pairs.receives) << types
         << " kinds [" << join(pairs.kinds) << "]\n    comm.wait " << token << "\n";
  }

  int64_t kindOf(const std::string &kind) {
    return kind == "full" ? 0 : kind == "rows" ? 1 : kind == "cols" ? 2 : 3;
  }
  std::string batch(size_t i, const std::string &kind) {
    geometry::View view = geometry::view(groups[i].group, plan::ValueKind(kindOf(kind)));
    return "memref<?x" + std::to_string(view.rows) + "x" + std::to_string(view.cols) + "xf32>";
  }

  void writeStep() {
    body << "    %world = comm.world\n";
    for (size_t i = 0; i < groups.size(); ++i) {
      std::string type = shards(i);
      body << "    %p" << i << " = comm.shards parameter @g" << i << " : " << type << "\n    %d"
           << i << " = comm.shards gradient @g" << i << " : " << type << "\n";
      if (groups[i].strategy != "elementwise")
        body << "    %m" << i << " = comm.shards state @g" << i << " \"m\" : " << type << "\n";
      if (!groups[i].stateKind.empty())
        body << "    %v" << i << " = comm.shards state @g" << i << " \"v\" : " << type << "\n";
    }
    for (int64_t wave = 0; wave < 3; ++wave)
      writeWave(wave);
  }

  void writeWave(int64_t wave) {
    Pairs there, back;
    std::vector<size_t> here;
    for (size_t i = 0; i < groups.size(); ++i)
      if (wave < groups[i].waves)
        here.push_back(i);
    std::map<size_t, std::map<std::string, std::string>> arrived, batches;
    for (size_t i : here)
      leave(i, wave, there, arrived[i], batches[i]);
    exchange(there, "to_matrix");
    for (size_t i : here)
      compute(i, wave, back, arrived[i], batches[i]);
    exchange(back, "to_shards");
    for (size_t i : here)
      finish(i, wave, arrived[i], batches[i]);
  }

  using Values = std::map<std::string, std::string>; // by kind

  void pair(Pairs &pairs, size_t i, int64_t wave, const std::string &send,
            const std::string &receive, const std::string &kind) {
    pairs.sends.push_back(send);
    pairs.receives.push_back(receive);
    pairs.segments.push_back(segment(i, wave));
    pairs.kinds.push_back(kindOf(kind));
  }
  std::string segment(size_t i, int64_t wave) {
    return "@g" + std::to_string(i) + "_w" + std::to_string(wave);
  }
  std::string shards(size_t i) { return "!comm.shards<@g" + std::to_string(i) + ", f32>"; }

  /// Stages in: %m is written and sent.
  void leave(size_t i, int64_t wave, Pairs &pairs, Values &arrived, Values &batches) {
    const DrawnGroup &g = groups[i];
    std::string s = segment(i, wave), type = shards(i), id = std::to_string(i);
    if (g.strategy == "elementwise") {
      body << "    comm.stage " << s << " over shards to_matrix none ins(%p" << id << ", %d" << id
           << " : " << type << ", " << type << ") writes(%p" << id << " : " << type
           << ") {\n    ^bb0(%a: f32, %b: f32):\n      %c = arith.subf %a, %b : f32\n"
           << "      comm.yield %c : f32\n    }\n";
      return;
    }
    bool local = g.strategy == "local";
    std::string outType = local ? batch(i, "full") : "memref<?xf32>";
    std::string out =
        buffer(i, wave, local ? "to_matrix full blocks" : "to_matrix full send", outType);
    body << "    comm.stage " << s << " over shards to_matrix " << (local ? "blocks" : "send")
         << " ins(%d" << id << ", %m" << id << " : " << type << ", " << type << ") writes(%m" << id
         << " : " << type << ") outs(" << out << " : " << outType
         << ") {\n    ^bb0(%a: f32, %b: f32):\n      %c = arith.subf %a, %b : f32\n"
         << "      comm.yield %c, %c : f32, f32\n    }\n";
    if (local)
      batches["full"] = out;
    else
      pair(pairs, i, wave, out, arrived["full"] = buffer(i, wave, "to_matrix full receive"),
           "full");
    if (g.stateKind.empty())
      return;
    std::string stateType = local ? batch(i, g.stateKind) : "memref<?xf32>";
    std::string state = buffer(
        i, wave, local ? "to_matrix full blocks" : "to_matrix " + g.stateKind + " send", stateType);
    body << "    comm.copy " << s << " to_matrix " << g.stateKind << " from shard to "
         << (local ? "blocks" : "send") << " ins(%v" << id << " : " << type << ") outs(" << state
         << " : " << stateType << ")\n";
    if (local)
      batches[g.stateKind] = state;
    else
      pair(pairs, i, wave, state,
           arrived[g.stateKind] = buffer(i, wave, "to_matrix " + g.stateKind + " receive"),
           g.stateKind);
  }

  /// Matrix space: a batch of each kind is changed in place, then goes back.
  void compute(size_t i, int64_t wave, Pairs &pairs, Values &arrived, Values &batches) {
    std::string s = segment(i, wave);
    for (auto &[kind, value] : arrived) {
      batches[kind] = buffer(i, wave, "to_matrix full blocks", batch(i, kind));
      body << "    comm.copy " << s << " to_matrix " << kind << " from receive to blocks ins("
           << value << " : memref<?xf32>) outs(" << batches[kind] << " : " << batch(i, kind)
           << ")\n";
    }
    for (auto &[kind, value] : batches)
      body << "    comm.stage " << s << " over blocks to_matrix blocks ins(" << value << " : "
           << batch(i, kind) << ") outs(" << value << " : " << batch(i, kind)
           << ") {\n    ^bb0(%a: f32):\n      %c = arith.negf %a : f32\n      comm.yield %c : f32\n"
           << "    }\n";
    arrived.clear();
    if (groups[i].strategy != "owner")
      return;
    for (auto &[kind, value] : batches) {
      std::string send = buffer(i, wave, "to_shards " + kind + " send");
      body << "    comm.copy " << s << " to_shards " << kind << " from blocks to send ins(" << value
           << " : " << batch(i, kind) << ") outs(" << send << " : memref<?xf32>)\n";
      pair(pairs, i, wave, send, arrived[kind] = buffer(i, wave, "to_shards " + kind + " receive"),
           kind);
    }
  }

  /// Stages out, from what arrived or from the blocks themselves.
  void finish(size_t i, int64_t wave, Values &arrived, Values &batches) {
    std::string s = segment(i, wave), type = shards(i), id = std::to_string(i);
    for (auto &[kind, inBlocks] : batches) {
      bool owner = groups[i].strategy == "owner";
      std::string value = owner ? arrived[kind] : inBlocks;
      std::string from = owner ? "receive" : "blocks";
      std::string valueType = owner ? "memref<?xf32>" : batch(i, kind);
      if (kind != "full")
        body << "    comm.copy " << s << " to_shards " << kind << " from " << from
             << " to shard ins(" << value << " : " << valueType << ") writes(%v" << id << " : "
             << type << ")\n";
      else
        body << "    comm.stage " << s << " over shards to_shards " << from << " ins(%p" << id
             << ", %m" << id << ", " << value << " : " << type << ", " << type << ", " << valueType
             << ") writes(%p" << id << " : " << type
             << ") {\n    ^bb0(%a: f32, %m: f32, %b: f32):\n      %c = arith.subf %a, %b : f32\n"
             << "      %d = arith.mulf %c, %m : f32\n      comm.yield %d : f32\n    }\n";
    }
  }

  test::Random &random;
  std::map<std::string, int> &histogram;
  std::vector<plan::Mesh> meshes;
  std::vector<DrawnGroup> groups;
  std::ostringstream symbols, body;
  int64_t arena = 0, next = 0, order = 0;
};

} // namespace

std::string test::randomProgram(Random &random, std::map<std::string, int> &histogram) {
  return Generator(random, histogram).run();
}

//===- RandomProgram.cpp - Random programs of level 4, as text ------------===//

#include "RandomProgram.h"
#include "RandomGroups.h"

#include "runtime/geometry/Geometry.h"

#include <algorithm>
#include <sstream>

using namespace stepc;

namespace {

using plan::Placement;
using test::DrawnGroup;

template <typename T> std::string join(const std::vector<T> &list) {
  std::ostringstream out;
  for (size_t i = 0; i < list.size(); ++i)
    out << (i ? ", " : "") << list[i];
  return out.str();
}

class Generator {
public:
  Generator(const test::DrawnGroups &drawn, bool merges)
      : meshes(drawn.meshes), groups(drawn.groups), merges(merges) {}

  std::string run() {
    writeSymbols();
    writeStep();
    return "module @random attributes {stepc.level = \"scheduled\"} {\n" + symbols.str() +
           "  func.func @step() attributes {comm.arena_bytes = " + std::to_string(arena) +
           " : i64} {\n" + body.str() +
           "    comm.advance_steps %steps active %active\n    return\n  }\n}\n";
  }

private:
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
    if (groups[i].source == i)
      writeParameters(i);
    const DrawnGroup &g = groups[i];
    std::vector<std::string> names;
    for (int64_t p = 0; p < g.parameterCount; ++p)
      names.push_back(parameter(g.source, p));
    symbols << "  optim.group @g" << i << " rule @rule" << g.source << " parameters ["
            << join(names) << "]";
    if (!g.group.parts.empty())
      symbols << " parts [" << join(g.group.parts) << "]";
    if (!g.group.reducedPlacements.empty())
      symbols << " reduced " << test::attributeText(g.group.reducedPlacements);
    writeStrategy(g);
    for (int64_t wave = 0; wave < g.waves; ++wave)
      symbols << "  comm.segment @g" << i << "_w" << wave << " group @g" << i
              << (g.waves == 1 ? " all\n" : " blocks [" + join(g.segments[wave]) + "]\n");
  }

  std::string parameter(size_t source, int64_t number) {
    return "@w" + std::to_string(source) + "_" + std::to_string(number);
  }

  void writeStrategy(const DrawnGroup &g) {
    if (g.strategy != "elementwise") {
      const plan::Mesh &mesh = meshes[g.meshIndex];
      std::vector<std::string> factors;
      for (size_t axis = 0; axis < mesh.sizes.size(); ++axis)
        factors.push_back("<" + std::to_string(axis) + ", 1, " + std::to_string(mesh.sizes[axis]) +
                          ">");
      symbols << " strategy #optim." << g.strategy << " hops [";
      if (g.strategy != "local")
        symbols << "#optim.hop<" << (g.strategy == "owner" ? "owned" : "replicated") << " ["
                << join(factors) << "]";
      if (!g.owners.empty())
        symbols << " base [" << join(g.owners) << "]";
      symbols << (g.strategy != "local" ? ">]" : "]");
    }
    symbols << "\n";
  }

  /// Rule, route and parameters.
  void writeParameters(size_t i) {
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
                         "    %k = arith.mulf %q, %l : tensor<?x?xf32>\n"
                       : "    %n = arith.subf %p, %g : tensor<?x?xf32>\n")
            << (hasExtra ? "    %w = arith.negf %v : " + extra + "\n" : "");
    if (matrix)
      symbols << (hasExtra ? "    %b = optim.broadcast %v : " + extra + " to tensor<?x?xf32>\n"
                           : "    %b = arith.negf %k : tensor<?x?xf32>\n")
              << "    %n = arith.subf %k, %b : tensor<?x?xf32>\n";
    symbols << "    optim.yield %n" << (matrix ? ", %l" : "") << (hasExtra ? ", %w" : "") << " : "
            << full << (matrix ? ", tensor<?x?xf32>" : "") << (hasExtra ? ", " + extra : "")
            << "\n  }\n  optim.route @route" << i << " rule @rule" << i
            << " patterns [] except [] defaults [] missing_grad error\n";
    std::string placements = test::attributeText(g.group.placements);
    if (!g.group.gradientPlacements.empty())
      placements += " gradient_placements " + test::attributeText(g.group.gradientPlacements);
    if (!g.group.division.parts.empty()) {
      placements += g.group.division.axis == plan::Division::Rows ? " blocks #optim.blocks<rows"
                                                                  : " blocks #optim.blocks<columns";
      for (const std::vector<plan::Span> &part : g.group.division.parts) {
        std::vector<int64_t> ends;
        for (plan::Span span : part)
          ends.insert(ends.end(), {span.begin, span.end});
        placements += ", [" + join(ends) + "]";
      }
      placements += ">";
    }
    for (int64_t p = 0; p < g.parameterCount; ++p)
      symbols << "  optim.parameter " << parameter(i, p) << " shape [" << join(g.group.shape)
              << "] batch " << g.group.batchAxes
              << (g.group.flatten ? " flatten " + std::to_string(g.group.flatten) : "")
              << " type f32 gradient f32 mesh @mesh" << g.meshIndex << " placements " << placements
              << " aliases [] route @route" << i << "\n";
  }

  //===--- The step -------------------------------------------------------------===//

  std::string name(const char *what) { return "%" + std::string(what) + std::to_string(next++); }

  using Values = std::map<std::string, std::string>; // by kind

  std::string place(size_t i, int64_t wave, const std::string &what) {
    return "<" + segment(i, wave) + ", " + what + ">";
  }
  std::string typeOf(const std::string &value) { return types.at(value); }

  /// A buffer with room for a whole group on one rank, in memory of its own.
  std::string buffer(size_t i, int64_t wave, const std::string &kind, const std::string &stands) {
    const plan::Group &group = groups[i].group;
    int64_t elements = group.blockCount() * group.rows() * group.cols();
    // To the shards, an owner sends an element to every replica.
    int64_t bytes = elements * 4 * int64_t(meshes[groups[i].meshIndex].ranks.size());
    std::string extent = name("n"), value = name("b");
    std::string at = place(i, wave, kind + ", " + stands);
    std::string shape = stands == "blocks" ? batch(i, kind) : "?xf32";
    types[value] = "memref<" + shape + ", #comm.place" + at + ">";
    int64_t offset = arena;
    // A copy of a part of divided matrices has room for what stands between its elements in the shard.
    if (stands == "shards, kept")
      bytes = roomForAll();
    if (stands == "blocks" || stands == "shards, kept") { // it lives while others are made
      arena += (bytes + 63) / 64 * 64;
    } else {
      // What travels together shares a buffer with room for all groups.
      std::string together = collective(i, kind) + std::to_string(wave) + stands;
      auto [found, isNew] = shared.try_emplace(together, arena);
      offset = found->second;
      bytes = roomForAll();
      arena += isNew ? bytes : 0;
    }
    body << "    " << extent << " = comm.extent " << at << "\n    " << value
         << " = comm.buffer offset " << offset << " bytes " << bytes << " (" << extent
         << ") : " << typeOf(value) << "\n";
    return value;
  }

  int64_t roomForAll() {
    int64_t bytes = 0;
    for (const DrawnGroup &g : groups) {
      auto ranks = int64_t(meshes[g.meshIndex].ranks.size());
      // A part of a divided matrix may be a small part of its shard.
      bytes += 16 * ranks * (4 * g.group.blockCount() * g.group.rows() * g.group.cols() + 64);
    }
    return (bytes + 63) / 64 * 64;
  }

  static plan::ValueKind kindNamed(const std::string &word) {
    constexpr auto &all = plan::kNamedKinds;
    return llvm::find_if(all, [&](const auto &one) { return one.first == word; })->second;
  }

  /// The kind of a group's collectives and, where ranks share copies, which do.
  std::string collective(size_t i, const std::string &kind) {
    if (groups[i].strategy != "gather" || merges)
      return "exchange";
    std::string key = "all_gather " + std::to_string(groups[i].meshIndex);
    for (bool axis : geometry::replicatedAxes(groups[i].group, kindNamed(kind)))
      key += axis ? " R" : " S";
    return key;
  }

  /// Values that travel together, by their collective.
  struct Pairs {
    std::vector<std::string> sends, receives;
  };
  using Collectives = std::map<std::string, Pairs>;

  void exchange(const Collectives &collectives) {
    for (auto &[kind, pairs] : collectives) {
      std::string token = name("t");
      auto list = [&](const std::vector<std::string> &values) {
        std::vector<std::string> all;
        for (const std::string &value : values)
          all.push_back(typeOf(value));
        return "(" + join(values) + " : " + join(all) + ")";
      };
      body << "    " << token << " = comm.start " << kind.substr(0, kind.find(' '))
           << " %world order " << order++ << " sends" << list(pairs.sends) << " receives"
           << list(pairs.receives) << "\n    comm.wait " << token << "\n";
    }
  }

  std::string batch(size_t i, const std::string &kind) {
    geometry::View view = geometry::view(groups[i].group, kindNamed(kind));
    return "?x" + std::to_string(view.rows) + "x" + std::to_string(view.cols) + "xf32";
  }

  void writeStep() {
    body << "    %steps = comm.steps\n    %active = comm.active\n    %world = comm.world\n";
    for (size_t i = 0; i < groups.size(); ++i) {
      std::string type = shards(i);
      body << "    %p" << i << " = comm.shards parameter @g" << i << " : " << type << "\n    %d"
           << i << " = comm.shards gradient @g" << i << " : " << gradients(i) << "\n";
      if (groups[i].strategy != "elementwise")
        body << "    %m" << i << " = comm.shards state @g" << i << " \"m\" : " << type << "\n";
      if (!groups[i].stateKind.empty())
        body << "    %v" << i << " = comm.shards state @g" << i << " \"v\" : " << type << "\n";
    }
    for (int64_t wave = 0; wave < 3; ++wave)
      writeWave(wave);
  }

  void writeWave(int64_t wave) {
    Collectives there, back;
    std::vector<size_t> here;
    for (size_t i = 0; i < groups.size(); ++i)
      if (wave < groups[i].waves)
        here.push_back(i);
    std::map<size_t, std::map<std::string, std::string>> arrived, batches;
    for (size_t i : here)
      leave(i, wave, there, arrived[i], batches[i]);
    exchange(there);
    for (size_t i : here)
      compute(i, wave, back, arrived[i], batches[i]);
    exchange(back);
    for (size_t i : here)
      finish(i, wave, arrived[i], batches[i]);
  }

  void pair(Collectives &collectives, size_t i, const std::string &kind, const std::string &send,
            const std::string &receive) {
    Pairs &pairs = collectives[collective(i, kind)];
    pairs.sends.push_back(send);
    pairs.receives.push_back(receive);
  }
  std::string segment(size_t i, int64_t wave) {
    return "@g" + std::to_string(i) + "_w" + std::to_string(wave);
  }
  std::string shards(size_t i) { return "!comm.shards<@g" + std::to_string(i) + ", f32>"; }

  std::string gradients(size_t i) {
    bool apart = !groups[i].group.gradientPlacements.empty();
    return "!comm.shards<@g" + std::to_string(i) + (apart ? ", f32, gradient_shards>" : ", f32>");
  }
  /// The gradient where the parameter stands, and its type.
  std::pair<std::string, std::string> gradient(size_t i, int64_t wave) {
    std::string shards = "%d" + std::to_string(i);
    if (groups[i].group.gradientPlacements.empty())
      return {shards, gradients(i)};
    const plan::Group &group = groups[i].group;
    bool isPartial = !group.reducedPlacements.empty();
    std::string to = plan::name(
        plan::shardsOf(group, isPartial ? plan::ShardsKind::Reduced : plan::ShardsKind::Parameter));
    std::string sent = buffer(i, wave, "full", "gradient_shards to " + to + ", sent");
    std::string received = buffer(i, wave, "full", "gradient_shards to " + to + ", received");
    std::string kept = buffer(i, wave, "full", to + ", kept");
    body << "    comm.copy active %active ins(" << shards << " : " << gradients(i) << ") outs("
         << sent << " : " << typeOf(sent) << ")\n";
    exchange({{"exchange", {{sent}, {received}}}});
    if (!isPartial)
      copy(received, kept);
    else
      body << "    comm.sum by " << plan::contributions(group, meshes[groups[i].meshIndex]).divisor
           << " ins(" << received << " : " << typeOf(received) << ") outs(" << kept << " : "
           << typeOf(kept) << ")\n";
    if (to == "shards")
      return {kept, typeOf(kept)};
    // What was added up in ranges comes back together.
    copy(kept, sent = buffer(i, wave, "full", to + " to shards, sent"));
    received = buffer(i, wave, "full", to + " to shards, received");
    exchange({{"exchange", {{sent}, {received}}}});
    copy(received, kept = buffer(i, wave, "full", "shards, kept"));
    return {kept, typeOf(kept)};
  }

  /// Stages in: %m is written and sent.
  void leave(size_t i, int64_t wave, Collectives &there, Values &arrived, Values &batches) {
    const DrawnGroup &g = groups[i];
    std::string s = segment(i, wave), type = shards(i), id = std::to_string(i);
    if (g.strategy == "elementwise") {
      auto [value, where] = gradient(i, wave);
      body << "    comm.stage " << s << " over shards active %active ins(%p" << id << ", " << value
           << " : " << type << ", " << where << ") writes(%p" << id << " : " << type
           << ") {\n    ^bb0(%a: f32, %b: f32):\n      %c = arith.subf %a, %b : f32\n"
           << "      comm.yield %c : f32\n    }\n";
      return;
    }
    bool local = g.strategy == "local";
    const char *stands = local ? "blocks" : "shards to blocks, sent";
    auto send = [&](const std::string &kind, const std::string &value) {
      if (local)
        batches[kind] = value;
      else
        pair(there, i, kind, value,
             arrived[kind] = buffer(i, wave, kind, "shards to blocks, received"));
    };
    std::string out = buffer(i, wave, "full", stands);
    body << "    comm.stage " << s << " over shards active %active ins(%d" << id << ", %m" << id
         << " : " << type << ", " << type << ") writes(%m" << id << " : " << type << ") outs("
         << out << " : " << typeOf(out)
         << ") {\n    ^bb0(%a: f32, %b: f32):\n      %c = arith.subf %a, %b : f32\n"
         << "      comm.yield %c, %c : f32, f32\n    }\n";
    send("full", out);
    if (g.stateKind.empty())
      return;
    // The stage that finishes reads the state as it was.
    std::string line = lines[{i, wave}] = buffer(i, wave, g.stateKind, "shards, kept");
    body << "    comm.copy active %active ins(%v" << id << " : " << type << ") outs(" << line
         << " : " << typeOf(line) << ")\n";
    std::string state = buffer(i, wave, g.stateKind, stands);
    body << "    comm.copy active %active ins(%v" << id << " : " << type << ") outs(" << state
         << " : " << typeOf(state) << ")\n";
    send(g.stateKind, state);
  }

  void copy(const std::string &from, const std::string &to) {
    body << "    comm.copy ins(" << from << " : " << typeOf(from) << ") outs(" << to << " : "
         << typeOf(to) << ")\n";
  }

  /// Matrix space: a batch of each kind is changed in place, then goes back.
  void compute(size_t i, int64_t wave, Collectives &back, Values &arrived, Values &batches) {
    for (auto &[kind, value] : arrived)
      copy(value, batches[kind] = buffer(i, wave, kind, "blocks"));
    for (auto &[kind, value] : batches)
      body << "    comm.stage " << segment(i, wave) << " over blocks ins(" << value << " : "
           << typeOf(value) << ") outs(" << value << " : " << typeOf(value)
           << ") {\n    ^bb0(%a: f32):\n      %c = arith.negf %a : f32\n      comm.yield %c : f32\n"
           << "    }\n";
    arrived.clear();
    if (groups[i].strategy != "owner")
      return;
    for (auto &[kind, value] : batches) {
      std::string send = buffer(i, wave, kind, "blocks to shards, sent");
      copy(value, send);
      pair(back, i, kind, send,
           arrived[kind] = buffer(i, wave, kind, "blocks to shards, received"));
    }
  }

  /// Stages out, from what arrived or from the blocks themselves.
  void finish(size_t i, int64_t wave, Values &arrived, Values &batches) {
    std::string type = shards(i), id = std::to_string(i);
    for (auto &[kind, inBlocks] : batches) {
      std::string value = groups[i].strategy == "owner" ? arrived[kind] : inBlocks;
      if (kind != "full")
        body << "    comm.copy active %active ins(" << value << " : " << typeOf(value)
             << ") writes(%v" << id << " : " << type << ")\n";
      else
        writeLast(i, wave, value);
    }
  }

  void writeLast(size_t i, int64_t wave, const std::string &value) {
    std::string type = shards(i), id = std::to_string(i), line = lines[{i, wave}];
    bool hasLine = !line.empty();
    body << "    comm.stage " << segment(i, wave) << " over shards active %active ins(%p" << id
         << ", %m" << id << ", " << value << (hasLine ? ", " + line : "") << " : " << type << ", "
         << type << ", " << typeOf(value) << (hasLine ? ", " + typeOf(line) : "") << ") writes(%p"
         << id << " : " << type << ") {\n    ^bb0(%a: f32, %m: f32, %b: f32"
         << (hasLine ? ", %l: f32" : "")
         << "):\n      %c = arith.subf %a, %b : f32\n      %d = arith.mulf %c, %m : f32\n      "
         << (hasLine ? "%e = arith.subf %d, %l : f32\n"
                     : "%l = arith.negf %d : f32\n      %e = arith.subf %d, %l : f32\n")
         << "      comm.yield %e : f32\n    }\n";
  }

  std::map<std::string, std::string> types; // of buffers
  std::map<std::string, int64_t> shared;    // where buffers of what travels together stand
  std::map<std::pair<size_t, int64_t>, std::string> lines; // by group and wave: the state as it was
  const std::vector<plan::Mesh> &meshes;
  const std::vector<DrawnGroup> &groups;
  bool merges; // what is gathered is exchanged, together with all else
  std::ostringstream symbols, body;
  int64_t arena = 0, next = 0, order = 0;
};

} // namespace

std::string test::randomProgram(Random &random, std::map<std::string, int> &histogram) {
  DrawnGroups drawn = drawGroups(random, histogram);
  bool merges = draw(random, 0, 2) == 0;
  histogram["gathers beside other values"] += merges;
  return Generator(drawn, merges).run();
}

//===- Simulation.cpp - Runs a plan's tables on element identities --------===//

#include "test/unit/plan/Scene.h"

namespace stepc::test {

using namespace plan;

namespace {

class Simulator : Scene {
public:
  using Scene::Scene;

  std::string run() {
    if (t.pack >= 0) {
      auto sends = pack(t.pack, false), receives = exchange(t.gather, sends, Distribution::Shards);
      if (pack(t.packCopy, true) != sends)
        fail("copying into the send buffer differs from the stage");
      auto matrices = place(receives);
      checkBlocks(matrices);
      auto back = unplace(matrices), results = exchange(t.scatter, back, Distribution::Blocks);
      unpack(t.unpack, results, false);
      unpack(t.unpackCopy, results, true);
    }
    if (t.in >= 0) {
      auto matrices = direct(t.in, false);
      if (direct(t.inCopy, true) != matrices)
        fail("copying into blocks differs from the stage");
      if (group.hops.empty())
        checkBlocks(matrices);
    }
    if (t.out >= 0) {
      fromBlocks(t.out, false);
      fromBlocks(t.outCopy, true);
    }
    computeChunks();
    untouched();
    return error;
  }

private:
  std::vector<Ids> contents(const std::vector<Buffer> &list) {
    std::vector<Ids> result;
    for (const Buffer &buffer : list)
      result.push_back(buffer.ids);
    return result;
  }

  std::vector<Ids> pack(int64_t index, bool copy) {
    auto sends = buffers(t.packed(Distribution::Shards, End::Sent));
    for (int64_t rank = 0; rank < worldSize(); ++rank) {
      Buffer &send = sends[static_cast<size_t>(rank)];
      auto put = [&](int64_t id, int64_t offset) {
        if (id < 0 || !send.write(offset, id))
          fail("an element of a send buffer is written twice or lies outside", rank);
      };
      if (copy)
        eachCopy(rank, index, [&](int64_t source, int64_t target, int64_t parameter) {
          Buffer *local = shard(rank, parameter);
          put(local && local->has(source) ? local->ids[static_cast<size_t>(source)] : -1, target);
        });
      else
        eachElement(rank, index, [&](int64_t id, int64_t offset) {
          if (offset >= 0)
            put(id, offset);
        });
      if (!send.full())
        fail("a send buffer is not filled", rank);
    }
    return contents(sends);
  }

  std::vector<Ids> exchange(int64_t index, const std::vector<Ids> &sends, Distribution from) {
    auto receives = buffers(t.packed(from, End::Received));
    std::vector<Buffer> sources;
    for (const Ids &ids : sends)
      sources.push_back(Buffer::of(ids));
    for (int64_t rank = 0; rank < worldSize(); ++rank) {
      int64_t before = -1;
      for (const Message &m : table(rank, index).messages) {
        if (m.peer <= before || m.peer >= worldSize() ||
            (m.sendCount == 0 && m.receiveCount == 0)) {
          fail("peers do not ascend, or a message is empty", rank);
          return contents(receives);
        }
        before = m.peer;
        int64_t sent = 0, first = 0;
        for (const Message &other : table(m.peer, index).messages)
          if (other.peer == rank) {
            sent = other.sendCount;
            first = other.sendOffset;
          }
        Buffer &source = sources[static_cast<size_t>(m.peer)];
        if (sent != m.receiveCount) {
          fail("a send and its receive differ", rank);
          return contents(receives);
        }
        for (int64_t i = 0; i < sent; ++i)
          if (!receives[static_cast<size_t>(rank)].write(m.receiveOffset + i,
                                                         source.read(first + i)))
            fail("an element of a receive buffer is written twice or lies "
                 "outside",
                 rank);
        // The mirror: what this rank sends is expected there.
        int64_t expected = 0;
        for (const Message &other : table(m.peer, index).messages)
          expected += other.peer == rank ? other.receiveCount : 0;
        if (expected != m.sendCount)
          fail("a send has no receive", rank);
      }
      if (!receives[static_cast<size_t>(rank)].full())
        fail("a receive buffer is not filled", rank);
    }
    // Replicas get equal elements, so that contents alone would not tell.
    if (!group.hops[0].owned.empty() || from == Distribution::Blocks)
      for (const Buffer &source : sources)
        if (!source.readOnce())
          fail("an element is not sent once");
    return contents(receives);
  }

  std::vector<Ids> move(int64_t index, const std::vector<Ids> &from, const Place &to) {
    auto targets = buffers(to);
    for (int64_t rank = 0; rank < worldSize(); ++rank) {
      Buffer source = Buffer::of(from[static_cast<size_t>(rank)]);
      eachCopy(rank, index, [&](int64_t s, int64_t target, int64_t) {
        int64_t id = source.read(s);
        if (id < 0 || !targets[static_cast<size_t>(rank)].write(target, id))
          fail("a copy reads outside, or writes twice or outside", rank);
      });
      // A result goes to all replicas: there the source is read more than once.
      if (!to.isPacked() && !source.readOnce())
        fail("an element that was received is not used once", rank);
      if (!targets[static_cast<size_t>(rank)].full())
        fail("a buffer is not filled", rank);
    }
    return contents(targets);
  }
  std::vector<Ids> place(const std::vector<Ids> &receives) {
    return move(t.place, receives, t.blocks());
  }
  std::vector<Ids> unplace(const std::vector<Ids> &matrices) {
    return move(t.unplace, matrices, t.packed(Distribution::Blocks, End::Sent));
  }

  Ids expectedBlocks(int64_t rank) {
    Ids result;
    for (int64_t block : computed[static_cast<size_t>(rank)])
      for (int64_t i = 0; i < size.rows * size.cols; ++i)
        result.push_back(identity(block, 0, 0) + i);
    return result;
  }
  void checkBlocks(const std::vector<Ids> &matrices) {
    for (int64_t rank = 0; rank < worldSize(); ++rank)
      if (matrices[static_cast<size_t>(rank)] != expectedBlocks(rank))
        fail("a computed block holds other elements than its own", rank);
  }

  void unpack(int64_t index, const std::vector<Ids> &receives, bool copy) {
    for (int64_t rank = 0; rank < worldSize(); ++rank)
      toShards(rank, index, receives[static_cast<size_t>(rank)], copy, true);
  }
  void fromBlocks(int64_t index, bool copy) {
    for (int64_t rank = 0; rank < worldSize(); ++rank)
      toShards(rank, index, expectedBlocks(rank), copy, false);
  }
  /// Results go into the shards: every element of the segment's blocks, once,
  /// the right one.
  void toShards(int64_t rank, int64_t index, const Ids &from, bool copy, bool allRead) {
    Buffer source = Buffer::of(from);
    if (copy) {
      std::vector<Buffer> targets;
      for (const Ids &ids : wanted[static_cast<size_t>(rank)])
        targets.emplace_back(static_cast<int64_t>(ids.size()));
      eachCopy(rank, index, [&](int64_t s, int64_t target, int64_t parameter) {
        Buffer *known = shard(rank, parameter);
        int64_t id = source.read(s);
        if (!known || id < 0 ||
            !targets[static_cast<size_t>(known - shards[static_cast<size_t>(rank)].data())].write(
                target, id))
          fail("a result is written twice or outside of a shard", rank);
      });
      for (size_t p = 0; p < targets.size(); ++p)
        if (targets[p].ids != wanted[static_cast<size_t>(rank)][p])
          fail("a shard did not get its results", rank);
    } else {
      eachElement(rank, index, [&](int64_t id, int64_t offset) {
        if (source.read(offset) != id)
          fail("a stage reads another element's result", rank);
      });
    }
    if (allRead && !source.readOnce())
      fail("a result that was received is not used once", rank);
  }

  /// Local shards into blocks.
  std::vector<Ids> direct(int64_t index, bool copy) {
    auto targets = buffers(t.blocks());
    for (int64_t rank = 0; rank < worldSize(); ++rank) {
      Buffer &target = targets[static_cast<size_t>(rank)];
      if (copy)
        eachCopy(rank, index, [&](int64_t s, int64_t offset, int64_t parameter) {
          Buffer *local = shard(rank, parameter);
          int64_t id = local && local->has(s) ? local->ids[static_cast<size_t>(s)] : -1;
          if (id < 0 || !target.write(offset, id))
            fail("a copy into blocks is wrong", rank);
        });
      else
        eachElement(rank, index, [&](int64_t id, int64_t offset) {
          if (offset >= 0 && !target.write(offset, id))
            fail("a stage writes a block twice or outside", rank);
        });
    }
    return contents(targets);
  }

  void computeChunks() {
    for (int64_t rank = 0; t.compute >= 0 && rank < worldSize(); ++rank) {
      Buffer target(query.elements(t.blocks(), rank));
      const Ids &mine = computed[static_cast<size_t>(rank)];
      if (table(rank, t.compute).blocks != static_cast<int64_t>(mine.size()))
        fail("the count of computed blocks differs", rank);
      for (const Chunk &c : table(rank, t.compute).chunks) {
        if (c.perBlock < 0 || c.perBlock >= static_cast<int64_t>(mine.size()) ||
            mine[static_cast<size_t>(c.perBlock)] != c.block || c.col != 0 || c.cols != size.cols ||
            (c.rows > 1 && c.rows * c.cols > kChunkElements) ||
            group.parameters[static_cast<size_t>(c.block / group.blocksPerParameter())] !=
                c.parameter)
          return fail("a row over blocks is ill-formed", rank);
        for (int64_t i = 0; i < c.rows; ++i)
          for (int64_t j = 0; j < c.cols; ++j)
            if (!target.write(c.staged + i * c.stagedStride + j,
                              identity(c.block, c.row + i, c.col + j)))
              fail("rows over blocks overlap", rank);
      }
      if (target.ids != expectedBlocks(rank))
        fail("rows over blocks do not cover them", rank);
    }
  }

  void untouched() {
    for (int64_t index : {t.untouched, t.lines})
      for (int64_t rank = 0; index >= 0 && rank < worldSize(); ++rank)
        eachElement(rank, index, [&](int64_t, int64_t offset) {
          if (offset < 0)
            fail("a stage without staged operands has an absent one", rank);
        });
  }
};

} // namespace

std::string simulate(const Plan &plan, const std::vector<RankTables> &ranks,
                     const ValueTables &tables) {
  return Simulator(plan, ranks, tables).run();
}

} // namespace stepc::test

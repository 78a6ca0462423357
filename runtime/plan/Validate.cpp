//===- Validate.cpp - What makes a plan safe to expand -------------------===//
//
// The compiler calls this, because it may be wrong and may be given an edited text. A plan that passes can
// be expanded without an index out of range and without overflow. The size of its tables follows the size
// of the model. A library compares its plan with a hash and does not call this.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/Validate.h"
#include "runtime/geometry/Geometry.h"
#include "runtime/plan/Checks.h"
#include "runtime/plan/Parcels.h"

#include <algorithm>
#include <tuple>

namespace stepc::plan {

namespace {

constexpr int64_t kMaxMessage = int64_t(1) << 62; // bytes that a start moves for all ranks

class Validator {
public:
  Validator(const Plan &plan, int64_t &wrongGroup) : plan(plan), wrongGroup(wrongGroup) {}

  Check run() {
    for (auto [what, found, least, most] :
         {std::tuple("bytes of workspace", plan.arenaBytes, 0, kMostArenaBytes),
          std::tuple("elements in a row of a table", plan.chunkElements, 1, kMostChunkElements),
          std::tuple("bytes of scratch", plan.scratchBytes, 0, kMostArenaBytes)})
      if (found < least || found > most)
        return "expected " + std::to_string(least) + " to " + std::to_string(most) + " " + what +
               ", found " + std::to_string(found);
    if (plan.numerics != "exact" && plan.numerics != "fast")
      return "expected exact or fast numerics, found '" + plan.numerics + "'";
    Check error = validateModel(plan, wrongGroup);
    each(error, *this, "segment", plan.segments, &Validator::segment);
    each(error, *this, "table", plan.tables, &Validator::table);
    each(error, *this, "command", plan.commands, &Validator::command);
    each(error, *this, "pool", plan.pools, &Validator::pool);
    return error;
  }

private:
  Check segment(const Segment &segment, int64_t) {
    if (!inside(segment.group, plan.groups))
      return outside("group", segment.group, plan.groups);
    if (segment.all)
      return segment.blocks.empty() ? Check()
                                    : "expected no list beside all blocks, found one of " +
                                          std::to_string(segment.blocks.size());
    int64_t count = at(plan.groups, segment.group).blockCount();
    std::vector<int64_t> sorted = segment.blocks;
    std::sort(sorted.begin(), sorted.end());
    if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
      return "expected distinct blocks, found block " + std::to_string(*twice) + " twice";
    if (!sorted.empty() && (sorted.front() < 0 || sorted.back() >= count))
      return "expected blocks below " + std::to_string(count) + ", found " +
             std::to_string(sorted.front() < 0 ? sorted.front() : sorted.back());
    return {};
  }

  Check place(const Place &place) {
    if (!isKnown(place.value))
      return "expected extents of a value between 1 and 2^40, or of its block, found " +
             std::to_string(place.value.rows) + " and " + std::to_string(place.value.cols);
    if (!isKnown(place.end))
      return unknown("an end of a move", place.end);
    if (!inside(place.segment, plan.segments))
      return outside("segment", place.segment, plan.segments);
    const Group &group = at(plan.groups, at(plan.segments, place.segment).group);
    // Only full values have one block per parameter if axes are joined. All other kinds keep the blocks of
    // before.
    if (group.joined > 0 && place.value != ValueKind::Full &&
        place.from != Distribution::ModelParts)
      return "expected full values where axes are joined, found " + name(place.value);
    if (Check wrong = place.value.isStored() ? Check() : checkValue(group, place.value);
        !wrong.empty())
      return wrong;
    for (const Distribution &each : {place.from, place.to}) {
      if (!isKnown(each.kind))
        return unknown("a distribution", each.kind);
      bool between = each.kind == Distribution::Pieces;
      if (each.hop < 0 || each.hop >= (between ? static_cast<int64_t>(group.hops.size()) - 1 : 1))
        return "expected a hop before the last one, found hop " + std::to_string(each.hop);
      if (between && !place.isMoving())
        return "expected nothing at rest between hops, found a value in " + name(each);
    }
    if (Check wrong = summed(place, group); !wrong.empty())
      return wrong;
    if (Check wrong = ofLines(place, group); !wrong.empty())
      return wrong;
    if (Check wrong = ofBlocks(place, group); !wrong.empty())
      return wrong;
    bool ofModel = place.from == Distribution::ModelParts;
    if ((ofModel || place.to == Distribution::ModelParts) &&
        (!ofModel || place.end != End::Kept || place.value != ValueKind::One))
      return "expected the parts of a model's number to be kept, found " + describe(place);
    if (place.isMoving() == (place.from == place.to))
      return "expected two distributions of a move, and one of what is at rest, found " +
             name(place.from) + " and " + name(place.to);
    int64_t from = place.from.level(group), to = place.to.level(group);
    for (; place.isMoving() && from < to; ++from)
      if (chooses(group.hops, static_cast<size_t>(from)))
        return "expected a move by hops that bring something together, found one by hop " +
               std::to_string(from) + ", which chooses";
    if (place.end == End::Kept && !place.from.isShards() && place.from != Distribution::Ranges &&
        !ofModel)
      return "expected a copy of shards, found one in " + name(place.from);
    return checkShards(plan, place);
  }

  /// Checks places of parts and ranges. A team adds up only values of kind one or gram.
  static Check summed(const Place &place, const Group &group) {
    bool isSummed = place.from.isSummed() || place.to.isSummed();
    bool isSmall = place.value == ValueKind::One || place.value == ValueKind::Gram;
    bool adds = place.from == Distribution::Parts && place.to == Distribution::Ranges;
    bool gathers = place.from == Distribution::Ranges && place.to == Distribution::Blocks;
    bool fits = place.isMoving()                    ? adds || gathers
                : place.from == Distribution::Parts ? place.end == End::Rest
                                                    : place.end == End::Kept;
    if (isSummed && (group.slabs.factors.empty() || !isSmall || !fits))
      return "expected parts of one or gram values of a group with slabs, to be added up in ranges "
             "for its blocks, found " +
             describe(place);
    if (!place.value.isStored() && !isSummed && !place.isResting(Distribution::Blocks) &&
        !place.isResting(Distribution::StateBlocks))
      return "expected values of shards to travel, and all others in blocks, found " +
             describe(place);
    return {};
  }

  /// Checks places of parts and sums of lines. Stages run over the states' shards there.
  Check ofLines(const Place &place, const Group &group) const {
    if (!place.from.isOfLines() && !place.to.isOfLines())
      return {};
    Distribution start = home(group, at(plan.rules, group.rule));
    bool fits = !place.isMoving() ? place.end == End::Kept
                : place.from == Distribution::LineParts
                    ? place.to == Distribution::LineSums
                    : place.from.isOfLines() && place.to == start;
    if (!fits || start != shardsOf(group, ShardsKind::State))
      return "expected parts of lines of the states' shards, to be added up in line_sums for these "
             "shards, found " +
             describe(place);
    // A number of the whole model is added up in this way on any number of ranks.
    return geometry::checkLines(group, at(plan.meshes, group.mesh), place.value,
                                /*mayBeWhole=*/plan.isOfModel(group));
  }

  /// Checks places of states that stay with blocks. They lie in memory that the trainer has bound.
  Check ofBlocks(const Place &place, const Group &group) const {
    if (place.from != Distribution::StateBlocks && place.to != Distribution::StateBlocks)
      return {};
    const std::vector<State> &states = at(plan.rules, group.rule).states;
    bool isOfState =
        std::any_of(group.blockStates.begin(), group.blockStates.end(),
                    [&](int64_t state) { return at(states, state).kind == place.value; });
    return isOfState && place.isBound()
               ? Check()
               : "expected a bound state that stays with blocks, found " + describe(place);
  }

  static Check found(const Table &table) {
    return ", found " + describe(table.from) + " and " + describe(table.to);
  }
  static Check describe(const Place &place) {
    static constexpr const char *ends[] = {"", ", sent", ", received", ", kept"};
    return std::string(name(place.value)) + " (" + name(place.from) +
           (place.from == place.to ? "" : " to " + name(place.to)) +
           ends[static_cast<size_t>(place.end)] + ")";
  }

  /// Whether all hops between what arrived and where it is copied choose. True if there are no such hops.
  bool isChoice(const Table &table) {
    const Group &group = at(plan.groups, at(plan.segments, table.from.segment).group);
    int64_t level = table.from.standsIn().level(group), end = table.to.standsIn().level(group);
    bool all = true;
    for (; table.from.end == End::Received && level < end; ++level)
      all = all && chooses(group.hops, static_cast<size_t>(level));
    return all;
  }

  Check table(const Table &table, int64_t) {
    for (const Place &each : {table.from, table.to})
      if (Check message = place(each); !message.empty())
        return message;
    bool moves = table.kind == TableKind::Copy || table.kind == TableKind::Message ||
                 table.kind == TableKind::Sum || table.kind == TableKind::Collect;
    if (Check bytes = expectedBytes(table.kind, table.from.from, table.elementBytes);
        moves && !bytes.empty())
      return "expected " + bytes + " bytes per element, found " +
             std::to_string(table.elementBytes);
    switch (table.kind) {
    case TableKind::ShardChunks:
    case TableKind::LineChunks:
    case TableKind::RectangleChunks:
    case TableKind::WholeRows:
    case TableKind::WholeColumns:
    case TableKind::PartRows:
    case TableKind::PartColumns:
    case TableKind::PartBlocks:
    case TableKind::PartModel:
      if (!table.from.isBound() || table.from.from == Distribution::StateBlocks)
        return "expected shards to be walked" + found(table);
      if (table.reducesParts()) {
        if (Check wrong = place(table.reduced()); !wrong.empty())
          return wrong;
        const Group &group = at(plan.groups, at(plan.segments, table.from.segment).group);
        const Rule &rule = at(plan.rules, group.rule);
        Distribution start = table.kind == TableKind::PartModel
                                 ? modelShards(group, rule, at(plan.meshes, group.mesh))
                                 : home(group, rule);
        if (table.from.from != start)
          return "expected parts of lines of the shards over which stages run" + found(table);
      }
      if (table.reduces() && table.from.value != ValueKind::Full)
        return "expected full values to be reduced" + found(table);
      return table.to == table.from || table.to.isAddressableFrom(table.from)
                 ? Check()
                 : "expected staged operands where a rank's shards lead" + found(table);
    case TableKind::Collect:
      return table.from.from == Distribution::ModelParts && table.to == table.from
                 ? Check()
                 : "expected the parts of a model's number to be collected" + found(table);
    case TableKind::BlockChunks:
      return table.from.isResting(Distribution::Blocks) && table.to == table.from
                 ? Check()
                 : "expected computed blocks to be walked" + found(table);
    case TableKind::Copy:
      return table.from.copiesTo(table.to) && !table.from.sumsTo(plan, table.to) && isChoice(table)
                 ? Check()
                 : "expected places between which one rank copies a value" + found(table);
    case TableKind::Message:
      return table.from.travelsTo(table.to) ? Check()
                                            : "expected the two ends of one move" + found(table);
    case TableKind::Sum:
      return table.from.sumsTo(plan, table.to)
                 ? Check()
                 : "expected contributions of a partial gradient that arrived, and a copy where "
                   "they are added up" +
                       found(table);
    }
    return unknown("a kind of table", table.kind);
  }

  /// Starts are expanded, so they are checked here. validateProgram checks the rest of the program.
  Check command(const Command &command, int64_t) {
    const auto *start = std::get_if<Start>(&command);
    return start ? this->start(*start) : Check();
  }

  Check start(const Start &start) {
    // The bound assumes that each element of a group goes to every rank of its mesh.
    int64_t bytes = 0;
    for (int64_t index : start.tables) {
      if (!inside(index, plan.tables))
        return outside("table", index, plan.tables);
      if (at(plan.tables, index).kind != TableKind::Message)
        return "expected tables of messages, found table " + std::to_string(index) +
               " of another kind";
      if (start.collective == CollectiveKind::AllGather &&
          !gatherTogether(plan, at(plan.tables, start.tables[0]).from, at(plan.tables, index).from))
        return "expected an all-gather of values of which the same ranks share copies, found "
               "others in table " +
               std::to_string(index);
      const Table &table = at(plan.tables, index);
      const Group &moved = at(plan.groups, at(plan.segments, table.from.segment).group);
      View view = plan::view(moved, ValueKind::Full);
      int64_t most = product(moved.blockCount(), view.rows * view.cols, kMaxElements);
      most = product(most, static_cast<int64_t>(at(plan.meshes, moved.mesh).ranks.size()),
                     kMaxMessage);
      bytes += product(most, table.elementBytes, kMaxMessage - bytes);
      if (bytes > kMaxMessage)
        return "expected at most " + std::to_string(kMaxMessage) +
               " bytes for all ranks, found more";
    }
    return {};
  }

  Check pool(const Pool &pool, int64_t) {
    if (pool.offset < 0 || pool.offset % kAlignment || pool.bytes < 0 ||
        pool.offset > kMostArenaBytes || pool.bytes > kMostArenaBytes)
      return "expected a pool at a multiple of " + std::to_string(kAlignment) + " bytes, found " +
             std::to_string(pool.bytes) + " bytes from byte " + std::to_string(pool.offset);
    for (const Pool::Batch &member : pool.members) {
      if (!inside(member.segment, plan.segments))
        return outside("segment", member.segment, plan.segments);
      if (member.blockBytes < 0 || member.blockBytes > kMostArenaBytes)
        return "expected blocks of no more bytes than a workspace, found " +
               std::to_string(member.blockBytes);
    }
    return {};
  }

  const Plan &plan;
  int64_t &wrongGroup;
};

} // namespace

std::string validate(const Plan &plan, int64_t &wrongGroup) {
  return Validator(plan, wrongGroup).run();
}

std::string validate(const Plan &plan) {
  int64_t wrongGroup = -1;
  return validate(plan, wrongGroup);
}

} // namespace stepc::plan

//===- GroupGeometry.cpp - A group's geometry and modelled cost ------------===//

#include "passes/decide/GroupGeometry.h"
#include "passes/decide/MatrixWork.h"

#include "passes/cost/ScratchBound.h"

#include <map>

using namespace mlir;
using namespace stepc;
using namespace stepc::decide;
using namespace stepc::optim;

GroupGeometry::GroupGeometry(GroupOp op) : parameters(op.getParameters().size()) {
  ParameterOp p = op.getExemplar();
  mesh = optim::toPlan(lookupMesh(op, p.getMeshAttr()));
  group = op.toPlan();
  group.hops = op.getPlanHops();
  group.parameters = {0};
  auto rule = SymbolTable::lookupNearestSymbolFrom<RuleOp>(op, op.getRuleAttr());
  home = plan::home(group, optim::toPlan(rule)).whose();
  areas = geometry::heldElements(group, mesh, home);
}

double GroupGeometry::mostBlocks() const {
  int64_t most = 0;
  for (ArrayRef<int64_t> area : areas)
    most = std::max<int64_t>(most, llvm::count_if(area, [](int64_t held) { return held > 0; }));
  return double(most) * double(parameters);
}

int64_t GroupGeometry::firstHolder(int64_t block) const {
  for (auto [position, area] : llvm::enumerate(areas))
    if (area[block] > 0)
      return position;
  return 0;
}

std::vector<Team> decide::teams(const GroupGeometry &geometry, ArrayRef<plan::Hop> hops) {
  std::vector<plan::Factor> factors = plan::resolvedFactors(hops.vec(), hops.size());
  std::map<int64_t, Team> byFirst;
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    Team &team = byFirst[position - plan::along(geometry.mesh, factors, position)];
    team.positions.push_back(position);
    team.computes.resize(geometry.blocksPerParameter());
    for (auto [block, area] : llvm::enumerate(geometry.heldByBlock(position)))
      team.computes[block] = team.computes[block] || area > 0;
  }
  std::vector<Team> result;
  for (auto &[first, team] : byFirst)
    result.push_back(std::move(team));
  return result;
}

Bases::Bases(const GroupGeometry &geometry) : mesh(geometry.mesh) {
  for (const plan::Hop &hop : geometry.group.hops) {
    owned.insert(owned.end(), hop.owned.begin(), hop.owned.end());
    of.resize(std::max(of.size(), hop.base.size()));
    for (auto [sum, base] : llvm::zip(of, hop.base))
      sum += plan::along(mesh, hop.owned, base);
  }
}

/// Summed over all ranks: the elements of a rank's shards by the list `to` that are not in its shards by
/// `from`.
static double lacking(const GroupGeometry &geometry, plan::ShardsKind from, plan::ShardsKind to) {
  double elements = 0;
  auto shards = [&](int64_t position, plan::ShardsKind of) {
    return geometry::rectangles(geometry.group, geometry.mesh, position, plan::ValueKind::Full, of);
  };
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    std::vector<geometry::Rect> own = shards(position, from);
    for (const geometry::Rect &wanted : shards(position, to)) {
      elements += double(wanted.rows * wanted.cols);
      auto first = llvm::partition_point(
          own, [&](const geometry::Rect &rect) { return rect.block < wanted.block; });
      for (; first != own.end() && first->block == wanted.block; ++first) {
        int64_t rows = std::min(first->row + first->rows, wanted.row + wanted.rows) -
                       std::max(first->row, wanted.row);
        int64_t cols = std::min(first->col + first->cols, wanted.col + wanted.cols) -
                       std::max(first->col, wanted.col);
        elements -= double(std::max<int64_t>(rows, 0) * std::max<int64_t>(cols, 0));
      }
    }
  }
  return elements;
}

/// Whether an operation of the space `in` or `matrix` reads the value, directly or through operations without
/// a space.
static bool isReadBeforeOut(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (std::optional<Space> space = spaceOf(user))
      return *space != Space::Out;
    return user->getNumResults() > 0 && isReadBeforeOut(user->getResult(0));
  });
}

int64_t decide::mostElements(const GroupGeometry &geometry, plan::ShardsKind of) {
  int64_t most = 0;
  for (int64_t position = 0, e = geometry.mesh.ranks.size(); position < e; ++position) {
    int64_t held = 0;
    for (const geometry::Rect &rect :
         geometry::rectangles(geometry.group, geometry.mesh, position, plan::ValueKind::Full, of))
      held += rect.rows * rect.cols;
    most = std::max(most, held);
  }
  return saturatingMul(most, geometry.parameters);
}

std::vector<ListMove> decide::listMoves(const GroupGeometry &geometry, RuleOp rule) {
  using plan::ShardsKind;
  const plan::Group &group = geometry.group;
  std::vector<ListMove> moves;
  std::map<ShardsKind, int64_t> known;
  auto most = [&](ShardsKind of) {
    auto [found, isNew] = known.try_emplace(of, 0);
    if (isNew)
      found->second = mostElements(geometry, of);
    return found->second;
  };
  auto add = [&](bool behind, ShardsKind from, ShardsKind to, plan::DType type) {
    if (plan::shardsOf(group, from) == plan::shardsOf(group, to))
      return;
    int64_t size = plan::byteSize(type), copy = saturatingMul(most(geometry.home), size);
    if (geometry::holdsAll(group, geometry.mesh, from, to)) {
      moves.push_back({behind, 0, 0, copy});
      return;
    }
    int64_t room = saturatingAdd(copy, saturatingMul(saturatingAdd(most(from), most(to)), size));
    double pieces = 1;
    std::vector<bool> copied = geometry::replicatedAxes(group, plan::ValueKind::Full, from);
    for (auto [ranks, isCopied] : llvm::zip(geometry.mesh.sizes, copied))
      pieces *= isCopied ? 1 : double(ranks);
    double elements = lacking(geometry, from, to) / double(geometry.mesh.ranks.size());
    moves.push_back(
        {behind, pieces - 1, double(geometry.parameters) * elements * double(size), room});
  };
  // For each element that a rank adds up, it receives the contributions of all other ranks.
  auto addContributions = [&] {
    plan::Contributions all = plan::contributions(group, geometry.mesh);
    int64_t size = plan::byteSize(group.gradientType);
    int64_t reduced = most(ShardsKind::Reduced);
    int64_t room = saturatingMul(saturatingAdd(saturatingAdd(most(ShardsKind::Gradient), reduced),
                                               saturatingMul(reduced, all.count)),
                                 size);
    moves.push_back({false, double(all.count - 1),
                     double(reduced) * double(all.count - 1) * double(size), room,
                     saturatingMul(reduced, size)});
  };
  if (!group.reducedPlacements.empty())
    addContributions();
  bool hasMaster = llvm::any_of(optim::toPlan(rule).states, [&](const plan::State &state) {
    return state.master && plan::stateExists(group, state);
  });
  size_t contributions = moves.size();
  add(false, ShardsKind::Reduced, geometry.home, group.gradientType);
  bool comesGradient = moves.size() > contributions && moves.back().bytes > 0;
  if (!hasMaster) {
    bool isEarly = !hasMatrixSpace(rule) || isReadBeforeOut(rule.getParameterArgument());
    size_t before = moves.size();
    add(!isEarly, ShardsKind::Parameter, geometry.home, group.parameterType);
    // Gradient and parameter that one stage reads come in one exchange.
    if (isEarly && comesGradient && moves.size() > before && moves.back().bytes > 0) {
      ListMove parameter = moves.back();
      moves.pop_back();
      ListMove &both = moves.back();
      both.peers = std::max(both.peers, parameter.peers);
      both.bytes += parameter.bytes;
      both.room = saturatingAdd(both.room, parameter.room);
    }
  }
  add(true, geometry.home, ShardsKind::Parameter, group.parameterType);
  return moves;
}

bool decide::hasMatrixSpace(RuleOp rule) {
  return rule.hasStatesOfOtherSizes() || llvm::is_contained(writesOf(rule), Space::Matrix) ||
         llvm::any_of(rule.getBody().front(),
                      [](Operation &op) { return spaceOf(&op) == Space::Matrix; });
}

llvm::SmallVector<plan::ValueKind> decide::lineKinds(RuleOp rule) {
  llvm::SmallVector<plan::ValueKind> kinds;
  auto add = [&](ArrayRef<Value> read) {
    for (Value value : read)
      if (plan::ValueKind kind = kindOf(value.getType()).value_or(ValueKind::Full);
          value.getDefiningOp() && kind != ValueKind::Full && !llvm::is_contained(kinds, kind))
        kinds.push_back(kind);
  };
  Block &body = rule.getBody().front();
  for (Operation &op : body)
    if (spaceOf(&op) == Space::Out)
      add(placedOperands(&op));
  for (auto [value, write] : llvm::zip(body.getTerminator()->getOperands(), writesOf(rule)))
    if (write == Space::Out)
      add(placedOperands(value));
  return kinds;
}

double decide::modelledOperations(const MatrixWork &work, int64_t rows, int64_t cols,
                                  const cost::Device &device) {
  double operations = 16 * double(rows) * double(cols);
  for (const MatrixStep &step : work.steps)
    operations += step.isProduct ? device.operations(step.shape) : double(step.flops);
  return operations;
}

BlockBytes decide::modelledBytes(RuleOp rule, const MatrixExtents &block) {
  MatrixWork work(rule, block);
  BlockBytes bytes{work.sourceBytes, 0, work.scratch()};
  bytes.chain = work.chain;
  for (const MatrixStep &step : work.steps)
    bytes.work = std::max(bytes.work, saturatingMul(step.bytes, step.elements));
  if (!work.multiplies())
    bytes.work = 8 * block.rows * block.cols;
  return bytes;
}

BlockBytes decide::modelledSlabBytes(RuleOp rule, const GroupGeometry &geometry) {
  const plan::Group &group = geometry.group;
  // If all ranks along the factors have slabs of the same blocks, the sums are gathered from where they are.
  // Otherwise they are exchanged, and a rank packs its sums once more.
  bool isOfAll = geometry::haveSameSlabs(group, geometry.mesh, group.slabs, geometry.home);
  MatrixExtents extents(group);
  MatrixWork work(rule, group);
  BlockBytes bytes{work.sourceBytes, 8 * extents.rows * extents.cols, work.scratch()};
  if (!work.multiplies())
    return bytes;
  int64_t most = 0, summed = 0, size = 0;
  for (const MatrixStep &step : work.steps) {
    most = std::max(most, saturatingMul(step.bytes, step.elements));
    summed = std::max(summed, step.summed());
    size = step.isProduct ? step.bytes : size;
  }
  // While sums travel: the iterate, a sent and a received matrix (or the matrix unpacked from it). While
  // ranges are added up, also the sums of a range.
  bytes.resting = size * extents.rows * extents.cols + 8 * summed;
  int64_t sums = bytes.resting + (isOfAll ? 4 : 8) * summed / plan::slabsPerBlock(group);
  bytes.work = std::max(saturatingAdd(most, size * summed), sums);
  return bytes;
}

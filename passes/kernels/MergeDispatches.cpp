//===- MergeDispatches.cpp - One dispatch for all groups of a kernel -------===//
//
// A kernel over chunks or parameters knows no group. So dispatches of one kernel become one if no command
// between them shares memory with them. This is conservative: two operations share memory if their parts of
// the workspace overlap, or if they use shards of one group.
//
//===----------------------------------------------------------------------===//

#include "dialects/exec/Exec.h"
#include "passes/kernels/Passes.h"

namespace stepc::kernels {
#define GEN_PASS_DEF_MERGEDISPATCHES
#include "passes/kernels/Passes.h.inc"

namespace {
using namespace mlir;

/// A dispatch, with the dispatches that joined it.
struct Dispatch {
  Operation *op;
  SmallVector<Attribute> of;   // tables or groups
  SmallVector<Attribute> args; // of each table or group in turn
  struct Range {
    int64_t first, end;             ///< bytes of the workspace
    exec::WorkspaceAttr place = {}; ///< null for scalars
    bool isRead = false;            ///< and not written
  };
  SmallVector<Range> ranges;
  llvm::SmallDenseSet<Attribute> shards; // groups
  SmallVector<Location, 0> locations;    // of the dispatches that joined it

  size_t each() const { return args.size() / of.size(); }

  bool touches(const Dispatch &other) const {
    if (llvm::any_of(shards, [&](Attribute group) { return other.shards.contains(group); }))
      return true;
    return llvm::any_of(ranges, [&](auto a) {
      return llvm::any_of(other.ranges, [&](auto b) { return areShared(a, b); });
    });
  }
  static bool areShared(const Range &a, const Range &b) {
    bool apart = (a.place && b.place && a.place.standsBeside(b.place)) || (a.isRead && b.isRead);
    return a.first < b.end && b.first < a.end && !apart;
  }

  /// Whether one dispatch can do both: their kernels are the same, operands are of the same kinds, and
  /// operands that are shards are equal.
  bool fits(const Dispatch &other) const {
    if (op->getName() != other.op->getName() ||
        op->getAttr("kernel") != other.op->getAttr("kernel") || each() != other.each())
      return false;
    auto kindOf = [](Attribute of) {
      auto table = dyn_cast<exec::TableAttr>(of);
      return table ? std::optional(table.getKind()) : std::nullopt;
    };
    if (kindOf(of.front()) != kindOf(other.of.front()))
      return false;
    return llvm::all_of(llvm::zip(ArrayRef(args).take_front(each()), other.args), [](auto pair) {
      return exec::areAlike(std::get<0>(pair), std::get<1>(pair));
    });
  }

  void join(const Dispatch &other) {
    locations.push_back(other.op->getLoc());
    llvm::append_range(of, other.of);
    llvm::append_range(args, other.args);
    llvm::append_range(ranges, other.ranges);
    shards.insert(other.shards.begin(), other.shards.end());
  }
};

struct MergeDispatches : impl::MergeDispatchesBase<MergeDispatches> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto group : module.getOps<optim::GroupOp>())
      parametersOf[FlatSymbolRefAttr::get(group)] = int64_t(group.getParameters().size());
    for (auto segment : module.getOps<comm::SegmentOp>())
      groupOf[FlatSymbolRefAttr::get(segment)] = segment.getGroupAttr();
    for (auto program : module.getOps<exec::ProgramOp>())
      merge(program);
  }

  void merge(exec::ProgramOp program) {
    SmallVector<Dispatch> run; // dispatches since the last other command
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
      std::optional<Dispatch> dispatch = describe(&op);
      if (!dispatch) {
        finish(run);
        continue;
      }
      // The dispatch may move up past dispatches that it does not touch.
      Dispatch *joined = nullptr;
      for (Dispatch &before : llvm::reverse(run)) {
        if (before.touches(*dispatch))
          break;
        if (before.fits(*dispatch)) {
          joined = &before;
          break;
        }
      }
      if (!joined) {
        run.push_back(std::move(*dispatch));
        continue;
      }
      joined->join(*dispatch);
      op.erase();
      ++mergedDispatches;
    }
    finish(run);
  }

  std::optional<Dispatch> describe(Operation *op) {
    Dispatch made;
    made.op = op;
    if (auto chunks = dyn_cast<exec::DispatchChunksOp>(op)) {
      llvm::append_range(made.of, chunks.getTables());
      llvm::append_range(made.args, chunks.getArgs());
    } else if (auto parameters = dyn_cast<exec::DispatchParametersOp>(op)) {
      llvm::append_range(made.of, parameters.getGroups());
      llvm::append_range(made.args, parameters.getArgs());
    } else {
      return std::nullopt;
    }
    for (auto [index, operand] : llvm::enumerate(made.args)) {
      Attribute group = made.of[index / made.each()];
      // Behind the table that a dispatch over parameters writes are numbers of the model, of one row.
      bool isNumbers = isa<exec::DispatchParametersOp>(op) && index % made.each() > 0;
      if (auto table = dyn_cast<exec::TableAttr>(group))
        group = groupOf.lookup(table.getFrom().getSymbol());
      if (auto place = dyn_cast<exec::WorkspaceAttr>(operand))
        made.ranges.push_back({place.getOffset(), place.getOffset() + place.getBytes(), place});
      else if (auto line = dyn_cast<exec::LineAttr>(operand))
        made.ranges.push_back({line.getOffset(), line.getOffset() + line.getBytes()});
      else if (auto scalars = dyn_cast<exec::ScalarsAttr>(operand))
        made.ranges.push_back(
            {scalars.getOffset(),
             scalars.getOffset() + scalars.getColumns() * int64_t(sizeof(float)) *
                                       (isNumbers ? 1 : parametersOf.lookup(group))});
      else if (isa<exec::ShardsAttr>(operand))
        made.shards.insert(group);
      if (isNumbers)
        made.ranges.back().isRead = true;
    }
    return made;
  }

  /// Writes the tables, operands and locations of merged dispatches to their operations.
  void finish(SmallVector<Dispatch> &run) {
    OpBuilder b(&getContext());
    for (Dispatch &dispatch : run) {
      dispatch.op->setAttr(isa<exec::DispatchChunksOp>(dispatch.op) ? "tables" : "groups",
                           b.getArrayAttr(dispatch.of));
      dispatch.op->setAttr("args", b.getArrayAttr(dispatch.args));
      if (dispatch.locations.empty())
        continue;
      dispatch.locations.insert(dispatch.locations.begin(), dispatch.op->getLoc());
      dispatch.op->setLoc(b.getFusedLoc(dispatch.locations));
    }
    run.clear();
  }

  llvm::DenseMap<Attribute, int64_t> parametersOf;
  llvm::DenseMap<Attribute, Attribute> groupOf;
};

} // namespace
} // namespace stepc::kernels

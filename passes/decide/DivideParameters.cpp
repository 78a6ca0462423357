//===- DivideParameters.cpp - Set flattened axes and blocks of parameters --===//

#include "passes/decide/Passes.h"

#include "dialects/optim/Optim.h"
#include "dialects/optim/Saturate.h"
#include "passes/decide/Selectors.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::optim;

namespace stepc::decide {
#define GEN_PASS_DEF_DIVIDEPARAMETERS
#include "passes/decide/Passes.h.inc"
} // namespace stepc::decide

namespace {

struct Statement {
  DivideOp op;
  SmallVector<decide::Selector> patterns, except;
};

class DivideParameters : public decide::impl::DivideParametersBase<DivideParameters> {
  void runOnOperation() override {
    std::vector<Statement> statements;
    SmallVector<Attribute> absent;
    for (auto op : getOperation().getOps<DivideOp>())
      llvm::append_range(absent, decide::optionalOf(op));
    for (auto op : getOperation().getOps<DivideOp>())
      statements.push_back({op, decide::selectors(op.getPatterns(), decide::optionalOf(op)),
                            decide::selectors(op.getExcept(), absent)});
    if (statements.empty())
      return;
    bool failure = false;
    for (auto parameter : getOperation().getOps<ParameterOp>())
      failure |= failed(divide(parameter, statements));
    // A pattern that matches only frozen parameters is not unused: the user may unfreeze them later.
    for (auto frozen : getOperation().getOps<FrozenOp>())
      for (Statement &statement : statements) {
        decide::matches(statement.patterns, frozen);
        decide::matches(statement.except, frozen);
      }
    for (Statement &statement : statements)
      failure |= failed(checkUse(statement));
    if (failure)
      return signalPassFailure();
    for (Statement &statement : statements)
      statement.op.erase();
  }

  LogicalResult divide(ParameterOp parameter, std::vector<Statement> &statements) {
    SmallVector<DivideOp> found;
    for (Statement &statement : statements) {
      // Both lists are always matched, so that each pattern's use is known.
      bool named = decide::matches(statement.patterns, parameter);
      bool excepted = decide::matches(statement.except, parameter);
      if (named && !excepted)
        found.push_back(statement.op);
    }
    if (found.empty())
      return success();
    if (found.size() > 1) {
      auto diag = parameter.emitError("expected blocks from one statement for parameter '")
                  << parameter.getSymName() << "' of shape [" << parameter.getShape() << "], found "
                  << found.size();
      for (DivideOp op : found)
        diag.attachNote(op.getLoc()) << "this one matches it";
      return diag;
    }
    DivideOp op = found.front();
    auto refuse = [&](const Twine &message) {
      auto diag = op.emitError(message) << " for parameter '" << parameter.getSymName()
                                        << "' of shape [" << parameter.getShape() << "]";
      diag.attachNote(parameter.getLoc()) << "the parameter is here";
      return diag;
    };
    if (std::optional<int64_t> flatten = op.getFlatten()) {
      std::string wrong =
          plan::checkFlatten(parameter.getShape().size(), parameter.getBatch(), *flatten);
      if (!wrong.empty())
        return refuse(wrong);
      std::optional<int64_t> before = parameter.getFlatten();
      if (before && before != flatten) {
        parameter.setFlattenOverridden(before);
        reportOverridden(parameter, "axes-overridden") << remark::metric("flatten", *flatten);
      }
      parameter.setFlatten(flatten);
      parameter.setFlattenSpecified(true);
      if (!op.getNumbers())
        return checkBlocks(op, parameter);
    }
    if (!parameter.isMatrix())
      return refuse("expected a matrix, or a stack of matrices with declared batch axes,")
                     .attachNote(op.getLoc())
                 << "a parameter that is not divided is left out by 'except', and "
                    "'flatten' makes a matrix of more axes",
             failure();
    plan::View matrix = parameter.getMatrix();
    int64_t axis = op.getAxis() == plan::Division::Rows ? matrix.rows : matrix.cols;
    plan::Division division;
    if (std::string wrong = divisionOf(op, axis, division); !wrong.empty())
      return refuse(wrong);
    auto blocks = BlocksAttr::get(&getContext(), division);
    if (auto before = parameter.getBlocksAttr()) {
      parameter.setOverriddenAttr(before);
      reportOverridden(parameter, "blocks-overridden")
          << remark::metric("blocks", division.parts.size());
    }
    parameter.setBlocksAttr(blocks);
    parameter.setSpecified(true);
    return success();
  }

  static remark::detail::InFlightRemark reportOverridden(ParameterOp parameter, StringRef name) {
    auto remark = remark::passed(
        parameter.getLoc(), remark::RemarkOpts::name(name).category("optim-divide-parameters"));
    remark << remark::metric("parameter", parameter.getSymName())
           << remark::reason("the specification's hold instead of the manifest's");
    return remark;
  }

  /// Verifies that the blocks that the parameter already has divide the matrix of the newly flattened axes.
  static LogicalResult checkBlocks(DivideOp op, ParameterOp parameter) {
    BlocksAttr blocks = parameter.getBlocksAttr();
    if (!blocks)
      return success();
    plan::View matrix = parameter.getMatrix();
    std::string wrong = plan::checkDivision(
        blocks.toPlan(), blocks.getAxis() == plan::Division::Rows ? matrix.rows : matrix.cols);
    if (wrong.empty())
      return success();
    auto diag = op.emitError(wrong)
                << " for parameter '" << parameter.getSymName() << "' of shape ["
                << parameter.getShape() << "] with blocks of its own";
    diag.attachNote(parameter.getLoc()) << "the parameter is here";
    return diag;
  }

  /// The most runs of a division, as in a plan: far more than any model has, and far less than fills a
  /// memory.
  static constexpr int64_t kMostRuns = int64_t(1) << 24;

  /// Sets `division` to the parts of an axis of `axis` rows or columns. Returns an empty text, or an error
  /// message if the sizes do not fit.
  static std::string divisionOf(DivideOp op, int64_t axis, plan::Division &division) {
    std::string what = op.getAxis() == plan::Division::Rows ? " rows" : " columns";
    int64_t repeat = op.getRepeat();
    if (axis % repeat)
      return ("expected " + Twine(repeat) + " equal stretches of the " + Twine(axis) + what +
              ", found a rest of " + Twine(axis % repeat))
          .str();
    int64_t stretch = axis / repeat, number = (*op.getNumbers())[0];
    std::string of =
        (" of " + Twine(stretch) + what + (repeat > 1 ? " in each stretch" : "")).str();
    SmallVector<int64_t> sizes(*op.getNumbers());
    bool each = op.getSizes() == plan::BlockSizes::Each,
         isListed = op.getSizes() == plan::BlockSizes::Listed;
    if (!isListed && stretch % number)
      return (each ? "expected blocks" + of + " with " + Twine(number) + " each"
                   : "expected " + Twine(number) + " equal blocks" + of)
                 .str() +
             (", found a rest of " + Twine(stretch % number)).str();
    int64_t count = isListed ? int64_t(sizes.size()) : each ? stretch / number : number;
    if (count > kMostRuns / repeat)
      return ("expected blocks of at most " + Twine(kMostRuns) + " runs of" + what + ", found " +
              Twine(count) + " in each of " + Twine(repeat) + " stretches")
          .str();
    if (!isListed)
      sizes.assign(count, each ? number : stretch / number);
    int64_t sum = 0;
    for (int64_t size : sizes)
      sum = saturatingAdd(sum, size);
    if (sum != stretch)
      return ("expected sizes that add up to " + Twine(stretch) + what +
              (repeat > 1 ? " in each stretch" : "") + ", found ")
                 .str() +
             (sum == INT64_MAX ? "more" : std::to_string(sum));
    division.axis = op.getAxis();
    int64_t begin = 0;
    for (int64_t size : sizes) {
      std::vector<plan::Span> &part = division.parts.emplace_back();
      for (int64_t i = 0; i < repeat; ++i)
        part.push_back({i * stretch + begin, i * stretch + begin + size});
      begin += size;
    }
    return {};
  }

  /// Emits an error for each pattern that matches nothing, and a warning for each such except pattern: most
  /// are misspelt.
  static LogicalResult checkUse(Statement &statement) {
    LogicalResult result = success();
    for (decide::Selector &selector : statement.patterns)
      if (!selector.used && !selector.optional) {
        auto diag = statement.op.emitError("expected pattern \"")
                    << selector.pattern.text() << "\" of blocks to match a parameter, found none";
        diag.attachNote() << "patterns followed by 'if present', or given with --if-present, may "
                             "match nothing";
        result = diag;
      }
    for (decide::Selector &selector : statement.except)
      if (!selector.used && !selector.optional)
        statement.op.emitWarning("except pattern \"")
            << selector.pattern.text() << "\" of blocks matches no parameter";
    return result;
  }
};

} // namespace

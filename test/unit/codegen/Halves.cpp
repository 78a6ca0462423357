//===- Halves.cpp - Strategies of a test's dialect -------------------------===//

#include "test/unit/codegen/Halves.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace stepc;
using namespace stepc::test;

std::vector<plan::Hop> test::byHalves(const plan::Mesh &mesh, bool ownsFirst, bool ownsSecond) {
  std::vector<plan::Factor> others = plan::wholeAxes(mesh);
  plan::Factor &last = others.back();
  last = {last.axis, 2, last.size / 2};
  auto hop = [](bool owns, std::vector<plan::Factor> factors) {
    return owns ? plan::Hop{factors, {}, {}} : plan::Hop{{}, factors, {}};
  };
  return {hop(ownsFirst, {{last.axis, 1, 2}}), hop(ownsSecond, others)};
}

#include "test/unit/codegen/HalvesDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "test/unit/codegen/HalvesAttrs.cpp.inc"

namespace {
struct Strategies : optim::StrategyListInterface {
  using StrategyListInterface::StrategyListInterface;
  SmallVector<optim::StrategyAttrInterface> strategies() const override {
    MLIRContext *context = getContext();
    return {InTurnAttr::get(context), JoinedAttr::get(context), SharedAttr::get(context)};
  }
};
} // namespace

void HalvesDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "test/unit/codegen/HalvesAttrs.cpp.inc"
      >();
  addInterfaces<Strategies>();
}

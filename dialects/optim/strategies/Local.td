//===- Local.td - Every rank computes what it has whole --------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_LOCAL_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_LOCAL_TD

def Optim_Local : Optim_Strategy<"Local", "local"> {
  let summary = "each block is computed by all ranks that have it whole: no hops";
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const StrategyQuery &query) const {
      return query.areWhole()
                 ? ""
                 : "placements " + toString(query.group.placementsOf(query.home)) + " cut the blocks";
    }
    std::vector<plan::Hop> $cppClass::hops(const StrategyQuery &) const { return {}; }
    std::string $cppClass::reason(const StrategyQuery &) const {
      return "each block is whole on its rank";
    }
  }];
}

#endif

//===- Owner.td - One rank computes each block -----------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_OWNER_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_OWNER_TD

def Optim_Owner : Optim_Strategy<"Owner", "owner"> {
  let summary = "each block goes to one rank, and the result back: one hop that owns all axes";
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const StrategyQuery &) const { return ""; }
    std::vector<plan::Hop> $cppClass::hops(const StrategyQuery &query) const {
      return {{plan::wholeAxes(query.mesh), {}, {}}};
    }
    std::string $cppClass::reason(const StrategyQuery &query) const {
      if (!query.areWhole())
        return "blocks span ranks: exact routes to a balanced owner";
      return "ranks divide the blocks and share the results: modelled to take less time";
    }
  }];
}

#endif

//===- Gather.td - Every rank computes every block -------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_GATHER_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_GATHER_TD

def Optim_Gather : Optim_Strategy<"Gather", "gather"> {
  let summary = "each block goes to all ranks: one hop that replicates along all axes";
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const StrategyQuery &) const { return ""; }
    std::vector<plan::Hop> $cppClass::hops(const StrategyQuery &query) const {
      return {{{}, plan::wholeAxes(query.mesh), {}}};
    }
    std::string $cppClass::reason(const StrategyQuery &) const {
      return "every rank computes every block: modelled to take less time";
    }
  }];
}

#endif

//===- SubgroupGather.td - The ranks that share a block compute it -*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_SUBGROUPGATHER_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_SUBGROUPGATHER_TD

def Optim_SubgroupGather : Optim_Strategy<"SubgroupGather", "subgroup_gather", "subgroup-gather"> {
  let summary = "each block goes to all ranks of the subgroup that holds it: one hop that replicates along a "
                "part of the axes";
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const StrategyQuery &query) const {
      if (query.areWhole())
        return "each block is whole on its rank";
      Factors factors = factorsOfBlocks(query), all;
      for (const plan::Factor &axis : plan::wholeAxes(query.mesh))
        if (axis.size > 1 &&
            query.group.placementsOf(query.home)[axis.axis].kind != plan::PlacementKind::Replicate)
          all.push_back(axis);
      if (factors == all)
        return "some block lies on all of " + describe(query.mesh, all);
      if (!query.areWhole(factors))
        return "values that drop an axis stand on ranks of several subgroups";
      return "";
    }
    std::vector<plan::Hop> $cppClass::hops(const StrategyQuery &query) const {
      return {{{}, factorsOfBlocks(query), {}}};
    }
    std::string $cppClass::reason(const StrategyQuery &query) const {
      return "each block lies on " + describe(query.mesh, factorsOfBlocks(query)) +
             ", whose ranks all compute it";
    }
  }];
}

#endif

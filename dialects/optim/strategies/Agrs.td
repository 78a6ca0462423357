//===- Agrs.td - Gathered by all, computed by one, scattered exactly -*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_AGRS_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_AGRS_TD

def Optim_Agrs : Optim_Strategy<"Agrs", "agrs"> {
  let summary = "fewer blocks than ranks are gathered by all, and each is computed by one: "
                "a hop that replicates, and one that chooses";
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const StrategyQuery &query) const {
      if (query.areWhole())
        return "each block is whole on its rank";
      int64_t blocks = query.parameters * query.group.blocksPerParameter(), ranks = query.mesh.ranks.size();
      if (blocks >= ranks)
        return "there are " + std::to_string(blocks) + " blocks for " + std::to_string(ranks) + " ranks";
      // Transports gather equal numbers of elements from all ranks.
      int64_t least = std::numeric_limits<int64_t>::max(), most = 0;
      for (const std::vector<int64_t> &areas : query.held) {
        int64_t elements = std::accumulate(areas.begin(), areas.end(), int64_t(0));
        least = std::min(least, elements);
        most = std::max(most, elements);
      }
      return least < most ? "shards have from " + std::to_string(least) + " to " + std::to_string(most) +
                                " elements"
                          : "";
    }
    std::vector<plan::Hop> $cppClass::hops(const StrategyQuery &query) const {
      plan::Hop gathered, chosen;
      std::vector<bool> copied = geometry::replicatedAxes(query.group, plan::ValueKind::Full, query.home);
      for (const plan::Factor &axis : plan::wholeAxes(query.mesh)) {
        // Along axes of replicas the pieces go to the owner's replica, which alone gathers.
        (copied[axis.axis] ? gathered.owned : gathered.replicated).push_back(axis);
        if (!copied[axis.axis])
          chosen.owned.push_back(axis);
      }
      return {gathered, chosen};
    }
    std::string $cppClass::reason(const StrategyQuery &query) const {
      return std::to_string(query.parameters * query.group.blocksPerParameter()) + " blocks for " +
             std::to_string(query.mesh.ranks.size()) + " ranks: gathered by all, each computed by one";
    }
  }];
}

#endif

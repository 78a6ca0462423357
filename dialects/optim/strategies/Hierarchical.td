//===- Hierarchical.td - To one rank, within nodes before between them -*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_HIERARCHICAL_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_HIERARCHICAL_TD

def Optim_Hierarchical : Optim_Strategy<"Hierarchical", "hierarchical"> {
  let summary = "each block goes to one rank, and the result back, by a hop for each level of the cluster "
                "that owns its part of the axes";
  let extraClassDefinition = [{
    static std::string levelHops(const StrategyQuery &query, std::vector<plan::Hop> &hops) {
      for (const Factors &level : factorsByLevel(query)) {
        int64_t most = query.maxPeers ? query.maxPeers + 1 : std::numeric_limits<int64_t>::max();
        std::optional<std::vector<Factors>> parts = divided(level, most);
        if (!parts)
          return "a prime part of " + describe(query.mesh, level) + " has more ranks than a rank and its " +
                 std::to_string(query.maxPeers) + " peers";
        for (Factors &part : *parts)
          hops.push_back({std::move(part), {}, {}});
      }
      return "";
    }
    std::string $cppClass::whyIllegal(const StrategyQuery &query) const {
      if (query.domains.empty())
        return "the cluster has one level";
      std::vector<plan::Hop> hops;
      if (std::string reason = levelHops(query, hops); !reason.empty())
        return reason;
      return hops.size() < 2 ? "no two levels of the cluster part the ranks of mesh " + query.mesh.name : "";
    }
    std::vector<plan::Hop> $cppClass::hops(const StrategyQuery &query) const {
      std::vector<plan::Hop> hops;
      levelHops(query, hops);
      return hops;
    }
    std::string $cppClass::reason(const StrategyQuery &) const {
      return "fewer peers between domains of the cluster: to one rank in each, and from there to the owner";
    }
  }];
}

#endif

//===- Slabs.td - Every rank computes its slab of each block ----*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_SLABS_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_SLABS_TD

def Optim_Slabs : Optim_Strategy<"Slabs", "slabs", "slabs", ["slabs", "roundsOtherwise"]> {
  let summary = "blocks stay cut: the Gram matrices of their slabs are added up over ranks, "
                "and all else is local";
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const StrategyQuery &query) const {
      plan::Slabs slabs = geometry::slabsOf(query.group, query.mesh, query.home);
      if (slabs.factors.empty() || geometry::blocksAreWhole(query.group, query.mesh, {}, query.home))
        return "placements " + toString(query.group.placementsOf(query.home)) + " do not cut the blocks";
      return geometry::checkSlabs(query.group, query.mesh, slabs, query.home);
    }
    std::vector<plan::Hop> $cppClass::hops(const StrategyQuery &) const { return {}; }
    plan::Slabs $cppClass::slabs(const StrategyQuery &query) const {
      return geometry::slabsOf(query.group, query.mesh, query.home);
    }
    bool $cppClass::roundsOtherwise() const { return true; }
    std::string $cppClass::reason(const StrategyQuery &) const {
      return "each rank computes its slab, and Gram matrices are added up";
    }
  }];
}

#endif

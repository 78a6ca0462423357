//===- Local.td - Every rank computes what it has whole --------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_LOCAL_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_LOCAL_TD

def Optim_Local : Optim_Strategy<"Local", "local"> {
  let summary = "each block is computed by all ranks that have it whole: no hops";
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const plan::Group &group, const plan::Mesh &mesh, plan::ShardsKind home) const {
      if (!geometry::blocksAreWhole(group, mesh, {}, home))
        return "placements " + toString(group.placementsOf(home)) + " cut the blocks";
      return "";
    }
    std::vector<plan::Hop> $cppClass::hops(const plan::Group &, const plan::Mesh &) const {
      return {};
    }
    std::string $cppClass::reason(const plan::Group &, const plan::Mesh &, plan::ShardsKind) const {
      return "each block is whole on its rank";
    }
  }];
}

#endif

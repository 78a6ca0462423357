//===- Owner.td - One rank computes each block -----------------*- tablegen -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_OWNER_TD
#define STEPC_DIALECTS_OPTIM_STRATEGIES_OWNER_TD

def Optim_Owner : Optim_Strategy<"Owner", "owner"> {
  let summary = "each block goes to one rank, and the result back: one hop that owns all axes";
  let extraClassDefinition = [{
    std::string $cppClass::whyIllegal(const plan::Group &, const plan::Mesh &, plan::ShardsKind) const { return ""; }
    std::vector<plan::Hop> $cppClass::hops(const plan::Group &, const plan::Mesh &mesh) const {
      return {{plan::wholeAxes(mesh), {}, {}}};
    }
    std::string $cppClass::reason(const plan::Group &group, const plan::Mesh &mesh, plan::ShardsKind home) const {
      if (!geometry::blocksAreWhole(group, mesh, {}, home))
        return "blocks span ranks: exact routes to a balanced owner";
      return "ranks divide the blocks and share the results: modelled to take less time";
    }
  }];
}

#endif

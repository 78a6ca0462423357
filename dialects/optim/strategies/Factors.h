//===- Factors.h - Parts of a mesh's axes, as strategies need them --*- C++ -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_FACTORS_H
#define STEPC_DIALECTS_OPTIM_STRATEGIES_FACTORS_H

#include "dialects/optim/Optim.h"

namespace stepc::optim {

using Factors = std::vector<plan::Factor>;

/// The parts of all axes by the level of the cluster at which ranks that differ along them meet: of
/// each level as much as its domains allow, wherever a rank stands. Levels without any are left out.
std::vector<Factors> factorsByLevel(const StrategyQuery &query);

/// The factors in as few lists as possible, none with more than `most` ranks. Nothing if a prime factor of
/// the ranks is above that.
std::optional<std::vector<Factors>> divided(const Factors &factors, int64_t most);

/// The least parts of the axes, each beginning at multiples of its size, along which all ranks stand
/// that have something of one block, whichever. Axes along which blocks are replicated have none.
Factors factorsOfBlocks(const StrategyQuery &query);

/// "ep and 4 of fsdp".
std::string describe(const plan::Mesh &mesh, const Factors &factors);

} // namespace stepc::optim

#endif

//===- Factors.h - Parts of a mesh's axes, as strategies need them --*- C++ -*-===//
#ifndef STEPC_DIALECTS_OPTIM_STRATEGIES_FACTORS_H
#define STEPC_DIALECTS_OPTIM_STRATEGIES_FACTORS_H

#include "dialects/optim/Optim.h"

namespace stepc::optim {

using Factors = std::vector<plan::Factor>;

/// Divides all axes into factors, listed by level of the cluster, innermost first. Ranks that differ along
/// the factors of a level, and of levels before it, meet in a domain of this level, wherever they lie in the
/// mesh. Each level gets the largest factors of this kind. Levels without factors are left out.
std::vector<Factors> factorsByLevel(const StrategyQuery &query);

/// Divides the factors into lists in order, each filled up to at most `most` ranks. Returns nullopt if a
/// prime factor of a factor's size is above `most`.
std::optional<std::vector<Factors>> divided(const Factors &factors, int64_t most);

/// For each axis the smallest factor that covers every block: the axis is cut into stretches of the factor's
/// size, and no block lies in two of them. Axes along which blocks are replicated have no factor, and axes
/// whose stretches are single coordinates neither.
Factors factorsOfBlocks(const StrategyQuery &query);

/// The factors for messages: "ep and 4 of fsdp".
std::string describe(const plan::Mesh &mesh, const Factors &factors);

} // namespace stepc::optim

#endif

"""The ranks over which a definition's model block computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch.distributed as dist

from stepc.errors import StepcError, plural
from stepc.torch.describe import group_ranks, my_rank


def expect_alike(groups: Mapping[int, Sequence[int]], trains: Mapping[int, bool]) -> None:
    """Raises StepcError if a rank of some group has another group, or trains no parameter.

    ``groups`` has each rank's group, empty if the rank has none; ``trains`` says which ranks train one.
    """
    for rank, ranks in groups.items():
        for other in ranks:
            if set(groups[other]) != set(ranks):
                raise StepcError(
                    f"model_group: expected the same ranks on all of its ranks, found {list(ranks)} on rank "
                    f"{rank} and {list(groups[other]) or 'none'} on rank {other}"
                )
    for rank in sorted(set().union(*groups.values())):
        # It would not know the model's step count and states, with which it has to go on when it is unfrozen.
        if not trains[rank]:
            raise StepcError(
                f"model_group: expected a trained parameter on each of its ranks, found none on rank {rank}\n"
                "hint: leave ranks whose parameters are all frozen out of the group"
            )


@dataclass(frozen=True)
class ModelGroup:
    """Ranks of pipeline stages that step together, as one world. ``ranks`` are their global ranks; empty if
    the trainer named none. ``process_group`` is where they meet before they step."""

    ranks: tuple[int, ...]
    process_group: dist.ProcessGroup | None

    @staticmethod
    def of(
        model_group: dist.ProcessGroup | None, process_group: dist.ProcessGroup | None,
        shared: Sequence[str] = (),
    ) -> ModelGroup:  # fmt: skip
        """Raises ValueError if neither group has all ranks of the other, if this rank is outside, or if
        parameters are ``shared`` without a group."""
        if model_group is None and shared:
            raise ValueError("shared: expected model_group= beside it, found none")
        if model_group is None:
            return ModelGroup((), process_group)
        # torch has one object for all groups that a rank is not in.
        if model_group is dist.GroupMember.NON_GROUP_MEMBER or my_rank() not in group_ranks(model_group):
            raise ValueError(
                f"model_group: expected a group with this rank, {my_rank()}, found one without it"
            )
        ranks, made = group_ranks(model_group), group_ranks(process_group)
        if set(ranks) <= set(made):
            return ModelGroup(ranks, process_group)
        if set(made) <= set(ranks):
            return ModelGroup(ranks, model_group)
        raise ValueError(
            "model_group: expected all of its ranks in process_group= or the other way round, found "
            f"{list(ranks)} and {list(made)}"
        )

    def noted(self, note: str) -> str:
        """A note for the error if a rank does not come, with that of the group."""
        own = "all ranks of model_group= prepare together" if self.ranks else ""
        return "; ".join(one for one in (note, own) if one)

    def problem(self, world: tuple[int, ...]) -> StepcError | None:
        """Why a model block may not compute on the ranks of this world: it would leave out the parameters of
        others."""
        if self.ranks:
            outside = sorted(set(world) - set(self.ranks))
            return None if not outside else StepcError(
                f"model_group: expected all ranks that share parameters, found {list(self.ranks)} "
                f"without {', '.join(map(str, outside[:8]))}"
            )  # fmt: skip
        size = len(group_ranks(None))
        if len(world) == size:
            return None
        return StepcError(
            f"the definition's model block computes over all parameters, and the job has "
            f"{plural(size, 'rank')}: expected them all to step together, found {len(world)} of them (of a "
            "pipeline stage, or of another process group)\nhint: model_group= names the ranks whose "
            "parameters are one model"
        )

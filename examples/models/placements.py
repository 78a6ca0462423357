"""Where PyTorch's trainers (torchtitan, xtuner) put the parameters of a model.

Dense parameters lie on the mesh (replicate, fsdp, tp): tensor parallelism cuts rows or columns, and after it
fully_shard cuts the first dimension, which DTensor writes as `_S(0, tp)` where that is the same one. With
expert parallelism, experts lie on a mesh of their own, of the same ranks: (replicate, efsdp, ep, tp), with
the experts dealt over ep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from architectures import Parameter


@dataclass(frozen=True)
class Layout:
    """Numbers of ranks. `ep` counts ranks of the fsdp axis, so that efsdp is fsdp / ep."""

    ranks: int
    replicas: int = 1
    tp: int = 1
    ep: int = 1
    expert_axes: tuple[str, str] = ("efsdp", "ep")

    def __post_init__(self) -> None:
        for name in ("ranks", "replicas", "tp", "ep"):
            value = getattr(self, name)
            if value < 1:
                raise ValueError(f"--{name}: expected at least 1, found {value}")
        if self.ranks % (self.replicas * self.tp * self.ep):
            raise ValueError(f"--ranks: expected a multiple of replicas × tp × ep = "
                             f"{self.replicas * self.tp * self.ep}, found {self.ranks}")  # fmt: skip

    @property
    def sizes(self) -> dict[str, int]:
        fsdp = self.ranks // (self.replicas * self.tp)
        experts = {"efsdp": fsdp // self.ep, "ep": self.ep}
        return {"replicate": self.replicas, "fsdp": fsdp, **experts, "tp": self.tp}

    def axes(self, name: str) -> list[str]:
        middle = list(self.expert_axes) if name == "experts" else ["fsdp"]
        return [*(["replicate"] if self.replicas > 1 else []), *middle, *(["tp"] if self.tp > 1 else [])]

    def mesh(self, name: str) -> dict:
        """Ranks that share experts are neighbours, whatever the order of the axes."""
        axes, sizes = self.axes(name), self.sizes
        mesh = {"name": name, "axes": [{"name": axis, "size": sizes[axis]} for axis in axes]}
        near = [axis for axis in ("replicate", "fsdp", "efsdp", "ep", "tp") if axis in axes]
        if axes != near:
            strides = {
                axis: math.prod(sizes[after] for after in near[at + 1 :]) for at, axis in enumerate(near)
            }
            ranks = [0]
            for axis in axes:
                ranks = [rank + at * strides[axis] for rank in ranks for at in range(sizes[axis])]
            mesh["ranks"] = ranks
        return mesh

    def meshes(self, parameters: list[Parameter]) -> list[dict]:
        used = {self.mesh_of(parameter) for parameter in parameters}
        return [self.mesh(name) for name in ("dense", "experts") if name in used]

    def mesh_of(self, parameter: Parameter) -> str:
        return "experts" if parameter.experts and self.ep > 1 else "dense"

    def placements(self, parameter: Parameter) -> list[str]:
        """In the order in which they cut: ep and tp first, what fully_shard does last."""
        axes, sizes = self.axes(self.mesh_of(parameter)), self.sizes
        stacked = int(parameter.stacked)
        cuts = {}  # axis of the mesh → dimension, in the order of cutting
        if "ep" in axes:
            cuts["ep"] = 0
        if parameter.cut and "tp" in axes:
            cuts["tp"] = stacked + (parameter.cut == "columns")
        if "ep" not in axes:
            cuts["fsdp"] = 0
        else:
            # As in torchtitan: where there are fewer experts than ranks, the rows of experts are cut.
            cuts["efsdp"] = int(stacked and sizes["efsdp"] * sizes["ep"] > parameter.experts)
        order = list(cuts)
        return [self.written(axis, cuts, order, axes) for axis in axes]

    def written(self, axis: str, cuts: dict[str, int], order: list[str], axes: list[str]) -> str:
        """DTensor's placement on one axis: strided over the axes behind it that have cut the same
        dimension before.
        """
        if axis not in cuts:
            return "R"
        before = [other for other in order[:order.index(axis)] if cuts[other] == cuts[axis]]  # fmt: skip
        factor = math.prod(self.sizes[other] for other in before if axes.index(other) > axes.index(axis))
        return f"_S({cuts[axis]}, {factor})" if factor > 1 else f"S({cuts[axis]})"

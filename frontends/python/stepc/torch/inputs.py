"""What a trainer gives steps beside gradients: the tensors that a definition declares by ``input``."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch
from torch.distributed.tensor import DTensor, Partial

from stepc.errors import StepcError
from stepc.torch.placements import placement_text, split_placements
from stepc.torch.slices import arrived, taken
from stepc.torch.strided import held

if TYPE_CHECKING:
    from stepc._described import Parameter, State
    from stepc.torch.binding import Binding, Record

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def _brought_home(tensor: DTensor, one: State, what: str) -> torch.Tensor:
    """This rank's part of an input, by the placements that the library has for it. Along each mesh axis
    the tensor has the same placement, or it is whole or pending.

    Contributions are gathered. Then the largest is taken, or they are added in the order of the mesh, in
    f32 and rounded once: no transport reduces. All ranks of the mesh have to call it. Nothing waits for the
    device.
    """
    wanted = split_placements(one.placements)
    mesh, place = tensor.device_mesh, tensor.device_mesh.get_coordinate()
    found = [
        f"P({placement.reduce_op})" if type(placement) is Partial else placement_text(placement, what)
        for placement in tensor.placements
    ]
    local = arrived(tensor.to_local())
    if place is None or found == wanted:
        return local
    if tuple(tensor.shape) != one.global_shape:
        raise StepcError(
            f"{what}: expected a DTensor of shape {list(one.global_shape)}, found {list(tensor.shape)}"
        )
    if any(
        has not in (wants, "R", "P(sum)", "P(max)") for has, wants in zip(found, wanted, strict=True)
    ):
        raise StepcError(
            f"{what}: expected a DTensor with placements [{', '.join(wanted)}], or R, P(sum) or P(max) in "
            f"the place of some, found [{', '.join(found)}]"
        )
    for axis, has in enumerate(found):
        if not has.startswith("P("):
            continue
        group, local = mesh.get_group(axis), local.contiguous()
        parts = [torch.empty_like(local) for _ in range(mesh.size(axis))]
        torch.distributed.all_gather(parts, local, group=group)
        ranks = torch.distributed.get_process_group_ranks(group)
        line = tuple(slice(None) if other == axis else at for other, at in enumerate(place))
        ordered = [parts[ranks.index(rank)] for rank in mesh.mesh[line].tolist()]
        combine = torch.maximum if has == "P(max)" else torch.add
        local = functools.reduce(combine, (part.float() for part in ordered)).to(tensor.dtype)
    shape, sizes = tuple(tensor.shape), list(mesh.shape)
    whole = ["R" if has.startswith("P(") else has for has in found]
    # The library has written what FSDP2 cut, so that both are read as they stand.
    present = held(shape, sizes, whole, place, local.shape, frozenset())
    runs = held(shape, sizes, wanted, place, one.local_shape, frozenset())
    return taken(local, present, runs).contiguous()


class Inputs:
    """The tensors that were given last, by parameter and input. They stay until others are given."""

    def __init__(self) -> None:
        self._given: dict[str, dict[str, torch.Tensor]] = {}
        self._changed = True
        self._binding: Binding | None = None
        # Parameters of the binding that have inputs, and their records on this rank.
        self._declared: list[tuple[Parameter, Record | None]] = []
        self._bound: dict[tuple[int, int], tuple[int, int]] = {}
        # The tensors that are bound now. A replay of a CUDA graph reads their memory, so they are kept here
        # until others are bound.
        self._kept: list[torch.Tensor] = []
        # This rank's parts of given DTensors, by parameter and input. A part is exchanged when a DTensor is
        # given, and kept until another is.
        self._brought: dict[tuple[str, str], torch.Tensor] = {}

    def give(self, parameter: str, tensors: dict[str, torch.Tensor | None]) -> None:
        given = dict(self._given.get(parameter, {}))
        for name, tensor in tensors.items():
            self._brought.pop((parameter, name), None)
            if tensor is None:
                given.pop(name, None)
            elif isinstance(tensor, torch.Tensor):
                given[name] = arrived(tensor).detach()  # of the same memory, without the graph behind it
            else:
                raise TypeError(
                    f"input '{name}' of parameter '{parameter}': expected a tensor or None, found {tensor!r}"
                )
        self._given[parameter] = given
        self._changed = True

    def bind(self, binding: Binding) -> None:
        """Binds what was given anew, for the parameters of the binding."""
        if binding is not self._binding:
            records = {record.index: record for record in getattr(binding, "records", ())}
            parameters = [info for info in binding.instance.parameters if info.inputs]
            self._declared = [(info, records.get(info.index)) for info in parameters]
            self._binding, self._bound, self._changed = binding, {}, True
            self._brought = {}
        if not self._changed:
            return
        declared = {info.name: [one.name for one in info.inputs] for info, _ in self._declared}
        for parameter, given in self._given.items():
            for name in given.keys() - set(declared.get(parameter, ())):
                known = ", ".join(declared.get(parameter, ())) or "none"
                raise StepcError(
                    f"parameter '{parameter}': expected one of its inputs ({known}), found '{name}'"
                )
        kept: list[torch.Tensor] = []
        for info, record in self._declared:
            given = self._given.get(info.name, {})
            for number, one in enumerate(info.inputs):
                tensor = given.get(one.name)
                shard = None if tensor is None else self._shard(info, one, record, tensor)
                place = (0, 0) if shard is None else (shard.data_ptr(), shard.nbytes)
                if self._bound.get((info.index, number), (0, 0)) != place:
                    binding.instance.bind_input(info.index, number, *place)
                    self._bound[info.index, number] = place
                if shard is not None:
                    kept.append(shard)
        self._kept, self._changed = kept, False

    def _shard(
        self, info: Parameter, one: State, record: Record | None, tensor: torch.Tensor
    ) -> torch.Tensor | None:
        """This rank's part; None if it has none."""
        wanted = one.local_shape
        what = f"input '{one.name}' of parameter '{info.name}'"
        shard = tensor
        if isinstance(tensor, DTensor):
            shard = arrived(tensor.to_local())
            if record is not None and record.spec is not None:
                if tensor.device_mesh != record.spec.mesh:
                    raise StepcError(
                        f"{what}: expected a DTensor on {record.spec.mesh}, found one on {tensor.device_mesh}"
                    )
                shard = self._brought.get((info.name, one.name))
                if shard is None:
                    shard = _brought_home(tensor, one, what)
                    self._brought[info.name, one.name] = shard
        if wanted is None or record is None or 0 in wanted:
            return None
        # A range of a flat buffer has one axis.
        shape, apart = tuple(shard.shape), not shard.is_contiguous()
        fits = shape == wanted or (set(wanted[1:]) <= {1} and shape == wanted[:1])
        if shard.dtype != _DTYPES[one.dtype] or not fits or apart or shard.device != record.device:
            dtype = str(shard.dtype).removeprefix("torch.")
            raise StepcError(
                f"{what}: expected a contiguous {one.dtype} tensor of shape {list(wanted)} on "
                f"{record.device} as this rank's part, found one of {dtype} and shape "
                f"{list(shard.shape)} on {shard.device}{' that is not contiguous' if apart else ''}"
            )
        return shard

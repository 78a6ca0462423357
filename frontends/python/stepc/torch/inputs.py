"""What a trainer gives steps beside gradients: the tensors that a definition declares by ``input``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.distributed.tensor import DTensor

from stepc.errors import StepcError
from stepc.torch.placements import placement_text, split_placements
from stepc.torch.slices import arrived

if TYPE_CHECKING:
    from stepc._described import Parameter, State
    from stepc.torch.binding import Binding, Record

_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


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

    def give(self, parameter: str, tensors: dict[str, torch.Tensor | None]) -> None:
        given = dict(self._given.get(parameter, {}))
        for name, tensor in tensors.items():
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

    @staticmethod
    def _shard(
        info: Parameter, one: State, record: Record | None, tensor: torch.Tensor
    ) -> torch.Tensor | None:
        """This rank's part; None if it has none."""
        wanted = one.local_shape
        if wanted is None or record is None or 0 in wanted:
            return None
        what = f"input '{one.name}' of parameter '{info.name}'"
        shard = tensor
        if isinstance(tensor, DTensor):
            found = [placement_text(placement, what) for placement in tensor.placements]
            if record.spec is not None and (
                found != split_placements(one.placements) or tensor.device_mesh != record.spec.mesh
            ):
                raise StepcError(
                    f"{what}: expected a DTensor with placements {one.placements} on {record.spec.mesh}, "
                    f"found placements [{', '.join(found)}] on {tensor.device_mesh}"
                )
            shard = arrived(tensor.to_local())
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

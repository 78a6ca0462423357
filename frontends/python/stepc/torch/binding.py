"""The tensors that are bound to the library, and their check at every step."""

from __future__ import annotations

import contextlib
import ctypes as c
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.distributed.tensor import DTensor

from stepc import _abi
from stepc._library import Instance
from stepc.errors import GradientError, StepcError
from stepc.torch import extension
from stepc.torch.copies import Copied, Staged, contiguous_like, copy_back, copy_back_after, refuse_copies
from stepc.torch.devices import Gpu, Host
from stepc.torch.group import Group
from stepc.torch.groups import signature
from stepc.torch.placements import is_partial_sum, is_whole_where_cut, same_placements, same_spec
from stepc.torch.record import Record, Resharded, refuse_shared_memory
from stepc.torch.shown import expect_names, is_empty
from stepc.torch.slices import arrived, cut
from stepc.torch.states import (
    STEP, allocate, begin_anew, check_state, local, refresh_masters, same_shard, whole_step,
)  # fmt: skip

# Seconds between two looks whether an enqueued step is done.
_LOOK_SECONDS = 50e-6


class Binding:
    """An instance with this rank's tensors bound to it."""

    def __init__(
        self, instance: Instance, device: Host | Gpu, records: Sequence[Record],
        steps: torch.Tensor, partial: str, attribute: str = "grad", in_place: bool = False,
        model_states: Mapping[str, torch.Tensor] | None = None,
    ) -> None:  # fmt: skip
        self.instance, self._device, self._in_place = instance, device, in_place
        self.records = list(records)
        self.steps = steps
        # Held as long as the instance may write to them.
        self._model_states = model_states
        self.partial, self._attribute = partial, attribute
        self._gradients = (c.c_uint64 * max(len(instance.parameters), 1))()
        self._kept: list[torch.Tensor] = []
        self._staged: list[Record] = []
        self._signature: tuple[Any, ...] = ()
        # The bound records as the C++ extension checks them. None if this class checks all of them: the
        # extension may be absent, and reads no other attribute than `grad`.
        native = extension.load() if attribute == "grad" else None
        self._table = native and native.Table(len(self.records), self._gradients, DTensor, Group)
        # Positions of the records whose gradients the table left to this class. None before the table looked.
        self._unusual: list[int] | None = None
        self._copied_parameters = Copied(
            "parameters", "it", "; p.data = p.data.contiguous() saves the copies"
        )
        self._copied_gradients = Copied("gradients", "its gradient")
        instance.bind_steps(steps.data_ptr(), device.memory)
        # Whether memory moved since the last check that no two tensors share memory.
        self._moved = True
        self.check()

    @property
    def model_step(self) -> torch.Tensor | None:
        """The bound count of the model's steps; None if the library has no model."""
        model = self.instance.library.model
        return None if model is None else self.steps[model.index]

    def remember(self, groups: Sequence[Mapping[str, Any]]) -> None:
        """Remembers these parameter groups as the bound ones."""
        self._signature = signature(groups)
        if self._table is not None:
            self._table.remember(self._signature)

    def is_bound(self, groups: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the extension finds that nothing differs, so that no :meth:`check` is needed."""
        self._unusual = None
        if self._table is not None and not self._moved:
            self._unusual = self._table.look(groups)
        return self._unusual is not None

    def holds(self, groups: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the groups have the bound parameters, and freeze the same ones as when they were bound."""
        if self._table is not None and self._table.same_groups(groups):
            return True
        return self._signature == signature(groups)

    def difference(self, named: Iterable[tuple[str, torch.Tensor]]) -> str:
        """How the parameters of the groups differ from those that are bound."""
        bound = {record.name: record.tensor for record in self.records}
        for name, tensor in named:
            if tensor.requires_grad and bound.get(name) is not tensor:
                return f"parameter '{name}' is another tensor, or was not bound"
            if not tensor.requires_grad and name in bound:
                return f"parameter '{name}' was frozen"
        return "the parameter groups changed"

    def check(self) -> None:
        """Compares parameters and states with the bound ones, and binds those whose memory moved."""
        differing = range(len(self.records))
        if self._table is not None:
            differing = self._table.differing()
        if any(not self.records[position].state for position in differing):
            self.take_states({record.name: record.state for record in self.records})
            differing = range(len(self.records))
        for position in differing:
            self._check_record(position)
        if differing:
            self._staged = [record for record in self.records if record.staged is not None]
        if self._moved:
            refuse_shared_memory(self.records)
            self._moved = False
        self._copied_parameters.warn()

    def take_states(self, left: Mapping[str, dict[str, Any]]) -> None:
        """Takes the states that the trainer left, by parameter's name. States of absent names begin anew.

        If one state does not fit, none is taken. The next :meth:`check` binds their memory. States that begin
        anew get new tensors, because the trainer may have kept the old ones. If ``in_place``, new values are
        written into the old tensors, because captured graphs go on using these.
        """
        counts: dict[Record, int] = {}
        for record in self.records:
            own, names = left.get(record.name), [*(one.name for one in record.info.states), STEP]
            if is_empty(own):
                counts[record] = 0
                continue
            expect_names(own, names, record.name, others=own is not record.state)
            if own is record.state:
                continue
            for number, info in enumerate(record.info.states):
                self._expect_state(record, number, own[info.name])
            counts[record] = whole_step(own[STEP], f"parameter '{record.name}': state '{STEP}'")
        if not counts:
            return
        self.settle()
        for record in counts:
            own = left.get(record.name)
            if own is not None and own is record.state:
                own.update(self._new_states(record))
            else:
                record.state = self._new_states(record) if is_empty(own) else own
        if not self._in_place:
            self.steps = self.steps.clone()
            self.instance.bind_steps(self.steps.data_ptr(), self._device.memory)
        for record in self.records:
            view = self.steps[record.index]
            record.step_pointer = view.data_ptr()
            if record in counts:
                view.fill_(counts[record])
            elif record.state[STEP] is not record.step_view:
                continue  # check() takes this step count
            record.state[STEP] = record.step_view = view
        self.expect_loaded()

    def _new_states(self, record: Record) -> dict[str, Any]:
        if not self._in_place:
            return allocate(record.info, record.tensor, record.mesh_axes, self.instance)
        held = zip(record.info.states, record.state_tensors, strict=True)
        bound = {info.name: tensors[0] for info, tensors in held}
        bound[STEP] = record.step_view
        begin_anew(record.info, record.tensor, bound, self.instance)
        return bound

    def _expect_state(self, record: Record, number: int, found: Any) -> torch.Tensor:
        """The shard of a state that the trainer put in the place of the bound one."""
        info, bound = record.info.states[number], record.state_tensors[number]
        dtensor = record.state_dtensor[number]
        data = check_state(found, info, dtensor, record.device, record.name)
        where = f"parameter '{record.name}': state '{info.name}'"
        if bound is not None and dtensor and not same_spec(found._spec, bound[4]):
            raise StepcError(
                f"{where}: expected the placements {list(bound[4].placements)}, found "
                f"{list(found._spec.placements)}"
            )
        if data.numel() and not data.data_ptr():
            raise StepcError(f"{where}: its storage was freed")
        return data

    def _check_record(self, position: int) -> None:
        record = self.records[position]
        if self._table is not None:
            # Released first, so that the record differs until all of it is bound, even after an error below.
            record.versions = self._table.release(position)
        tensor = record.tensor
        if record.is_dtensor:
            if not isinstance(tensor, DTensor):
                raise Resharded(record.name)
            shard, spec = tensor._local_tensor, tensor._spec
            if spec is not record.spec:
                if not same_spec(spec, record.spec):
                    raise Resharded(record.name)
                record.spec = spec
        else:
            shard = tensor
            if isinstance(tensor, DTensor):
                raise Resharded(record.name)
        if shard.shape != record.shape or shard.dtype != record.dtype or shard.device != record.device:
            raise Resharded(record.name)
        pointer = shard.data_ptr()
        # A view of the same memory (p.data = p.data.t()) has the same address, so strides are checked, too.
        if pointer != record.pointer or (
            not shard.is_contiguous() if record.staged is None else shard.stride() != record.stride
        ):
            self._bind_parameter(record, shard, pointer)
        state = record.state
        for number, info in enumerate(record.info.states):
            bound, found = record.state_tensors[number], state.get(info.name)
            if bound is not None and found is bound[0]:
                # An unchanged tensor object may have new memory, or another type, shape or placements.
                held = found._local_tensor if bound[4] is not None else found
                if (
                    held.data_ptr() == bound[1] and held.dtype is bound[2]
                    and held.shape == bound[3] and held.is_contiguous()
                    and (bound[4] is None or found._spec is bound[4])
                ):  # fmt: skip
                    continue
            data = self._expect_state(record, number, found)
            pointer, spec = data.data_ptr(), found._spec if record.state_dtensor[number] else None
            self._moved = True
            self.instance.bind_state(
                record.index, number, pointer, data.numel() * data.element_size()
            )
            record.state_tensors[number] = (found, pointer, data.dtype, data.shape, spec)
            record.versions = None
        if state.get(STEP) is not record.step_view or (
            record.step_view.data_ptr() != record.step_pointer
        ):
            self._take_step(record)
        if record.masters and record.versions != (tensor._version, shard._version):
            refresh_masters(self.instance, record.info, state, shard)
            record.versions = (tensor._version, shard._version)
        table = self._table
        if table is not None:
            description = record.description()
            if description is None or not table.set(position, description):
                self._table = None
                for other, one in enumerate(self.records):
                    one.versions = table.release(other) or one.versions

    def _bind_parameter(self, record: Record, shard: torch.Tensor, pointer: int) -> None:
        where = f"parameter '{record.name}'"
        if shard.numel() and not pointer:
            raise StepcError(f"{where}: its storage was freed")
        if not same_shard(tuple(shard.shape), record.info.local_shape, record.info.placements):
            raise StepcError(
                f"{where}: expected a shard of shape {list(record.info.local_shape or ())}, found "
                f"{list(shard.shape)}"
            )
        size = shard.numel() * shard.element_size()
        record.staged, record.stride = None, shard.stride()
        bound = pointer
        if not shard.is_contiguous():
            record.staged = contiguous_like(where, shard)
            bound = record.staged.data_ptr()
            self._copied_parameters.add(record.name, shard)
        self._moved = True
        self.instance.bind_parameter(record.index, bound if size else 0, size)
        record.pointer = pointer
        record.versions = None

    def _take_step(self, record: Record) -> None:
        value = record.state.get(STEP)
        if value is None:
            raise StepcError(f"parameter '{record.name}': its state has no '{STEP}'")
        record.step_view = record.state[STEP] = self.steps[record.index]
        record.step_view.fill_(
            whole_step(value, f"parameter '{record.name}': state '{STEP}'")
        )

    def bind_gradients(self, again: bool = False) -> None:
        """Gives the library this step's gradients. The library decides what an absent gradient means.

        If gradients became pending sums, or are no longer pending, another plan is needed: raises
        `Resharded`. With ``again`` the plan was made for these gradients, so a `GradientError` is raised.
        """
        pointers = self._gradients
        unusual, self._unusual = self._unusual, None
        if unusual is None:
            unusual = range(len(self.records))
            if self._table is not None:
                unusual = self._table.bind_gradients()
        for record in [self.records[position] for position in unusual]:
            gradient = getattr(record.tensor, self._attribute, None)
            if gradient is None:
                pointers[record.index] = 0
                continue
            if record.grad_dtensor:
                if not isinstance(gradient, DTensor):
                    raise GradientError(self._gradient_text(record, "a DTensor", "a plain tensor"))
                # Comparing meshes is slow, and they are nearly always one object.
                spec, own = gradient._spec, record.spec
                if (spec is not own or record.apart) and (
                    not same_placements(spec.placements, record.grad_placements)
                    or (spec.mesh is not own.mesh and spec.mesh != own.mesh)
                ):
                    if self._is_whole(record, gradient):
                        pointers[record.index] = self._cut(record, gradient)
                        continue
                    raise self._other_plan(record, gradient, again)
                shard = gradient._local_tensor
            else:
                if isinstance(gradient, DTensor):
                    raise GradientError(self._gradient_text(record, "a plain tensor", "a DTensor"))
                shard = gradient
            if type(shard) is not torch.Tensor:
                shard = arrived(shard)
                self._kept.append(shard)
            pointers[record.index] = self._gradient_pointer(record, shard)
        self.instance.bind_gradients(pointers, len(self.instance.parameters))
        self._copied_gradients.warn()

    def any_gradient(self) -> bool:
        """Whether any parameter has a gradient."""
        return any(getattr(record.tensor, self._attribute, None) is not None for record in self.records)

    def _gradient_pointer(self, record: Record, shard: torch.Tensor) -> int:
        self._refuse_kind(record, shard)
        if shard.shape != record.grad_shape and not same_shard(
            tuple(shard.shape), tuple(record.grad_shape), record.info.gradient_placements
        ):
            raise GradientError(self._gradient_text(record, list(record.grad_shape), list(shard.shape)))
        if not shard.is_contiguous():
            self._copied_gradients.add(record.name, shard)
            shard = shard.contiguous()
            self._kept.append(shard)
        pointer = shard.data_ptr()
        # A gradient without an address would count as absent.
        if not pointer and shard.numel():
            raise GradientError(self._gradient_text(record, "memory", "a freed storage"))
        return pointer

    def _refuse_kind(self, record: Record, shard: torch.Tensor) -> None:
        if shard.dtype is not record.grad_dtype or shard.device != record.device:
            raise GradientError(
                self._gradient_text(
                    record, f"{record.grad_dtype} on {record.device}",
                    f"{shard.dtype} on {shard.device}",
                )
            )  # fmt: skip
        if shard.layout is not torch.strided:
            raise GradientError(self._gradient_text(record, "a dense tensor", shard.layout))

    def _gradient_text(self, record: Record, expected: Any, found: Any) -> str:
        return f"parameter '{record.name}': gradient: expected {expected}, found {found}"

    def _is_whole(self, record: Record, gradient: DTensor) -> bool:
        """Whether this rank's part of the gradient contains its shard's gradient, and more."""
        own, spec = record.spec, gradient._spec
        return (
            (spec.mesh is own.mesh or spec.mesh == own.mesh)
            and gradient.shape == record.tensor.shape
            and not record.apart and not record.ranges
            and is_whole_where_cut(spec.placements, own.placements)
        )

    def _cut(self, record: Record, gradient: DTensor) -> int:
        """Cuts this rank's shard out of its larger gradient, without messages, and returns the address.
        Row-wise parallelism with replicated input gives such gradients, for example."""
        self._refuse_kind(record, gradient._local_tensor)
        try:
            shard = cut(gradient, record.tensor, record.moved).contiguous()
        except ValueError as error:
            text = f"placements {list(record.spec.placements)}"
            raise GradientError(
                self._gradient_text(record, text, list(gradient.placements)) + f": {error}"
            ) from error
        self._kept.append(shard)
        return self._gradient_pointer(record, shard)

    def _other_plan(self, record: Record, gradient: DTensor, again: bool) -> Exception:
        """The exception to raise for a gradient with placements for which the library was not compiled, if
        this rank cannot cut its shard out of the gradient."""
        expected, found, mesh = list(record.grad_placements), list(gradient.placements), record.spec.mesh
        sums = is_partial_sum(gradient.placements)
        if gradient.device_mesh != mesh or not (sums or record.pending):
            return GradientError(self._gradient_text(
                record, f"placements {expected} on {mesh}", f"{found} on {gradient.device_mesh}"
            ))  # fmt: skip
        if sums and self.partial != "reduce":
            return GradientError(
                self._gradient_text(record, f"placements {expected}", found)
                + "; reduce it before the step, or pass partial_gradients='reduce'"
            )
        if again:
            return GradientError(self._gradient_text(record, f"placements {expected}, as declared", found))
        return Resharded(
            record.name, f"has a gradient with the placements {found}, {expected} when it was bound"
        )

    def step(self) -> None:
        """Steps, and tells autograd that the parameters changed.

        On a GPU the step is enqueued. The next step, or `settle`, raises its error.
        """
        staged = [Staged(record.name, local(record.tensor), record.staged) for record in self._staged]
        for _, shard, copy in staged:
            copy.copy_(shard)
        try:
            with self._device.ordered():
                self._enqueue()
            copy_back(staged)
        except BaseException as error:
            copy_back_after(error, staged)
            self._kept.clear()
            # The step's own error is raised, not one of autograd.
            with contextlib.suppress(RuntimeError):
                self._tell_autograd()
            raise
        self._kept.clear()
        self._tell_autograd()

    def _enqueue(self) -> None:
        if self._device.kind == _abi.DEVICE_CPU:
            self.instance.step()
            return
        self.instance.poll()
        self.instance.enqueue()

    def expect_gradients_in_place(self) -> None:
        refuse_copies(self._kept)

    def refresh(self) -> None:
        """Copies what is bound to the GPU, where later replays of graphs read it."""
        with self._device.ordered():
            self.instance.refresh()

    def settle(self) -> None:
        """Waits for the step that was enqueued, and raises its error if it failed."""
        while self._device.kind != _abi.DEVICE_CPU and not self.instance.poll():
            time.sleep(_LOOK_SECONDS)

    def _tell_autograd(self) -> None:
        if self._table is not None:
            self._table.stepped()
            return
        # Also for the shards of DTensors: an autograd graph may have saved what to_local() returned.
        torch.autograd.graph.increment_version(
            [record.tensor for record in self.records]
            + [record.tensor._local_tensor for record in self.records if record.is_dtensor]
        )
        for record in self.records:
            if record.masters:
                record.versions = (record.tensor._version, local(record.tensor)._version)

    def expect_loaded(self) -> None:
        """Call this after masters or steps were loaded: the next check compares them with the parameters."""
        for position, record in enumerate(self.records):
            if self._table is not None:
                self._table.release(position)
            record.versions = None

    def close(self) -> None:
        self.instance.close()

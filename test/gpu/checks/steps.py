"""Steps of a library on drawn values, with poison around all memory that it is given."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Iterable

import torch
from checks.machine import Failed, Place
from stepc import _abi
from stepc._described import Parameter
from stepc._library import Instance, Library

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
BITS = {4: torch.int32, 2: torch.int16}
GUARD = 512  # bytes of poison before and behind; 0xff… is NaN in every type
Runs = list[tuple[int, int, int]]


class Guarded:
    """Memory with poison around it. `shift`: its first element stands so many elements off a border of
    512 bytes.
    """

    def __init__(self, place: Place, size: int, shift: int = 0) -> None:
        room = size + 2 * GUARD + shift
        self.buffer = torch.full((room + GUARD,), 0xFF, dtype=torch.uint8, device=place.device)
        self.first = GUARD + shift + -self.buffer.data_ptr() % GUARD
        self.bytes = self.buffer[self.first : self.first + size]

    @property
    def pointer(self) -> int:
        return self.buffer.data_ptr() + self.first if self.bytes.numel() else 0

    def damaged(self) -> bool:
        rest = torch.cat([self.buffer[: self.first], self.buffer[self.first + self.bytes.numel() :]])
        return not bool((rest == 0xFF).all())


class GuardedAllocator:
    """The workspace's memory."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.given: dict[int, Guarded] = {}
        self.overrun = False

    def allocate(self, size: int, alignment: int) -> int:
        assert GUARD % alignment == 0, alignment
        made = Guarded(self.place, size)
        self.given[made.pointer] = made
        return made.pointer

    def release(self, address: int) -> None:
        self.overrun |= self.given.pop(address).damaged()


def draw(
    shape: Iterable[int], dtype: torch.dtype, generator: torch.Generator, scale: float = 1.0
) -> torch.Tensor:
    return (scale * torch.randn(tuple(shape), generator=generator)).to(dtype)


class Steps:
    """One rank's instance, and drawn values of all parameters. The same seed draws the same, wherever it
    runs.

    With `graph` steps replay a graph; with `counts_itself` their numbers are bound in the device's memory. A
    library that skips steps on the device asks for that.
    """

    def __init__(self, library: Library, place: Place, seed: int, *, misaligned: bool = False, transport=None,
                 timeout: float = 60.0, graph: bool = False, counts_itself: bool = False) -> None:  # fmt: skip
        self.library, self.place, self.seed, self.misaligned = library, place, seed, misaligned
        self.allocator = GuardedAllocator(place)
        self.instance = Instance(
            library, transport, threads=4, timeout=timeout, device=place.options(self.allocator), graph=graph
        )
        self.memory: dict[str, Guarded] = {}
        self.runs: dict[str, Runs] = {}
        self.kinds: dict[str, tuple[torch.dtype, int]] = {}  # and how many elements the whole tensor has
        for one in self.instance.parameters:
            self._bind(one)
        count = len(self.instance.parameters)
        counts_itself |= library.model is not None and library.model.steps_on_device
        self.memory_of_numbers = _abi.MEMORY_DEVICE if counts_itself else _abi.MEMORY_HOST
        self.steps = torch.zeros(
            max(count, 1), dtype=torch.int64, device=place.device if counts_itself else "cpu"
        )
        self.instance.bind_steps(self.steps.data_ptr(), self.memory_of_numbers)
        self.pointers = (c.c_uint64 * max(count, 1))()
        self.gradients: list[Guarded] = []  # of the steps that are under way
        self.damage: list[str] = []

    def _generator(self, what: str) -> torch.Generator:
        # Not hash(): that differs from process to process.
        number = sum((i + 1) * byte for i, byte in enumerate(what.encode())) + 1000003 * len(what)
        return torch.Generator().manual_seed((self.seed * 7919 + number) % 2**31)

    def _shift(self, width: int, generator: torch.Generator) -> int:
        return width * int(torch.randint(0, 16, (1,), generator=generator)) if self.misaligned else 0

    def _put(
        self, name: str, whole: torch.Tensor, runs: Runs, local: Iterable[int], generator: torch.Generator
    ) -> Guarded:
        """Memory of a shard, filled with its part of the whole tensor."""
        flat, width = whole.reshape(-1), whole.element_size()
        shard = torch.zeros(math.prod(local), dtype=whole.dtype)
        if not flat.numel():
            runs = ()
        for at, to, length in runs:
            shard[to : to + length] = flat[at : at + length]
        made = Guarded(self.place, shard.numel() * width, self._shift(width, generator))
        made.bytes.copy_(shard.view(torch.uint8))
        self.runs[name], self.kinds[name] = runs, (whole.dtype, whole.numel())
        return made

    def _bind(self, one: Parameter) -> None:
        if not one.member:
            return
        generator = self._generator(one.name)
        values = draw(_elements(one), DTYPES[one.dtype], generator)
        name = f"param:{one.name}"
        made = self.memory[name] = self._put(
            name, values, self.instance.shard_runs(one.index), one.local_shape, generator
        )
        self.instance.bind_parameter(one.index, made.pointer, made.bytes.numel())
        for number, state in enumerate(one.states):
            dtype = DTYPES[state.dtype]
            whole = (
                values.to(dtype) if state.master else torch.full(state.global_shape, state.init, dtype=dtype)
            )
            name = f"state:{one.name}:{state.name}"
            runs = self.instance.shard_runs(one.index, number)
            made = self.memory[name] = self._put(name, whole, runs, state.local_shape, generator)
            self.instance.bind_state(one.index, number, made.pointer, made.bytes.numel())

    def draw_gradients(self, number: int) -> list[Guarded]:
        """Gradients of a step, one by one in memory of their own."""
        made = []
        for one in self.instance.parameters:
            if not one.member:
                made.append(Guarded(self.place, 0))
                continue
            name = f"grad:{one.name}"
            generator = self._generator(f"{name}@{number}")
            scale = 10.0 ** (2.5 * float(torch.rand(1, generator=generator)) - 2)
            values = draw(_elements(one), DTYPES[one.gradient_dtype], generator, scale)
            runs = self.instance.shard_runs(one.index, _abi.GRADIENT)
            made.append(self._put(name, values, runs, one.gradient_local_shape, generator))
        return made

    def use(self, gradients: list[Guarded]) -> None:
        self.pointers[: len(gradients)] = [one.pointer for one in gradients]
        self.instance.bind_gradients(self.pointers, len(gradients))
        self.gradients = gradients

    def step(self, number: int) -> None:
        """A step on fresh gradients, done when this returns; they must not change."""
        gradients = self.draw_gradients(number)
        before = [one.bytes.clone() for one in gradients]
        self.use(gradients)
        self.instance.step()
        self.place.synchronize()
        for one, made, old in zip(self.instance.parameters, gradients, before, strict=True):
            if made.damaged() or not torch.equal(made.bytes, old):
                self.damage.append(f"step {number} wrote into or beside the gradient of '{one.name}'")

    def moved(self, library: Library, transport: object) -> Steps:
        """Another library in the place of this one: with its parameters and step counts, and its states where the
        other library has them."""
        after = Steps(library, self.place, self.seed, misaligned=self.misaligned, transport=transport)
        for name, made in after.memory.items():
            if name.startswith("param:"):
                made.bytes.copy_(self.memory[name].bytes)
            else:
                made.bytes.fill_(0xFF)
        after.steps.copy_(self.steps)
        after.instance.move_states(self.instance)
        self.close()
        return after

    def values(self) -> dict[str, tuple[Runs, torch.Tensor, int]]:
        """All that a step changes: which elements there are, their bits, and how many the whole tensor
        has.
        """
        self.place.synchronize()
        result = {}
        for name, made in self.memory.items():
            if made.damaged():
                self.damage.append(f"{name}: written before or behind it")
            dtype, count = self.kinds[name]
            result[name] = self.runs[name], made.bytes.cpu().view(BITS[dtype.itemsize]), count
        for one in self.instance.parameters:
            for number, metric in enumerate(one.metrics):
                bits = torch.tensor(self.instance.metrics(one.index, number)).view(BITS[4])
                runs = self.instance.shard_runs(one.index, _abi.METRIC - number)
                result[f"metric:{one.name}:{metric.name}"] = runs, bits, math.prod(metric.global_shape)
        steps = self.steps[: len(self.instance.parameters)].to("cpu", torch.int32)
        return result | {"steps": ([(0, 0, len(steps))], steps, len(steps))}

    def close(self) -> None:
        self.instance.close()
        if self.allocator.overrun:
            self.damage.append("the workspace: written before or behind it")
        if self.allocator.given:
            self.damage.append("the workspace was not given back")
        if self.damage:
            raise Failed("; ".join(self.damage[:3]))


def _elements(one: Parameter) -> Iterable[int]:
    """The shape of a parameter's elements. The one that stands for the model has none."""
    return (0,) if one.is_model else one.global_shape


def assembled(ranks: list[dict[str, tuple[Runs, torch.Tensor, int]]]) -> dict[str, torch.Tensor]:
    """Whole tensors of what ranks hold; replicas have to be equal, and nothing may be missing."""
    result, known = {}, {}
    for values in ranks:
        for name, (runs, shard, count) in values.items():
            whole = result.setdefault(name, torch.zeros(count, dtype=shard.dtype))
            seen = known.setdefault(name, torch.zeros(count, dtype=torch.bool))
            for at, to, length in runs:
                part, there = shard[to : to + length], slice(at, at + length)
                if bool((seen[there] & (whole[there] != part)).any()):
                    raise Failed(f"{name}: replicas differ")
                whole[there], seen[there] = part, True
    missing = [name for name, seen in known.items() if not bool(seen.all())]
    if missing:
        raise Failed(f"{missing[0]}: no rank holds all of it")
    return result


def stepped(library: Library, place: Place, seed: int, count: int = 3, **more) -> dict[str, torch.Tensor]:
    """What `count` steps on one rank come to."""
    steps = Steps(library, place, seed, **more)
    for number in range(1, count + 1):
        steps.step(number)
    result = assembled([steps.values()])
    steps.close()
    return result


def expect_equal(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], what: str) -> int:
    """Compares bits; the number of elements that were compared."""
    if found.keys() != expected.keys():
        raise Failed(f"expected {sorted(expected)}, found {sorted(found)}")
    lines = []
    for name, want in expected.items():
        differ = (found[name] != want).nonzero().flatten()
        if len(differ):
            at = int(differ[0])
            lines.append(f"{name}: {len(differ)} of {want.numel()} elements differ, the first at {at}: "
                         f"{int(found[name][at]):#x}, {what} {int(want[at]):#x}")  # fmt: skip
    if lines:
        raise Failed("; ".join(lines[:3]) + (f"; {len(lines) - 3} more tensors" if len(lines) > 3 else ""))
    return sum(one.numel() for one in expected.values())

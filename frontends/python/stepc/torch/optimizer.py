"""A compiled step as a ``torch.optim.Optimizer``."""

from __future__ import annotations

import contextlib
import dataclasses
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from stepc._calls import cause
from stepc._compile import Cluster
from stepc._described import Parameter
from stepc._inputs import Spec
from stepc._library import Instance, Library
from stepc.errors import GraphError, StepcError, StepcTimeout, TransportError
from stepc.torch import devices
from stepc.torch.binding import Binding, Record, Resharded
from stepc.torch.building import build_library, compile_options, make_instance
from stepc.torch.checkpoint import load_into
from stepc.torch.declarations import Blocks, Bucket, Declarations, Placed
from stepc.torch.describe import Connected, connected, describe, describe_frozen, group_ranks, is_pretended
from stepc.torch.entries import Entry
from stepc.torch.failures import Failures, expect_no_fork
from stepc.torch.frozen import adopt_unfrozen, expect_trained, show_states, trained, waits_for_route
from stepc.torch.group import shown
from stepc.torch.groups import Hyperparameters, Question, Routing, expect_one_group
from stepc.torch.inputs import Inputs
from stepc.torch.manifest import world_manifest
from stepc.torch.meeting import Meeting, agree, ask_first
from stepc.torch.metrics import read_metrics
from stepc.torch.model_group import ModelGroup
from stepc.torch.moving import Moves, block_states
from stepc.torch.names import canonical_name
from stepc.torch.nothing import Nothing
from stepc.torch.options import expect_no_request, fill_absent
from stepc.torch.routed import RoutedGroups
from stepc.torch.shown import expect_names, is_empty, states_left
from stepc.torch.states import STEP, LazyStates, allocate, carry_over, local
from stepc.torch.transport import TorchTransport
from stepc.torch.verify import verify

# How long ranks wait for each other without a timeout=: in a step, and when they make optimizers. Before
# that they load models, which takes some ranks minutes longer than others.
_STEP_SECONDS, _LOADING_SECONDS = 120.0, 600.0


# The largest timeout, a year, because clocks and timers of the system do not take any number.
_MOST_SECONDS = 366 * 24 * 3600.0


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real):
        raise TypeError(f"timeout: expected a number of seconds, found {timeout!r}")
    if not 0 <= timeout <= _MOST_SECONDS:
        raise ValueError(f"timeout: expected from 0 to {_MOST_SECONDS:.0f} seconds, found {shown(timeout)}")
    return float(timeout)


def _expect_threads(threads: Any) -> None:
    if threads is None:
        return
    if isinstance(threads, bool) or not isinstance(threads, numbers.Integral):
        raise TypeError(f"threads: expected a whole number, found {threads!r}")
    if not 0 <= threads < 2**31:
        raise ValueError(f"threads: expected a number from 0 on, found {shown(threads)}")


class Optimizer(Failures, RoutedGroups):
    """Steps a (sharded) model with a compiled library.

    The library is compiled, opened and bound by :meth:`prepare`, which the first ``step`` calls, or
    the first ``load_state_dict`` of states. So the optimizer may be made before the model is sharded:
    until then ``param_groups`` may get other parameters, and ``state`` is empty, as torch's is.
    Groups exist from the start, one per route (or per caller's group and route).

    Making an optimizer of a definition is a collective call of the ranks of ``process_group``. The first rank
    asks the compiler. An error of the compiler is raised on all ranks.

    Args:
        params: ``model.named_parameters()``, or dicts with such pairs under ``"params"``.
        spec: path or text of the optimizer definition. May be left out with ``library``.
        library: a compiled library, for machines without the compiler. If it has several targets, the
            first that is for the parameters' device is taken; ``cpu``, ``emulated`` and ``interpret``
            are for a CPU.
        process_group: the ranks that make this optimizer and step together; the default group without it.
        model_group: the ranks of all pipeline stages over which the definition's ``model`` block computes.
            They prepare and step together, with one library, although no mesh connects them.
        shared: patterns of parameters of which several stages have copies (tied embeddings), as one
            parameter.
        timeout: seconds after which a rank gives up waiting for another one; without it 120 in steps,
            and 600 when the optimizer is made.
        threads: workers of the step; ``torch.get_num_threads()`` without it.
        batch, replicated, placements, blocks, buckets, flatten, gradient: see
            :func:`stepc.torch.export_manifest`.
        partial_gradients: ``"reduce"`` sums pending gradients in the step, ``"error"`` refuses.
        capturable: CUDA graphs (``torch.cuda.graph``) may capture steps; each replay is a step. Step counts
            are tensors on the GPU. If hyperparameters are, too, replays read their values of the time.
        target, strategy, workspace_limit, state_limit, numerics, arguments, if_present, cluster: see
            :func:`stepc.compile`; not beside ``library``.
        model: hyperparameters of the definition's ``model`` block, ``{"max_norm": 0.5}``. They are in
            ``optimizer.model`` and may change between steps.
        routes: hyperparameters by rule or route, ``Muon={"lr": 0.02}``, or one for all routes that
            have it, ``lr=0.02``. ``betas=(a, b)`` stands for ``beta1`` and ``beta2``. ``foreach``, ``fused``
            and ``maximize=False``, which torch's optimizers take, are accepted and ask for nothing.
    """

    def __init__(
        self,
        params: Any,
        spec: Spec | None = None,
        *,
        library: str | os.PathLike[str] | None = None,
        process_group: dist.ProcessGroup | None = None,
        model_group: dist.ProcessGroup | None = None,
        shared: Sequence[str] = (),
        timeout: float | None = None,
        threads: int | None = None,
        batch: Sequence[str] | Mapping[str, int] = (),
        replicated: Sequence[str] = (),
        placements: Mapping[str, Placed] | None = None,
        blocks: Mapping[str, Blocks] | None = None,
        buckets: Mapping[str, Bucket] | None = None,
        flatten: Sequence[str] | Mapping[str, int] = (),
        gradient: str = "grad",
        partial_gradients: str = "reduce",
        capturable: bool = False,
        target: str | Sequence[str] | None = None,
        strategy: str | Sequence[str] | Mapping[str, str] | None = None,
        workspace_limit: int | str | None = None,
        state_limit: int | str | None = None,
        numerics: str | None = None,
        arguments: Sequence[str] = (),
        if_present: Sequence[str] = (),
        cluster: Cluster | None = None,
        model: Any = None,
        **routes: Any,
    ) -> None:
        self._spec, self._process_group, self._partial = spec, process_group, partial_gradients
        self._threads, self._capturable = threads, capturable
        self._binding: Binding | None = None
        # The model's count of steps, where the library counts it. None before anything was bound or loaded.
        self._model_taken: torch.Tensor | None = None
        # The bound states of the model by name, one number each, or those that were loaded before.
        self._model_states: dict[str, torch.Tensor] = {}
        self._hyperparameters: Hyperparameters | None = None
        self._inputs = Inputs()
        self._failure, self._failed_in, self._process = None, "step", os.getpid()
        # States by name while nothing is bound, for parameters that come back as other tensors.
        self._kept_states: dict[str, dict[str, Any]] = {}
        #: The states that stay with blocks: of bound parameters, and of those whose states are kept.
        self._block_states: set[tuple[str, str]] = set()
        #: The last bound library in which states stay with blocks.
        self._before: str | None = None
        #: The manifest that was compiled last, and the `_before` with which it was.
        self._compiled: tuple[Any, str | None] = None, None
        # The entries that this class put into `state`, by parameter: its name and states. The trainer put in
        # all others.
        self._shown: dict[torch.Tensor, tuple[str, dict[str, Any]]] = {}
        self._warned: set[str] = set()
        # An error in one rank's own arguments is raised within the meeting, so that all ranks raise.
        self._timeout, wrong = _STEP_SECONDS, None
        try:
            self._timeout = _seconds(timeout) if timeout is not None else _STEP_SECONDS
            _expect_threads(threads)
        except (TypeError, ValueError) as error:
            wrong = error
        with self._together(library, _LOADING_SECONDS if timeout is None else self._timeout) as self._meeting:
            if wrong is not None:
                raise wrong
            if (spec is None) == (library is None):
                raise TypeError(
                    f"expected a definition or library=, found {'neither' if spec is None else 'both'}"
                )
            if partial_gradients not in ("reduce", "error"):
                raise ValueError(
                    f"partial_gradients: expected 'reduce' or 'error', found {partial_gradients!r}"
                )
            self._model_group = ModelGroup.of(model_group, process_group, shared)
            self._declarations = Declarations.of(
                batch, replicated, placements, blocks, buckets, flatten, gradient,
                partial_gradients == "reduce", shared=shared,
            )
            self._compile_options = compile_options(
                library, target=target, strategy=strategy, workspace_limit=workspace_limit,
                state_limit=state_limit, numerics=numerics, arguments=arguments, if_present=if_present,
                cluster=cluster,
            )  # fmt: skip
            self._given_library = Library(library) if library is not None else None
            super().__init__(params, routes, model)
            if self._model_group.ranks and self._routing.model is None:
                raise ValueError("model_group: expected a definition with a model block, found none")
            self._trained = trained(self._named())
            if self._meeting is not None:
                agree(None, self._meeting)
        self._meeting = None

    def _together(
        self, library: str | os.PathLike[str] | None, seconds: float
    ) -> contextlib.AbstractContextManager[Meeting | None]:
        """The meeting of the ranks that make their optimizers together: one of them asks the compiler for
        all. None for a ready library and for torch's fake process group."""
        if library is not None or is_pretended():
            return contextlib.nullcontext()
        return Meeting(self._process_group, "making an optimizer", seconds)

    def _route(self, named: Sequence[tuple[str, torch.Tensor]]) -> Routing:
        if self._given_library is not None:
            return Routing.of_library(self._given_library)
        question = self._question(named)
        # When parameters are added later, other ranks may add none, so a rank then asks the compiler itself.
        meeting = self._meeting
        return Routing.of_answer(question.answer() if meeting is None else ask_first(question, meeting))

    def _question(self, named: Sequence[tuple[str, torch.Tensor]]) -> Question:
        return Question.of(self._spec, named, self._declarations, self._compile_options["if_present"])

    def _route_unfrozen(self, meeting: Meeting) -> Routing | None:
        """The routing of the current parameters if a group without route has unfrozen ones, else None."""
        if self._given_library is not None:
            return Routing.of_library(self._given_library) if waits_for_route(self) else None
        question: Question | None = None
        # Errors of broken groups are raised later, when the ranks describe their parameters.
        with contextlib.suppress(ValueError, TypeError):
            if waits_for_route(self):
                question = self._question(self._all_names(self._named()))
        answer = ask_first(question, meeting)
        return None if answer is None else Routing.of_answer(answer)

    @property
    def state(self) -> LazyStates:  # type: ignore[override]
        """States by parameter. What is cleared or deleted begins anew in the next step; states that are put
        in their place are taken if they fit."""
        return self._states

    @state.setter
    def state(self, entries: Any) -> None:
        states = LazyStates.of(self, entries)
        if "_states" in self.__dict__:
            self._states.hide_options()
        self._states = states

    def _show(self, name: str, tensor: torch.Tensor, states: dict[str, Any]) -> None:
        self._shown[tensor] = name, states
        self._states.put(tensor, states)

    def _hide(self, tensor: torch.Tensor) -> None:
        self._shown.pop(tensor, None)
        self._states.put(tensor, None)

    # --- prepare ---

    def prepare(self) -> None:
        """Compiles or loads the library for the parameters as they are now, and binds them.

        Collective over the ranks that the parameters' meshes, or ``model_group=``, connect with this one.
        States of parameters that stay are kept, wherever their shards have moved to.
        """
        self._prepare("prepare() was called")

    @torch.no_grad()
    def _prepare(self, why: str) -> None:
        devices.refuse_capture(f"expected an optimizer that is prepared, found that {why}")
        expect_no_fork(self._process)
        left, known = self.transport, self._connected()
        try:
            with (
                torch.autograd.profiler.record_function("stepc.prepare"),
                Meeting(
                    self._model_group.process_group, "prepare()", self._timeout, why, left,
                    known.ranks | set(self._model_group.ranks), self._model_group.noted(known.note),
                ) as meeting,
            ):
                self._close()
                self._plan(meeting)
        except (StepcTimeout, TransportError) as error:
            self._close(failed=True)
            if left is not None:
                error.args = (f"{error}\nparameters of this rank were not stepped, those of other "
                              "ranks may be: load a checkpoint before going on",)  # fmt: skip
                self._failure = error
            raise

    def _connected(self) -> Connected:
        """The ranks with which this rank prepares, with those of frozen parameters."""
        try:
            named = self._all_names(self._named())
        except ValueError:  # broken groups: the error is raised in the meeting with the tensors' ranks
            named = [("", tensor) for group in self.param_groups for tensor in group["params"]]
        return connected(named, group_ranks(self._process_group), self._declarations)

    def _with_rule(self, entry: Entry) -> Entry:
        """The entry. If its placements are ambiguous, ``elementwise`` is filled in from its rule."""
        name = canonical_name(entry.name)
        route = self._routing.parameters.get(name)
        if entry.local_shape is None or route is None:
            return entry
        divided = entry.blocks or name in self._routing.divided
        elementwise = self._routing.routes[route].elementwise and not divided
        return dataclasses.replace(entry, elementwise=elementwise)

    def _plan(self, meeting: Meeting) -> None:
        problem: Exception | None = None
        mine, frozen, unmatched, group = {}, [], [], group_ranks(self._process_group)
        device: devices.Host | devices.Gpu = devices.Host()
        routing = self._route_unfrozen(meeting)
        try:
            adopt_unfrozen(self, routing)
            known = self._routing.hyperparameters
            for number, options in enumerate(self.param_groups):
                expect_no_request(options, known, self._capturable, f"parameter group {number}")
            named = self._named()
            expect_one_group(self.param_groups)
            expect_trained(named, self._trained)
            named = self._all_names(named)
            # Where other ranks do not meet, patterns may match their parameters.
            if set(meeting.ranks) == set(group_ranks(self._model_group.process_group)):
                unmatched = self._declarations.unmatched(named)
            mine = describe(named, group, self._declarations)
            frozen = describe_frozen(named, self._declarations)
            device = devices.of_tensors((name, local(tensor)) for name, (_, tensor) in mine.items())
            if mine:
                devices.expect_target(self._compile_options["target"], device)
            if mine and self._capturable:
                device.expect_captures()
            # A pipeline stage may be frozen as a whole. A job of one rank would then train nothing.
            if not mine and len(group) == len(meeting.ranks) == 1:
                raise ValueError("expected at least one parameter that needs a gradient")
        except (TypeError, ValueError, StepcError) as error:
            problem = error
        entries = [self._with_rule(entry) for entry, _ in mine.values()] + frozen
        manifest, world = world_manifest(entries, meeting, problem, unmatched, self._model_group.ranks)
        library = self._given_library
        if library is None:
            options = self._compile_options | {"target": self._compile_options["target"] or device.target}
            # If the parameters are those that it was compiled for last, the library stays the same.
            before = self._compiled[1] if manifest == self._compiled[0] else self._before
            library = build_library(self._spec, options, manifest, world, meeting, self._warned, before)
            self._compiled = manifest, before
        try:
            if self._given_library is not None and world:
                verify(library, manifest, world)
            if world:
                library = devices.choose_target(library, device)
        except StepcError as error:
            problem = error
        if problem is None and world and library.model is not None:
            problem = self._model_group.problem(world)
            if library.model.steps_on_device:
                device.keep_numbers()
        agree(problem, meeting, world, library.target if world else "")
        if not world:
            try:
                self._bind(Nothing(), device, {}, manifest, meeting, world)
                agree(None, meeting)
            except BaseException:
                self._close()
                raise
            return
        threads = self._threads if self._threads is not None else torch.get_num_threads()
        instance = make_instance(library, device, world, meeting, threads, self._timeout)
        try:
            try:
                tensors = {name: tensor for name, (_, tensor) in mine.items()}
                self._bind(instance, device, tensors, manifest, meeting, world)
            except Exception as error:  # noqa: BLE001 - agree() raises it
                # Peers may wait for this rank in a redistribution of states.
                instance.abort(cause(error))
                problem = error
            # No rank may step before all have bound their tensors. If only some stepped, the model would be
            # half stepped.
            agree(problem, meeting)
        except BaseException as error:
            instance.abort(cause(error))
            self._close()
            instance.close()
            raise

    def _bind(
        self, instance: Instance, device: devices.Host | devices.Gpu,
        tensors: dict[str, torch.Tensor], manifest: dict[str, Any], meeting: Meeting,
        world: tuple[int, ...],
    ) -> None:  # fmt: skip
        axes = {mesh["name"]: tuple(axis["name"] for axis in mesh["axes"])
                for mesh in manifest["meshes"]}  # fmt: skip
        mesh_of = {item["name"]: axes[item["mesh"]] for item in manifest["parameters"]}
        steps = torch.zeros(
            max(len(instance.parameters), 1), dtype=torch.int64, device=device.numbers or "cpu"
        )
        records = []
        infos = [info for info in instance.parameters if info.member and info.name in tensors]

        def new_states(info: Parameter) -> dict[str, torch.Tensor]:
            return allocate(info, tensors[info.name], mesh_of[info.name], instance)

        # States that stay with blocks are moved first, by all ranks together. The others are made one
        # parameter after the other, so that they do not stand beside all those of before.
        may_move = {name for name, _ in self._block_states | block_states(instance.parameters)}
        moves, problem = Moves(meeting, world), None
        kept, given, early = {}, set(), {}
        try:
            kept, given = states_left(self)
            early = {info.name: new_states(info) for info in infos if info.name in may_move}
            moves.find(instance, early, kept, self._block_states)
        except Exception as error:  # noqa: BLE001 - raised by `agree`, on all ranks
            problem = error
        moves.agree(problem)
        moved = moves.run()
        for info in infos:
            tensor, state = tensors[info.name], early.get(info.name) or new_states(info)
            state[STEP] = steps[info.index]
            old = kept.pop(info.name, {})
            if info.name in given:
                expect_names(old, state, info.name)
            if old:
                old = old | {name: moved[info.name, name] for name in state if (info.name, name) in moved}
            carry_over(state, old, info, instance.transport)
            records.append(Record(info, tensor, state, state[STEP], mesh_of[info.name]))
        self._hyperparameters = Hyperparameters(
            instance.library, self.param_groups, device.numbers
        )
        self._hyperparameters.write(self.param_groups, self.model)
        model = instance.library.model
        if model is not None:
            steps[model.index] = self._model_step()
            self._model_states = {
                state.name: torch.full((), state.init, dtype=torch.float32, device=device.device)
                for state in model.states
            } | {name: held.to(device.device) for name, held in self._model_states.items()}
            for number, state in enumerate(model.states):
                held = self._model_states[state.name]
                instance.bind_state(model.index, number, held.data_ptr(), held.nbytes)
        self._binding = Binding(
            instance, device, records, steps, self._partial, self._declarations.gradient, self._capturable,
            self._model_states,
        )  # fmt: skip
        table = self._hyperparameters
        instance.bind_hyperparameters(
            table.pointer, table.count, table.stride, table.groups, device.memory
        )
        self._binding.remember(self.param_groups)
        self._trained |= trained(tensors.items())
        self._block_states = {key for key in self._block_states if key[0] in kept}
        if stay := block_states(instance.parameters):
            self._before = instance.library.path
        self._block_states |= stay
        # States that are not bound now (of frozen parameters) are kept until their parameter comes back.
        self._show_bound(kept)

    def _model_step(self) -> int:
        """How many steps the model has taken."""
        taken = self._bound_model_step()
        return 0 if taken is None else int(taken)

    def _bound_model_step(self) -> torch.Tensor | None:
        """The model's count of steps: the bound one, or what it was when it was bound last."""
        if self._binding is not None and self._binding.model_step is not None:
            self._model_taken = self._binding.model_step
        return self._model_taken

    def _model_values(self) -> dict[str, Any]:
        """The model's hyperparameters, then its states, in the order of the definition."""
        states = self._routing.model_states | self._model_states
        return {name: self.model[name] for name in self._routing.model or ()} | {
            name: float(states[name]) for name in self._routing.model_states
        }

    def _show_bound(self, kept: dict[str, dict[str, Any]]) -> None:
        """Puts the bound states, and the kept states of frozen parameters, into `state`."""
        self._kept_states = kept
        self._shown = {record.tensor: (record.name, record.state) for record in self._binding.records}
        self._states.show({tensor: states for tensor, (_, states) in self._shown.items()})
        show_states(self)

    def _prepared(self) -> None:
        """Prepares if the groups' parameters are not the bound ones. Otherwise takes changes of `state`."""
        why = self._changed()
        if why is not None:
            self._prepare(why)
        elif self._states.changed:
            left, _ = states_left(self)
            self._binding.take_states(left)
            bound = {record.name for record in self._binding.records}
            self._show_bound({name: states for name, states in left.items() if name not in bound})

    def _changed(self) -> str | None:
        """Why another prepare() is necessary; None if it is not."""
        if self._binding is None:
            return "nothing is bound yet"
        if self._binding.holds(self.param_groups):
            return None
        return self._binding.difference(self._named())

    @property
    def transport(self) -> TorchTransport | None:
        """The connections of the bound instance; None if it has none."""
        return None if self._binding is None else self._binding.instance.transport

    # --- step ---

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One optimizer step, communication included. ``torch.compile`` breaks its graph here."""
        if torch.compiler.is_compiling():
            return self._uncompiled_step(closure)
        return self._eager_step(closure)

    # Called only while torch compiles, since the first call of a wrapped function imports torch's compiler.
    @torch._disable_dynamo
    def _uncompiled_step(self, closure: Callable[[], Any] | None) -> Any:
        return self._eager_step(closure)

    def _eager_step(self, closure: Callable[[], Any] | None) -> Any:
        if getattr(self, "grad_scale", None) is not None or getattr(self, "found_inf", None) is not None:
            raise NotImplementedError(
                "stepc does not take GradScaler's fused path (grad_scale, found_inf) yet: "
                "unscale the gradients before the step"
            )
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            # Recording adds a tenth to the Python time of a step, so it is left out if nobody profiles.
            if torch.autograd.profiler._is_profiler_enabled:
                with torch.autograd.profiler.record_function("stepc.step"):
                    self._bound("step")
            else:
                self._bound("step")
        return loss

    @torch.no_grad()
    def refresh(self) -> None:
        """Gives the current gradients, inputs and hyperparameters to later replays of CUDA graphs that hold a
        step. Gradients and inputs whose memory stays the same, and hyperparameters in tensors, need no
        refresh."""
        self._bound("refresh")

    def _bound(self, then: str) -> None:
        self._refuse_torn()
        if not self._capturable:
            devices.refuse_capture("expected an optimizer with capturable=True")
        self.state.hide_options()
        try:
            if (
                self._binding is None or self._states.changed
                or not self._binding.is_bound(self.param_groups)
            ):  # fmt: skip
                self._prepared()
                try:
                    self._binding.check()
                except Resharded as changed:
                    self._prepare(str(changed))
            try:
                self._binding.bind_gradients()
            except Resharded as changed:
                self._prepare(str(changed))
                self._binding.bind_gradients(again=True)
            self._inputs.bind(self._binding)
            self._hyperparameters.write(self.param_groups, self.model)
            if self._capturable:
                self._binding.expect_gradients_in_place()
            getattr(self._binding, then)()
            self._recovered = False
        except GraphError:
            raise  # nothing was sent or written
        except BaseException as error:
            self._fail(error)
            raise

    def give(self, parameter: str | torch.Tensor, /, **inputs: torch.Tensor | None) -> None:
        """Gives inputs of a parameter: ``optimizer.give("layers.0.q.weight", logits=most)``.

        Each is this rank's part, which lies as a state of the input's kind does: a plain tensor or a
        DTensor. A DTensor may be whole, ``Partial("sum")`` or ``Partial("max")`` along some mesh axes. Then
        every rank has to give it, and the next step exchanges its numbers, once. All other tensors are read,
        not copied, by all steps until another is given; replays of CUDA graphs read the other one after
        ``refresh()``. None takes it back, so that the default of the definition counts. An input is never
        saved.
        """
        name = canonical_name(parameter) if isinstance(parameter, str) else None
        if isinstance(parameter, torch.Tensor):
            name = next((each for each, one in self._named() if one is parameter), None)
        if name not in self.routes:
            found = repr(parameter) if isinstance(parameter, str) else f"one of {list(parameter.shape)}"
            raise StepcError(f"give: expected a parameter of this optimizer, found {found}")
        self._inputs.give(name, inputs)

    def forget(self, name: str) -> None:
        """Drops a parameter's states, for example after it was resized. Every rank has to call it."""
        if name not in self.routes:
            raise StepcError(f"forget: expected a parameter of this optimizer, found '{name}'")
        self._close()
        self._kept_states.pop(name, None)
        shown = [tensor for tensor, (other, _) in self._shown.items() if other == name]
        for tensor in shown + [tensor for other, tensor in self._named() if other == name]:
            self._hide(tensor)

    @property
    def library(self) -> Library:
        """The loaded library; prepares when there is none yet."""
        self._prepared()
        if isinstance(self._binding.instance, Nothing):
            raise StepcError("expected a library, found none: all parameters of this rank are frozen")
        return self._binding.instance.library

    def counters(self) -> tuple[dict[str, int], dict[str, int]]:
        """What the last step did on this rank, and what the plan says that it does."""
        if self._binding is None:
            raise StepcError("expected a step to count, found that none was taken yet")
        return self._binding.instance.counters()

    def metrics(self) -> dict[str, Any]:
        """The numbers of the definition's ``metric`` statements, as the last step has written them.

        ``{"grad_norm": 1.5, "update": {"layers.0.weight": 0.1}}``: a metric of the model is a float; a metric
        of optimizers has an entry for each parameter of which this rank knows the number. For a parameter
        with several matrices this is an f32 tensor on the CPU, NaN where only other ranks know the number.
        A number is NaN until a step has computed it, and stays as it was if its parameter takes no part.

        Never waits. On a GPU the last step may still run: some numbers can then be of the step before.
        """
        return {} if self._binding is None else read_metrics(self._binding.instance)

    # --- checkpoints ---

    def state_dict(self) -> dict[str, Any]:
        """The state dict in torch's form. States are the bound tensors: DTensors if the parameters are.

        Before the first step there are no states: nothing is compiled, and no other rank takes part.
        """
        self._refuse_torn()
        if not self._never_stepped():
            self._states.changed = True  # a trainer may have changed the dicts inside
            self._prepared()
            try:
                self._binding.settle()  # states of a failed step must not be saved
            except BaseException as error:
                self._fail(error)
                raise
        self._states.drop_empty()
        saved = super().state_dict()
        saved["state"] = {key: dict(state) for key, state in saved["state"].items() if not is_empty(state)}
        # Not for a state dict that is only loaded into: older checkpoints lack these keys.
        if self.state.options_shown and any(int(state.get(STEP, 0)) for state in saved["state"].values()):
            fill_absent(saved["param_groups"])
        self.state.hide_options()
        if self._routing.model is not None:
            saved["model"] = {STEP: self._model_step(), **self._model_values()}
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Copies values into the bound states, dtypes as declared, and puts groups' options back.

        With a state dict without states, of an optimizer that was never stepped, states begin anew.
        """
        load_into(self, state_dict)
        self._failure = None

    def _load_model(self, saved: Mapping[str, Any]) -> None:
        """Takes the model's count of steps, hyperparameters and states, which loading has checked."""
        for name, value in saved.items():
            if name in self._routing.model_states:
                held = self._model_states.setdefault(name, torch.zeros((), dtype=torch.float32))
                held.fill_(float(value))
            elif name != STEP:
                self.model[name] = value.clone() if isinstance(value, torch.Tensor) else value
        if self._bound_model_step() is None:
            self._model_taken = torch.zeros((), dtype=torch.int64)
        self._model_taken.fill_(saved[STEP])

    def _never_stepped(self) -> bool:
        return self._binding is None and not self._kept_states and not any(self.state.values())

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "a stepc optimizer holds a loaded library and bound memory, and cannot be copied or "
            "pickled: save its state_dict() and make another one"
        )

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__getstate__()


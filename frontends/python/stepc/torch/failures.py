"""How an optimizer closes its instance, and what happens to an optimizer whose step failed."""

from __future__ import annotations

import os

import torch.distributed as dist

from stepc._calls import cause
from stepc.errors import GradientError, GraphError, PoisonedError, StepcError, StepcTimeout, TransportError

_REPLACED = (
    "\nhint: were parameters replaced, by load_state_dict(…, assign=True)? the optimizer steps those that "
    "its param_groups have: load in place, or put the new ones there"
)

# Objects of failed instances that graphs still read.
_KEPT: list[object] = []


_HINT = (
    "hint: make the process group and the optimizer in the child, or start the child by 'spawn' or "
    "'forkserver'"
)

# The process group that the parent had made when this process was forked from it, and the parent. Kept alive:
# its destructor would wait for threads that a child does not have.
_inherited: list[object] = []


def _note_fork() -> None:
    _inherited[:] = [dist.group.WORLD, os.getppid()] if dist.is_available() and dist.is_initialized() else []


os.register_at_fork(after_in_child=_note_fork)


def expect_own_group() -> None:
    """Refuses to meet other ranks over the connections of the parent that this process was forked from."""
    if _inherited and dist.is_initialized() and dist.group.WORLD is _inherited[0]:
        raise StepcError(
            f"expected a process group that was made in this process ({os.getpid()}), found the one of "
            f"process {_inherited[1]}, which this one was forked from\n{_HINT}"
        )


def expect_no_fork(process: int) -> None:
    """Refuses to meet other ranks in a child that was forked: the connections to them are its parent's."""
    if os.getpid() != process and dist.is_initialized() and dist.get_world_size() > 1:
        raise StepcError(
            f"expected a call in process {process}, which made the optimizer, found one in "
            f"{os.getpid()}, which was forked from it\n{_HINT}"
        )


class Failures:
    """The part of an optimizer that closes its instance, and keeps its failure until the trainer calls
    recover().
    """

    # Whether recover() was called. A later failure may be due to what the trainer loaded.
    _recovered = False

    def _close(self, failed: bool = False) -> None:
        """Closes the instance, and keeps the states by name. Raises GraphError while a graph holds one of the
        instance's steps. After a failure it does not raise then, but never destroys the instance."""
        self.state.hide_options()
        self._bound_model_step()  # keeps the count
        binding, self._binding = self._binding, None
        if binding is not None:
            try:
                binding.close()
            except GraphError:
                if not failed:
                    self._binding = binding
                    raise
                _KEPT.append((binding, self._hyperparameters))
            for record in binding.records:
                self._kept_states[record.name] = dict(record.state)

    def _refuse_torn(self) -> None:
        if self._failure is not None:
            raise PoisonedError(
                f"an earlier {self._failed_in} failed: {cause(self._failure)}\ncall recover() and load "
                "a checkpoint, or recover() alone when parameters and states are known to be whole\nhint: "
                "load the model in place, as load_state_dict(…, assign=True) makes parameters that the "
                "optimizer has not"
            )

    def _fail(self, error: BaseException, where: str = "step") -> None:
        """Tells the peers of an error, because they may wait for this rank in their step. Their step is lost,
        so a world of several ranks needs a checkpoint even if this rank changed nothing."""
        binding, transport = self._binding, self.transport
        if binding is None or not binding.instance.is_own():
            return
        if isinstance(error, GradientError) and (self._recovered or not binding.any_gradient()):
            error.args = (f"{error}{_REPLACED}",)
        if transport is not None:
            binding.instance.abort(cause(error))
            transport.tell_failed(cause(error))
            if isinstance(error, StepcTimeout | TransportError):
                error.args = (transport.with_first_cause(str(error)),)
        if transport is not None or where != "step" or getattr(error, "half_stepped", ()):
            self._failure, self._failed_in = error, where
            self._close(failed=True)

    def recover(self) -> None:
        """Declares parameters and states whole after a failed step; every rank has to call it.

        Load a model's state dict in place: ``assign=True`` makes other parameters, which the optimizer has
        not.
        """
        self._failure, self._recovered = None, True

    def half_stepped(self) -> list[str]:
        """The names of parameters that, with their states, the failed step may have changed."""
        return list(getattr(self._failure, "half_stepped", ()))

"""What becomes of an optimizer whose step failed."""

from __future__ import annotations

from stepc._calls import cause
from stepc.errors import PoisonedError


class Failures:
    """The part of an optimizer that keeps its failure until the trainer says that all is whole."""

    def _refuse_torn(self) -> None:
        if self._failure is not None:
            raise PoisonedError(
                f"an earlier {self._failed_in} failed: {cause(self._failure)}\ncall recover() and load "
                "a checkpoint, or recover() alone when parameters and states are known to be whole"
            )

    def _fail(self, error: BaseException, where: str = "step") -> None:
        """After an error here the peers wait in their step: tell them. Theirs is lost, so a world
        of several ranks needs a checkpoint even where this rank wrote nothing."""
        binding, transport = self._binding, self.transport
        if binding is None:
            return
        if transport is not None:
            binding.instance.abort(cause(error))
            transport.tell_failed(cause(error))
        if transport is not None or where != "step" or getattr(error, "half_stepped", ()):
            self._failure, self._failed_in = error, where
            self._close(failed=True)

    def recover(self) -> None:
        """Declares parameters and states whole after a failed step; every rank has to call it."""
        self._failure = None

    def half_stepped(self) -> list[str]:
        """Parameters that, with their states, the failed step may have changed."""
        return list(getattr(self._failure, "half_stepped", ()))

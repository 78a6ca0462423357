"""The transport between GPUs: NCCL for the library's messages, gloo for what ranks tell one another."""

from __future__ import annotations

from collections.abc import Sequence

from stepc import _abi
from stepc.nccl import nccl_transport
from stepc.torch.transport import TorchTransport


class GpuTransport(TorchTransport):
    """The table of NCCL's transport, and connections over the host's memory. On these ranks agree on what
    they redistribute, and tell why they gave up: NCCL does not tell peers a reason.
    """

    def __init__(self, ranks: Sequence[int], timeout: float, nonce: str, ordinal: int) -> None:
        super().__init__(ranks, timeout, nonce)
        try:
            self._nccl = nccl_transport(
                self.rank, self.size, ordinal, store=self.store, timeout=timeout
            )
        except BaseException as error:
            super().abort(f"no transport between GPUs: {error}")
            super().close()
            raise
        # A copy, whose abort and destroy end both transports. NCCL's own table keeps its functions alive.
        self.table = _abi.Transport.from_buffer_copy(self._nccl.table)
        self.table.abort = _abi.AbortFunction(self._abort)
        self.table.destroy = _abi.DestroyFunction(self._destroy)

    def abort(self, reason: str) -> None:
        """Tells the peers, and stops what is under way on the GPU."""
        super().abort(reason)
        self._nccl.abort(reason)

    def close(self) -> None:
        self._nccl.close()
        super().close()

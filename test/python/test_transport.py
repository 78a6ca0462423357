"""The table of the transport over torch's process groups, called as a library calls it."""

import ctypes as c

import threading
import time
import types

import pytest
import torch.distributed as dist
from ranks import run_ranks

from stepc import _abi
from stepc.errors import StepcTimeout, TransportError
from stepc.torch import links
from stepc.torch.transport import TorchTransport

MEMBERS = (2, 0)


def _start(transport, operations):
    """The status of starting a group, its handle and the message."""
    array = (_abi.Operation * len(operations))(*operations)
    group = _abi.Operations(c.sizeof(_abi.Operations), c.sizeof(_abi.Operation),
                            c.addressof(array), len(operations), None)  # fmt: skip
    handle, error = c.c_void_p(), c.create_string_buffer(256)
    status = transport.table.start(None, c.byref(group), c.byref(handle), error, len(error))
    return status, handle, error.value.decode()


def _finish(transport, handle):
    error = c.create_string_buffer(256)
    while not (status := transport.table.test(None, handle, error, len(error))):
        pass
    assert status == 1, error.value


def _gather(communicator, send, receive, tag):
    return _abi.Operation(_abi.ALL_GATHER, -1, communicator, c.addressof(send),
                          c.addressof(receive), c.sizeof(send), tag)  # fmt: skip


def _gathers(rank):
    transport = TorchTransport(range(3), 30.0, "gathers")
    mine, of_world, of_some = c.c_int64(10 + rank), (c.c_int64 * 3)(), (c.c_int64 * 2)()
    operations = [_gather(None, mine, of_world, 1)]
    communicator, handle, error = c.c_void_p(), c.c_void_p(), c.create_string_buffer(64)
    if rank in MEMBERS:
        members = (c.c_int32 * 2)(*MEMBERS)
        status = transport.table.open_communicator(
            None, members, 2, c.byref(communicator), c.byref(handle), error, len(error)
        )
        assert (status, handle.value) == (_abi.OK, None)
        operations.append(_gather(communicator, mine, of_some, 2))
    status, handle, text = _start(transport, operations)
    assert status == _abi.OK, text
    _finish(transport, handle)
    if rank in MEMBERS:
        transport.table.close_communicator(None, communicator)
    # A kind that it lacks.
    assert not transport.table.kinds >> 4 & 1
    status, _, text = _start(transport, [_abi.Operation(4, -1, None, None, None, 8, 3)])
    transport.close()
    return list(of_world), list(of_some), status, text


def test_gathers_on_the_world_and_on_a_communicator():
    for rank, (world, some, status, text) in enumerate(run_ranks(_gathers, 3)):
        assert world == [10, 11, 12]
        assert some == ([12, 10] if rank in MEMBERS else [0, 0])
        assert status == _abi.ERROR_TRANSPORT
        assert "expected sends, receives and all-gathers, found kind 4" in text


class Clock:
    """A clock that waiting moves, and threads that never end."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def join(self, seconds):
        self.now += seconds


@pytest.mark.parametrize("timeout", [2.0, 120.0])
def test_aborting_waits_once_for_all_threads(monkeypatch, timeout):
    clock = Clock()
    monkeypatch.setattr(links, "time", clock)
    one = object.__new__(links.Links)
    one.ranks, one.rank, one.size, one.timeout = (0,), 0, 1, timeout
    one.aborted, one.group, one._process, one._lock = None, None, links.os.getpid(), threading.Lock()
    one.store = dist.HashStore()
    one._running = [types.SimpleNamespace(thread=clock) for _ in range(50)]
    one.abort("why")
    assert clock.now - 100.0 <= min(timeout, 5.0) + 1e-9 and one.aborted == "why"


def _two_give_up(rank):
    """Ranks 0 and 1 wait for rank 2 alone, which answers neither."""
    mine = links.Links(range(3), 20.0, "give up")
    found = None
    if rank < 2:
        try:
            mine.exchange({2: rank}, f"what rank {rank} does", 1.0 + 2.0 * rank)
        except (StepcTimeout, TransportError) as error:
            found = type(error).__name__, str(error)
    dist.barrier()
    mine.close()
    return found


def test_every_rank_names_the_first_cause():
    (first, text), (second, other), _ = run_ranks(_two_give_up, 3)
    assert first == second == "StepcTimeout"
    assert text.startswith("what rank 0 does: receiving from rank 2: no answer within 1 s")
    assert other.startswith(
        "what rank 1 does: receiving from rank 2: no answer within 3 s\nbefore that, rank 0 gave up: "
    )
    assert text in other and "before that" not in text


def _one_is_slow(rank):
    """Rank 0 needs longer to connect. Returns whether another rank went on before it was connected."""
    create = dist.ProcessGroupGloo

    def slow(*arguments):
        group = create(*arguments)
        time.sleep(1.0)
        early.append(dist.distributed_c10d._get_default_store().check(["gone on"]))
        return group

    early = []
    if rank == 0:
        links.dist = types.SimpleNamespace(**vars(dist) | {"ProcessGroupGloo": slow})
    links.Links(range(3), 20.0, "slow").close()
    dist.distributed_c10d._get_default_store().set("gone on", "1")
    return early


def test_no_rank_goes_on_before_all_are_connected():
    assert run_ranks(_one_is_slow, 3) == [[False], [], []]

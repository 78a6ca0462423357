"""The table of the transport over torch's process groups, called as a library calls it."""

import ctypes as c

from ranks import run_ranks
from stepc import _abi
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

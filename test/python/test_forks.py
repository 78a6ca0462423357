"""A child that was forked has no threads and no connections: its steps raise at once, and disturb nobody."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
import time

import torch.distributed as dist
from models import SGD, Model, bits, make, same, set_gradients
from ranks import run_ranks

from stepc._library import Instance
from stepc.torch import Optimizer

FORK = multiprocessing.get_context("fork")
SECONDS = 240.0


def in_child(function):
    """What ``function`` raises or returns in a child that is forked here; None where it does not end."""
    ours, theirs = FORK.Pipe()

    def run():
        try:
            theirs.send(function())
        except BaseException as error:  # noqa: BLE001
            theirs.send(f"{type(error).__name__}: {error}")

    child = FORK.Process(target=run)
    child.start()
    found = ours.recv() if ours.poll(SECONDS) else None
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
        return None
    return found


def refused(text):
    return text is not None and text.startswith("StepcError: expected a call in process") and (
        f"{os.getpid()}," in text and "which was forked from it\nhint: make the optimizer in the child" in text
    )


def test_a_childs_step_raises_at_once(fake, way):
    model, straight = Model(), Model()
    optimizer, other = make(model, threads=2), make(straight, threads=2)
    for step in range(2):
        for one, own in ((model, optimizer), (straight, other)):
            set_gradients(one, step)
            own.step()
    before = bits(model)
    assert refused(in_child(optimizer.step))
    assert same(bits(model), before)
    # A child may save, and may go on by itself: it opens the library again.
    assert in_child(lambda: int(optimizer.state_dict()["state"][0]["step"])) == 2

    def alone():
        optimizer.prepare()
        optimizer.step()
        return int(optimizer.state[model.w]["step"])

    assert in_child(alone) == 3
    for one, own in ((model, optimizer), (straight, other)):
        set_gradients(one, 2)
        own.step()
    assert same(bits(model), bits(straight)) and optimizer.state[model.w]["step"] == 3


def test_one_that_was_never_stepped_steps_in_a_child(fake):
    model = Model()
    optimizer = make(model)
    set_gradients(model, 0)

    def step():
        optimizer.step()
        return int(optimizer.state[model.w]["step"])

    assert in_child(step) == 1


def test_instances_without_torch_refuse_as_well(real):
    """Those that are used directly: step, poll and abort, while asking and closing wait for nothing."""
    model = Model()
    optimizer = Optimizer(model.named_parameters(), SGD, threads=2)
    set_gradients(model, 0)
    optimizer.step()
    instance = optimizer._binding.instance
    assert isinstance(instance, Instance)
    for call in (instance.step, instance.enqueue, instance.poll, lambda: instance.abort("why")):
        assert "which was forked from it" in in_child(call)
    assert in_child(lambda: instance.counters()[0] == instance.counters()[1])
    assert in_child(lambda: instance.close() or "closed") == "closed"
    instance.step()


def _ranks(rank):
    model = Model()
    optimizer = Optimizer(model.named_parameters(), SGD, replicated=["*"], timeout=20.0)
    set_gradients(model, 0)
    optimizer.step()
    texts = []

    def another():
        Optimizer(Model().named_parameters(), SGD, replicated=["*"], timeout=20.0)

    def again():
        """With a process group of the child's own."""
        dist.destroy_process_group()
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        own = Model()
        mine = Optimizer(own.named_parameters(), SGD)
        set_gradients(own, 0)
        mine.step()
        return int(mine.state[own.w]["step"])

    if rank == 0:
        fresh = Optimizer(Model().named_parameters(), SGD, replicated=["*"], timeout=20.0)
        start = time.monotonic()
        for call in (optimizer.step, optimizer.prepare, fresh.prepare, another, again):
            texts.append(in_child(call))
        texts.append(time.monotonic() - start)
        in_child(lambda: optimizer._binding.instance.transport.abort("a child gave up"))
        in_child(lambda: optimizer._binding.close())
    else:  # the constructor of the other's second optimizer may meet this rank
        Optimizer(Model().named_parameters(), SGD, replicated=["*"], timeout=20.0)
    dist.barrier()
    set_gradients(model, 1)
    optimizer.step()
    return texts, bits(model), os.getpid()


def test_a_child_of_one_rank_leaves_the_others_alone(real):
    (texts, first, process), (_, second, _) = run_ranks(_ranks, 2)
    *refusals, another, again, seconds = texts
    assert len(refusals) == 3 and all(text is not None for text in refusals), texts
    for text in refusals:
        assert text.startswith(f"StepcError: expected a call in process {process}") and "forked from it" in text
        assert "hint: make the process group and the optimizer in the child" in text
    assert another.startswith("StepcError: expected a process group that was made in this process") and str(process) in another
    assert again == 1 and seconds < 15
    straight = Model()
    optimizer = Optimizer(straight.named_parameters(), SGD)
    for step in range(2):
        set_gradients(straight, step)
        optimizer.step()
    assert same(first, second) and same(first, bits(straight))


def test_a_child_that_ends_by_itself_ends(real):
    """With the handlers that run at the end of a process, and the interpreter's end."""
    program = f"""
        import os, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from models import SGD, Model, set_gradients
        from stepc.torch import Optimizer
        model = Model()
        optimizer = Optimizer(model.named_parameters(), SGD, threads=2)
        set_gradients(model, 0)
        optimizer.step()
        child = os.fork()
        if child == 0:
            try:
                optimizer.step()
            except Exception as error:
                print("child:", str(error).splitlines()[0], flush=True)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        optimizer.step()
        print("parent went on")
    """
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", textwrap.dedent(program)],
                          capture_output=True, text=True, timeout=SECONDS, check=False)  # fmt: skip
    assert done.returncode == 0 and "Warning" not in done.stderr.replace("DeprecationWarning", ""), (
        done.stderr
    )
    assert "child: expected a call in process" in done.stdout and "parent went on" in done.stdout

"""Steps in graphs: one that the library records, and those that a trainer captures and replays."""

import random

import torch
from checks.machine import HOST, Check, Failed, Skipped
from checks.steps import Steps, assembled, expect_equal
from checks.streams import bind_schedule, compare
from checks.trainer import CASE, expect_same, give_gradients, tensors
from checks.trainer import made as made_optimizer

STEPS = 20


def on_the_cpu(library, seed, count):
    steps = Steps(library, HOST, seed)
    set_rows = bind_schedule(steps)
    for number in range(1, count + 1):
        set_rows(number)
        steps.step(number)
    result = assembled([steps.values()])
    steps.close()
    return result


def captured(function):
    """A graph of what a function enqueues on a stream of its own."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def trainers(machine):
    """A step that is captured once, and replayed with gradients elsewhere and other learning rates each
    time.
    """
    if not machine.place.is_gpu:
        raise Skipped("no GPU")
    seed = random.SystemRandom().randrange(10**6)
    expected = on_the_cpu(machine.library(CASE, "cpu"), seed, STEPS)
    stream = machine.place.stream()
    with machine.place.on(stream):
        steps = Steps(machine.library(CASE), machine.place, seed, counts_itself=True)
        set_rows = bind_schedule(steps)
        sets = [steps.draw_gradients(number) for number in range(1, STEPS + 1)]
        steps.use(sets[0])
        machine.place.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            steps.instance.enqueue()
        for number, gradients in enumerate(sets, 1):
            set_rows(number)
            steps.use(gradients)
            steps.instance.refresh()
            graph.replay()
        found = assembled([steps.values()])
        try:
            steps.instance.close()
        except RuntimeError as error:
            if "stand in graphs" not in str(error):
                raise
        else:
            raise Failed("expected that an instance is kept while a graph holds its step")
        del graph
        machine.place.synchronize()
        steps.close()
    return f"{expect_equal(found, expected, f'on the CPU, with seed {seed},')} elements have the CPU's bits after {STEPS} replays"


def torchs(machine):
    """`stepc.torch` within torch.cuda.graph; the learning rate is a tensor, and gradients stay in place."""
    if not machine.place.is_gpu:
        raise Skipped("no GPU")
    on_host = made_optimizer(machine.library(CASE, "cpu"), HOST)
    named, optimizer = made_optimizer(machine.library(CASE), machine.place, capturable=True)
    rate = torch.zeros((), device=machine.place.device)
    give_gradients(named, 1)
    kept = [one.grad for _, one in named]
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.prepare()
    machine.place.synchronize()
    graph = captured(optimizer.step)
    for number in range(1, STEPS + 1):
        give_gradients(on_host[0], number)
        for group in on_host[1].param_groups:
            group["lr"] = float(torch.tensor(1e-2 / number))
        on_host[1].step()
        rate.fill_(1e-2 / number)
        for own, (_, one) in zip(kept, on_host[0], strict=True):
            own.copy_(one.grad)
        graph.replay()
    machine.place.synchronize()
    count = expect_same(tensors(named, optimizer), tensors(*on_host))
    return f"{count} tensors have the CPU's bits after {STEPS} replays"


def checks(machine):
    count = 40 if machine.dry else 1000
    yield Check("graphs.own", 60, lambda: compare(machine, CASE, count, False, graph=True))
    yield Check("graphs.trainers", 60, lambda: trainers(machine))
    yield Check("graphs.torch", 60, lambda: torchs(machine))

"""Steps that nobody waits for: the trainer changes learning rates and gradients while earlier steps still
run.
"""

import random

import torch
from checks.machine import HOST, Check
from checks.steps import Steps, assembled, expect_equal

SETS = 12  # of gradients, more than the steps that may be under way


def bind_schedule(steps):
    """Rows of hyperparameters, bound where the step counts are; and what a step's are."""
    routes = steps.library.routes
    stride = max(len(route.defaults) for route in routes)
    rows = torch.zeros(len(routes), stride, dtype=torch.float64, device=steps.steps.device)
    names = [route.name for route in routes]
    groups = [names.index(one.route) for one in steps.library.parameters]
    steps.instance.bind_hyperparameters(rows.data_ptr(), len(names), stride, groups, steps.memory_of_numbers)

    def set_rows(number):
        values = torch.zeros(rows.shape, dtype=torch.float64)
        for row, route in enumerate(routes):
            for column, (name, value) in enumerate(route.defaults.items()):
                # The learning rate falls; what has no default is one, too.
                values[row, column] = 1e-3 / (1 + number % 50) if name == "lr" or value is None else value
        rows.copy_(values)

    return set_rows


def unsynchronized(library, place, seed, count, stream=None, graph=False):
    with place.on(stream):
        steps = Steps(library, place, seed, graph=graph)
        set_rows = bind_schedule(steps)
        sets = [steps.draw_gradients(number) for number in range(SETS)]
        place.synchronize()
        for number in range(count):
            set_rows(number)
            steps.use(sets[number * 7 % SETS])
            steps.instance.enqueue()
        place.synchronize()
        steps.instance.poll()
        values = assembled([steps.values()])
        for number, gradients in enumerate(sets):
            if any(one.damaged() for one in gradients):
                steps.damage.append(f"written beside gradients {number}")
        steps.close()
    return values


def compare(machine, case, count, on_a_stream, graph=False):
    seed = random.SystemRandom().randrange(10**6)
    expected = unsynchronized(machine.library(case, "cpu"), HOST, seed, count)
    stream = machine.place.stream() if on_a_stream else None
    found = unsynchronized(machine.library(case), machine.place, seed, count, stream, graph)
    elements = expect_equal(found, expected, f"on the CPU, with seed {seed},")
    return f"{elements} elements have the CPU's bits after {count} steps (seed {seed})"


def checks(machine):
    count = 40 if machine.dry else 1000
    yield Check("streams.default", 60, lambda: compare(machine, "example.muon", count, False))
    yield Check("streams.own", 60, lambda: compare(machine, "odd", count // 4, True))

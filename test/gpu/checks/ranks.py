"""Several ranks give the bits of one. They are processes that share the GPU, which NCCL takes for hosts
of their own.
"""

import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from checks.machine import Check, Failed, Skipped
from checks.steps import assembled, expect_equal, stepped

STEPS = 3


def environment(machine, rank):
    return os.environ | {
        # NCCL refuses two ranks on one GPU, unless they say that they are on other hosts.
        "NCCL_HOSTID": f"stepc-{rank}", "NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1",
        "STEPC_NCCL": str(machine.folder / "libstepc_nccl.so"), "CUDA_DEVICE_MAX_CONNECTIONS": "8",
    }  # fmt: skip


def run(machine, case, size, folder, seed, *options):
    """Runs the ranks to their ends; what any of them printed that ended badly."""
    if not machine.dry and not (machine.folder / "libstepc_nccl.so").is_file():
        raise Skipped("libstepc_nccl.so was not built")
    path, dry = machine.fastest(case).path, ["--dry"] * machine.dry
    processes = [subprocess.Popen(
        [sys.executable, str(machine.folder / "rank.py"), path, str(rank), str(size), str(seed), str(STEPS), folder, *dry, *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(machine, rank))
        for rank in range(size)]  # fmt: skip
    texts = [process.communicate()[0] for process in processes]
    for rank, (process, text) in enumerate(zip(processes, texts, strict=True)):
        if process.returncode:
            raise Failed(f"rank {rank} ended with {process.returncode}: {text.strip()[-300:]}")


def compare(machine, case, size, *options):
    seed = random.SystemRandom().randrange(10**6)
    expected = stepped(machine.fastest(f"{case.split('.')[0]}.1"), machine.place, seed, STEPS)
    with tempfile.TemporaryDirectory() as folder:
        run(machine, case, size, folder, seed, *options)
        errors = sorted(Path(folder).glob("*.error"))
        if errors:
            raise Failed(f"rank {errors[0].stem}: {errors[0].read_text()[:300]}")
        found = assembled([torch.load(Path(folder) / f"{rank}.pt") for rank in range(size)])
    return f"{expect_equal(found, expected, f'on one rank, with seed {seed},')} elements have the bits of one rank (seed {seed})"


def with_block_states(machine, case, size):
    """States that stay with blocks: the plan has some, and they have the bits of one rank's."""
    placements = {state.placements for one in machine.fastest(case).parameters for state in one.states}
    if not any("blocks" in text for text in placements):
        raise Failed(f"expected states that stay with blocks, found {sorted(placements)}")
    return compare(machine, case, size)


def states_that_move(machine, before, after, size):
    """Another library takes over before the last step, in which states stay with other ranks."""
    return compare(machine, before, size, "--moves", machine.fastest(after).path)


def a_rank_that_dies(machine, case):
    with tempfile.TemporaryDirectory() as folder:
        run(machine, case, 2, folder, 1, "--dies")
        found = Path(folder) / "0.error"
        if not found.is_file():
            raise Failed("expected an error on the rank that is left, found none")
        text = found.read_text()
    if "half stepped" not in text and "no parameter or state was changed" not in text:
        raise Failed(f"expected to be told what may be half stepped, found '{text}'")
    return text.splitlines()[0]


def a_rank_that_parts(machine, case, *options):
    """All ranks fail, and those that found it name the learning rate."""
    with tempfile.TemporaryDirectory() as folder:
        run(machine, case, 2, folder, 1, "--parts", *options)
        texts = [path.read_text() for path in sorted(Path(folder).glob("*.error"))]
    if len(texts) != 2:
        raise Failed(f"expected an error on both ranks, found {texts}")
    named = [text for text in texts if text.startswith("AgreementError") and " lr = " in text]
    if not named:
        raise Failed(f"expected an error that names the learning rate, found {texts}")
    return named[0]


def the_example(machine):
    """examples/gpu_trainer.cpp on one rank and on two: it trains, with the same losses and weights."""
    if machine.about["without_trainer"]:
        raise Skipped(machine.about["without_trainer"])
    folder = machine.folder / "gpu_trainer"
    nccl = Path(torch.__file__).parents[1] / "nvidia" / "nccl" / "lib"
    found = {}
    for size in (1, 2):
        search = {"LD_LIBRARY_PATH": f"{folder / str(size)}:{machine.folder}:{nccl}"}
        with tempfile.TemporaryDirectory() as meeting:
            processes = [subprocess.Popen(
                [str(folder / "gpu_trainer"), str(rank), str(size), f"{meeting}/ids", "--gpu", "0", "--timeout", "20"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(machine, rank) | search)
                for rank in range(size)]  # fmt: skip
            said = [process.communicate() for process in processes]
        if any(process.returncode for process in processes):
            raise Failed(f"on {size} ranks: " + "; ".join(error.strip()[-200:] for _, error in said))
        found[size] = said[0][0]
    if found[1] != found[2]:
        raise Failed(f"expected the losses of one rank, '{found[1][-60:]}', found on two '{found[2][-60:]}'")
    return "one rank and two: " + " ".join(found[1].splitlines()[-2].split())


def checks(machine):
    for case in (*machine.named("world"), *machine.named("sums"), *machine.named("model")):
        size = int(case.split(".")[1])
        yield Check(f"ranks.{case.removeprefix('world.')}", 60, lambda case=case, size=size: compare(machine, case, size))
    for case in machine.named("blocks"):
        size = int(case.split(".")[1])
        if size > 1:
            yield Check(f"ranks.{case}", 60, lambda case=case, size=size: with_block_states(machine, case, size))
    for before, after in (("blocks.2", "blocks.2.gather"), ("blocks.2.gather", "blocks.2")):
        if after in machine.named("blocks"):
            yield Check(f"ranks.{before}.moves", 60, lambda pair=(before, after): states_that_move(machine, *pair, 2))
    yield Check("ranks.graph", 60, lambda: compare(machine, "world.2.owner", 2, "--graph"))
    yield Check("ranks.device", 60, lambda: compare(machine, "world.2.owner", 2, *([] if machine.dry else ["--device"])))
    for options in ([], ["--graph"], ["--device"], ["--device", "--graph"]):
        name = "ranks.one_parts" + "".join(option.replace("--", ".") for option in options)
        if not machine.dry or not options:
            yield Check(name, 60, lambda options=options: a_rank_that_parts(machine, "world.2.owner", *options))
    yield Check("ranks.one_dies", 60, lambda: a_rank_that_dies(machine, "world.2.owner"))
    yield Check("ranks.cpp_example", 60, lambda: the_example(machine))

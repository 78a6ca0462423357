"""One of several ranks: steps a library on drawn values, and leaves what came of it in a file.

    python3 rank.py LIBRARY RANK SIZE SEED STEPS FOLDER [--dry] [--dies] [--parts] [--graph] [--device] [--moves LIBRARY]

Ranks meet in FOLDER. They are processes that share a GPU, and talk by NCCL; in a dry run by gloo.
"""

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "python")]

import stepc  # noqa: E402
import torch  # noqa: E402
from checks.machine import HOST, Place  # noqa: E402
from checks.steps import Steps  # noqa: E402
from checks.streams import bind_schedule  # noqa: E402

TIMEOUT = 20.0


def transport(options, meeting="id"):
    if not options.dry:
        from stepc.nccl import nccl_transport

        torch.cuda.init()  # and with it the libraries that torch brings along
        return nccl_transport(options.rank, options.size, 0, file=options.folder / meeting, timeout=TIMEOUT)
    import torch.distributed as dist
    from stepc.torch.transport import TorchTransport

    if not dist.is_initialized():
        store = f"file://{options.folder}/store"
        dist.init_process_group("gloo", init_method=store, rank=options.rank, world_size=options.size)
    return TorchTransport(range(options.size), TIMEOUT, meeting)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, kind in (("library", Path), ("rank", int), ("size", int), ("seed", int), ("steps", int), ("folder", Path)):
        parser.add_argument(name, type=kind)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--dies", action="store_true", help="the last rank is gone before the last step")
    parser.add_argument("--parts", action="store_true", help="the last rank has another learning rate in the last step")
    parser.add_argument("--device", action="store_true", help="hyperparameters and step counts stand in the device's memory")
    parser.add_argument("--graph", action="store_true", help="steps replay a graph")
    parser.add_argument("--moves", type=Path, help="another library of the same parameters, which takes over before the last step")
    options = parser.parse_args()
    torch.set_num_threads(1)
    place = HOST if options.dry else Place(torch.device("cuda", 0))
    library = stepc.Library(options.library)
    steps = Steps(library, place, options.seed, misaligned=True, transport=transport(options), timeout=TIMEOUT / 4, graph=options.graph,
                  counts_itself=options.device)  # fmt: skip
    last = options.rank == options.size - 1
    if options.parts:
        set_rows = bind_schedule(steps)
    try:
        for number in range(1, options.steps + 1):
            if options.dies and number == options.steps and last:
                os._exit(0)
            if options.moves and number == options.steps:
                steps = steps.moved(stepc.Library(options.moves), transport(options, "moved"))
            if options.parts:
                set_rows(number == options.steps and last)
            steps.step(number)
    except stepc.StepcError as error:
        (options.folder / f"{options.rank}.error").write_text(f"{type(error).__name__}: {error}")
        os._exit(0)
    values = steps.values()
    executed, planned = steps.instance.counters()
    assert executed == planned, (executed, planned)
    steps.close()
    torch.save(values, options.folder / f"{options.rank}.pt")


if __name__ == "__main__":
    main()

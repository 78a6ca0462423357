"""Trains a small GPT with FSDP2 and a compiled Muon + AdamW step, and again without either.

    python examples/train_gpt.py [--device cuda]

The model reads bytes of the Python standard library's sources. It is trained twice from the same
weights on the same batches: sharded over --ranks ranks (started by this program) with the compiled
step, then unsharded in this process with torch.optim.AdamW and Muon written in plain torch. On CPUs
ranks talk by gloo; with --device cuda each has a GPU of its own, and they talk by NCCL. The two loss
curves should lie on each other; the table says how far apart they are.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from tqdm import tqdm

SPEC = Path(__file__).resolve().with_suffix(".optim")
VOCABULARY = 256  # bytes


class Block(nn.Module):
    """Causal attention and a feed-forward layer, each behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.proj = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        y = self.norm1(x)
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (f(y).view(split).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, length: int) -> None:
        super().__init__()
        self.tok_embed, self.pos_embed = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, VOCABULARY, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
        for block in self.blocks:
            for module in (block.proj, block.down):
                nn.init.normal_(module.weight, std=0.02 / math.sqrt(2 * layers))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tok_embed(tokens) + self.pos_embed.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm(x))


def make_model(options: argparse.Namespace, device: torch.device) -> GPT:
    torch.manual_seed(options.seed)  # drawn on the CPU: the same weights on all devices
    return GPT(options.width, options.heads, options.layers, options.length).to(device)


def device_of(options: argparse.Namespace, rank: int) -> torch.device:
    return torch.device("cuda", rank) if options.device == "cuda" else torch.device("cpu")


def read_text(limit: int = 4_000_000) -> torch.Tensor:
    """Bytes of the standard library's modules, in the order of their names."""
    folder, data = Path(sysconfig.get_path("stdlib")), bytearray()
    for path in sorted(folder.glob("*.py")):
        data += path.read_bytes()
        if len(data) >= limit:
            break
    return torch.frombuffer(data[:limit], dtype=torch.uint8).long()


def batches(options: argparse.Namespace):
    """The same (inputs, targets) for every run, one pair per step."""
    text = read_text()
    generator = torch.Generator().manual_seed(options.seed)
    for _ in range(options.steps):
        starts = torch.randint(len(text) - options.length - 1, (options.batch, 1), generator=generator)
        windows = text[starts + torch.arange(options.length + 1)]
        yield windows[:, :-1], windows[:, 1:]


def schedule(steps: int):
    """Warm-up, then a cosine down to a tenth."""
    warm = max(1, steps // 10)
    return lambda step: min((step + 1) / warm, 0.55 + 0.45 * math.cos(math.pi * step / steps))


def loss_of(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def seconds(device: torch.device, *steps: Callable[[], object]) -> float:
    """What the steps take, on a GPU without what was enqueued before."""

    def now() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    started = now()
    for step in steps:
        step()
    return now() - started


# --- the sharded run ---


def train_sharded(rank: int, options: argparse.Namespace, folder: str) -> None:
    """One rank: FSDP2 with the compiled optimizer."""
    import stepc.torch

    torch.set_num_threads(options.threads)
    device, backend = device_of(options, rank), "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(
        backend, init_method=f"file://{folder}/store", rank=rank, world_size=options.ranks
    )
    model = make_model(options, device)
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    given = {"library": options.library} if options.library else {"spec": options.spec}
    optimizer = stepc.torch.Optimizer(model.named_parameters(), **given)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule(options.steps))
    manifest = stepc.torch.export_manifest(model.named_parameters())
    share, losses, spent = options.batch // options.ranks, [], 0.0
    name = f"stepc, {options.ranks} ranks"
    bar = tqdm(batches(options), name, total=options.steps, unit="step", disable=rank != 0)
    for inputs, targets in bar:
        mine = slice(rank * share, (rank + 1) * share)
        loss = loss_of(model, inputs[mine].to(device), targets[mine].to(device))
        loss.backward()
        spent += seconds(device, optimizer.step)
        scheduler.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / options.ranks)
        bar.set_postfix(loss=f"{losses[-1]:.4f}")
    if rank == 0:
        result = {"losses": losses, "optimizer_seconds": spent, "manifest": manifest}
        Path(folder, "result.json").write_text(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()


# --- the unsharded run ---


def orthogonalize(u: torch.Tensor, steps: int = 5, eps: float = 1e-7) -> torch.Tensor:
    """Newton–Schulz with the roundings that stepc gives precision = f32: everything in f32."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = u.mT if u.shape[0] > u.shape[1] else u
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.mT if u.shape[0] > u.shape[1] else x


class Muon(torch.optim.Optimizer):
    """The rule of train_gpt.optim in plain torch."""

    def __init__(self, params, lr: float, momentum: float = 0.95, weight_decay: float = 0.1) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            lr, mu = group["lr"], group["momentum"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.mul_(mu).add_(p.grad)
                o = orthogonalize(p.grad + mu * m)
                p.mul_(1 - lr * group["weight_decay"]).sub_(lr * 0.2 * math.sqrt(max(p.shape)) * o)


def train_unsharded(options: argparse.Namespace) -> tuple[list[float], float]:
    torch.set_num_threads(options.threads)
    device = device_of(options, 0)
    model = make_model(options, device)
    matrices, rest = [], []
    for name, p in model.named_parameters():
        plain = p.ndim != 2 or "embed" in name or name.startswith("lm_head")
        (rest if plain else matrices).append(p)
    optimizers = [
        Muon(matrices, lr=0.003),
        torch.optim.AdamW(rest, lr=0.003, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1),
    ]
    schedulers = [torch.optim.lr_scheduler.LambdaLR(o, schedule(options.steps)) for o in optimizers]
    losses, spent = [], 0.0
    bar = tqdm(batches(options), "torch, unsharded", total=options.steps, unit="step")
    for inputs, targets in bar:
        loss = loss_of(model, inputs.to(device), targets.to(device))
        loss.backward()
        spent += seconds(device, *(optimizer.step for optimizer in optimizers))
        for scheduler in schedulers:
            scheduler.step()
        model.zero_grad()
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.4f}")
    return losses, spent


# --- the report ---


def plot(sharded: list[float], unsharded: list[float], ranks: int, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (top, bottom) = pyplot.subplots(2, 1, sharex=True, height_ratios=(3, 1), figsize=(7, 5.5))
    top.plot(sharded, label=f"stepc, FSDP2 on {ranks} ranks")
    top.plot(unsharded, "--", label="torch, unsharded")
    top.set_ylabel("loss (nats per byte)")
    top.legend()
    bottom.plot([abs(a - b) for a, b in zip(sharded, unsharded, strict=True)], color="gray")
    bottom.set_ylabel("|difference|")
    bottom.set_xlabel("step")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def print_table(sharded: list[float], unsharded: list[float]) -> float:
    steps = len(sharded)
    shown = sorted({*range(0, steps, max(1, steps // 10)), steps - 1})
    print(f"\n{'step':>6} {'stepc sharded':>15} {'torch unsharded':>16} {'difference':>12}")
    for step in shown:
        a, b = sharded[step], unsharded[step]
        print(f"{step + 1:>6} {a:>15.6f} {b:>16.6f} {a - b:>12.2e}")
    largest = max(abs(a - b) for a, b in zip(sharded, unsharded, strict=True))
    print(f"largest difference in {steps} steps: {largest:.2e}")
    return largest


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--ranks", type=int, help="4 on CPUs, else as many as GPUs")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--library", type=Path, help="a compiled library, where no compiler is installed")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of plot and losses")
    parser.add_argument("--spec", type=Path, default=SPEC, help="the optimizer definition")
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--length", type=int, default=128, help="bytes of context")
    parser.add_argument("--batch", type=int, default=8, help="windows per step, of all ranks")
    # One, since OpenMP threads that wait for a busy core spin: a loaded laptop then takes minutes.
    parser.add_argument("--threads", type=int, default=1, help="torch's threads per process")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.device_count():
        parser.error("--device cuda: expected a GPU, found none (torch.cuda sees no device)")
    if options.ranks is None:
        options.ranks = torch.cuda.device_count() if options.device == "cuda" else 4
    if options.device == "cuda" and options.ranks > torch.cuda.device_count():
        parser.error(f"--ranks: expected at most {torch.cuda.device_count()} GPUs, found {options.ranks}")
    if options.steps < 1 or options.ranks < 1:
        parser.error("--steps and --ranks: expected at least 1")
    if options.batch % options.ranks:
        parser.error(f"--batch: expected a multiple of {options.ranks} ranks, found {options.batch}")
    return options


def main() -> None:
    import stepc

    options = parse_options()
    options.out.mkdir(parents=True, exist_ok=True)
    count = sum(p.numel() for p in make_model(options, torch.device("cpu")).parameters())
    made = f"library {options.library}" if options.library else f"compiler {stepc.find_compiler()}"
    print(f"GPT with {count / 1e6:.2f}M parameters on {options.device}, {made}")
    with tempfile.TemporaryDirectory() as folder:
        # A fork server imports torch once for all ranks.
        multiprocessing.set_forkserver_preload(["torch.distributed.fsdp", "stepc.torch"])
        mp.start_processes(
            train_sharded, (options, folder), options.ranks, start_method="forkserver"
        )
        result = json.loads(Path(folder, "result.json").read_text())
    unsharded, torch_seconds = train_unsharded(options)
    sharded = result["losses"]
    largest = print_table(sharded, unsharded)
    print(
        f"optimizer: {result['optimizer_seconds']:.1f} s on {options.ranks} ranks (compiling "
        f"included), {torch_seconds:.1f} s unsharded"
    )
    path = options.out / "train_gpt.png"
    plot(sharded, unsharded, options.ranks, path)
    report = {"sharded": sharded, "unsharded": unsharded, "largest_difference": largest}
    (options.out / "train_gpt.json").write_text(json.dumps(report, indent=1))
    if not options.library:
        print("\n" + stepc.explain(options.spec, result["manifest"]).rstrip())
    print(f"\nloss plot: {path}")


if __name__ == "__main__":
    main()

"""Other people's trainers, by the recipes of examples/trainers: they train, save and resume as with torch's
optimizers.

What needs a package is skipped where it is not installed (frontends/python/requirements-trainers.txt); the
first tests do what those packages do, and need none.
"""

import importlib
import os
import sys
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import run_ranks
from torch import nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from stepc.torch import Optimizer

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "trainers"
ADAMW = RECIPES / "adamw.optim"


def recipe(name):
    if str(RECIPES) not in sys.path:
        sys.path.insert(0, str(RECIPES))
    return importlib.import_module(name)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed_tokens = nn.Embedding(10, 8)
        self.layers = nn.Sequential(OrderedDict(up=nn.Linear(8, 12), act=nn.ReLU(), down=nn.Linear(12, 8)))
        self.lm_head = nn.Linear(8, 10, bias=False)

    def forward(self, tokens):
        return self.lm_head(self.layers(self.embed_tokens(tokens)))


def loss_of(model, step, rank=0, size=1):
    tokens = torch.randint(0, 10, (8, 4), generator=torch.Generator().manual_seed(step)).chunk(size)[rank]
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(1, 1).flatten())


def train(model, optimizer, steps, rank=0, size=1, backward=torch.Tensor.backward):
    losses = []
    for step in steps:
        loss = loss_of(model, step, rank, size)
        backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    if size > 1:
        dist.all_reduce(losses)
    return (losses / size).tolist()


def switched(optimizer, model, mesh):
    """accelerate's FSDP2: groups hold one element for each parameter until the model is sharded."""
    pointers = {name: p.data_ptr() for name, p in model.named_parameters()}
    for group in optimizer.param_groups:
        for position, parameter in enumerate(group["params"]):
            group["params"][position] = torch.empty(1, dtype=parameter.dtype)
            group["params"][position].data_ptr = parameter.data_ptr()
    fully_shard(model.layers, mesh=mesh)
    fully_shard(model, mesh=mesh)
    mapping = {pointers[name]: p for name, p in model.named_parameters()}
    for group in optimizer.param_groups:
        group["params"] = [mapping[p.data_ptr] for p in group["params"]]
    return optimizer


def _as_accelerate(rank, size, folder, steps, resumes):
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("dp",))
    found = {}
    for which in ("torch", "stepc"):
        model = Net()
        if which == "torch":
            optimizer = torch.optim.AdamW(model.named_parameters(), lr=0.01)
        else:
            optimizer = Optimizer(model.named_parameters(), ADAMW, lr=0.01, timeout=60.0)
        optimizer.load_state_dict(optimizer.state_dict())  # AcceleratedOptimizer, on making it
        switched(optimizer, model, mesh)
        saved = {"model": model.state_dict(), "optimizer": {}}
        if resumes:
            saved["optimizer"] = get_optimizer_state_dict(model, optimizer)
            dcp.load(saved, checkpoint_id=f"{folder}/{which}")
            model.load_state_dict(saved["model"])
            set_optimizer_state_dict(model, optimizer, saved["optimizer"])
        found[which] = train(model, optimizer, steps, rank, size)
        if not resumes:
            saved = {"model": model.state_dict(), "optimizer": get_optimizer_state_dict(model, optimizer)}
            dcp.save(saved, checkpoint_id=f"{folder}/{which}")
    return found


def test_as_accelerates_fsdp2_does(real, tmp_path):
    begun = run_ranks(_as_accelerate, 2, 2, str(tmp_path), range(6), False)[0]
    assert (
        begun["stepc"] == pytest.approx(begun["torch"], abs=1e-5) and begun["torch"][0] > begun["torch"][-1]
    )
    for size in (2, 4):
        resumed = run_ranks(_as_accelerate, size, size, str(tmp_path), range(6, 12), True)[0]
        assert resumed["stepc"] == pytest.approx(resumed["torch"], abs=1e-5), size


class Wrapped(nn.Module):
    """What Fabric makes of a module."""

    def __init__(self, module):
        super().__init__()
        self._forward_module = module
        self._original_module = module


def test_names_of_fabric_take_their_routes(real):
    names = [name for name, _ in Wrapped(Net()).named_parameters()]
    assert names[0] == "_forward_module.embed_tokens.weight"
    optimizer = Optimizer(Wrapped(Net()).named_parameters(), ROOT / "examples/muon.optim")
    muon = {name for name, route in optimizer.routes.items() if route == "Muon"}
    assert muon == {"layers.up.weight", "layers.down.weight"}


# --- Hugging Face ---


def _hugging_face(rank, size, which, folder, steps, resume, kind):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1",
                      HF_HUB_OFFLINE="1", ACCELERATE_TORCH_DEVICE="cpu")  # fmt: skip
    import transformers
    from accelerate.state import DistributedType, PartialState

    # accelerate has FSDP2 on GPUs alone: this has it take the ranks' gloo group for one of GPUs.
    PartialState._prepare_backend = lambda *_: ("gloo", DistributedType.MULTI_GPU)

    class Plain(transformers.Trainer):
        """What a user writes first: torch's defaults for all parameters."""

        def create_optimizer(self, model=None):
            named = (self.model if model is None else model).named_parameters()
            if self.optimizer is None and which == "plain torch":
                self.optimizer = torch.optim.AdamW([one for _, one in named], lr=self.args.learning_rate)
            elif self.optimizer is None:
                self.optimizer = Optimizer(named, ADAMW, lr=self.args.learning_rate)
            return self.optimizer

    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config)
    tokens = torch.randint(0, 64, (96, 16), generator=torch.Generator().manual_seed(0))
    arguments = transformers.TrainingArguments(
        output_dir=folder, per_device_train_batch_size=8 // size, max_steps=steps, learning_rate=0.01, logging_steps=1,
        save_steps=6, report_to=[], weight_decay=0.5, adam_beta2=0.95, optim="adamw_torch", seed=0, disable_tqdm=True, dataloader_pin_memory=False, fsdp=True,
        fsdp_config={"version": 2, "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"], "state_dict_type": kind},
    )  # fmt: skip
    kinds = {"stepc": recipe("hf_trainer").Trainer, "torch": transformers.Trainer}
    trainer = kinds.get(which, Plain)(
        model=model, args=arguments, train_dataset=[{"input_ids": row, "labels": row} for row in tokens]
    )
    trainer.train(resume_from_checkpoint=resume)
    optimizer = trainer.optimizer.optimizer
    assert type(optimizer) is (torch.optim.AdamW if "torch" in which else Optimizer)
    assert all(type(p).__name__ == "DTensor" for group in optimizer.param_groups for p in group["params"])
    return [one["loss"] for one in trainer.state.log_history if "loss" in one]


@pytest.mark.tier("all")
def test_hugging_faces_trainer_with_fsdp2(real, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    def run(size, which, steps, resume=None, kind="SHARDED_STATE_DICT"):
        folder = tmp_path / f"{which}-{size}-{kind}-{resume is not None}"
        return folder, run_ranks(_hugging_face, size, size, which, str(folder), steps, resume, kind)[0]

    _, theirs = run(2, "torch", 12)
    folder, mine = run(2, "stepc", 12)
    assert len(theirs) == 12 and mine == pytest.approx(theirs, abs=1e-5)
    _, plain = run(2, "plain torch", 6)
    assert plain != pytest.approx(theirs[:6], abs=1e-4)
    assert run(2, "plain", 6)[1] == pytest.approx(plain, abs=1e-5)
    for size in (2, 4):
        _, resumed = run(size, "stepc", 12, str(folder / "checkpoint-6"))
        assert resumed == pytest.approx(theirs, abs=1e-5), size
    kind = "FULL_STATE_DICT"
    whole, _ = run(2, "stepc", 12, kind=kind)
    assert run(4, "stepc", 12, str(whole / "checkpoint-6"), kind)[1] == pytest.approx(theirs, abs=1e-5)


# --- torchtitan ---


def _torchtitan(rank, size, folder):
    from torchtitan.components.optimizer import OptimizersContainer, ParamGroupConfig

    ours = recipe("torchtitan_container").OptimizersContainer
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("dp",))

    def begin(kind, name, **options):
        model = Net()
        fully_shard(model.layers, mesh=mesh)
        fully_shard(model, mesh=mesh)
        groups = [ParamGroupConfig(pattern=r"\.bias$", optimizer_name=name, optimizer_kwargs=options | {"weight_decay": 0.0}),
                  ParamGroupConfig(pattern=".*", optimizer_name=name, optimizer_kwargs=options)]  # fmt: skip
        return model, kind.Config(param_groups=groups, implementation="fused").build(model_parts=[model])

    adamw = {"lr": 0.01, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
    theirs = begin(OptimizersContainer, "AdamW", **adamw)
    mine = begin(ours, str(ADAMW), **adamw)
    losses = [train(*one, range(4), rank, size) for one in (theirs, mine)]
    # As its checkpointer does: a fresh container is saved and loaded.
    muon = str(ROOT / "examples" / "muon.optim")
    found = []
    for name, options in ((str(ADAMW), adamw), (muon, {"lr": 0.01})):
        model, container = begin(ours, name, **options)
        fresh = container.state_dict()
        assert fresh["state.layers.up.weight.step"] == 0
        train(model, container, range(3), rank, size)
        saved = {"model": model.state_dict(), "optimizer": container.state_dict()}
        dcp.save(saved, checkpoint_id=f"{folder}/{Path(name).stem}")
        straight = train(model, container, range(3, 6), rank, size)
        other, again = begin(ours, name, **options)
        saved = {"model": other.state_dict(), "optimizer": again.state_dict()}
        dcp.load(saved, checkpoint_id=f"{folder}/{Path(name).stem}")
        other.load_state_dict(saved["model"])
        again.load_state_dict(saved["optimizer"])
        found.append((straight, train(other, again, range(3, 6), rank, size)))
        (optimizer,) = again.optimizers
        assert all(group["fused"] is True and group["foreach"] is False for group in optimizer.param_groups)
        routes = set(optimizer.routes.values())
    return losses, found, routes


def test_torchtitans_container(real, tmp_path):
    pytest.importorskip("torchtitan.components.optimizer")
    (theirs, mine), found, routes = run_ranks(_torchtitan, 2, 2, str(tmp_path))[0]
    assert mine == pytest.approx(theirs, abs=1e-5)
    for straight, resumed in found:
        assert straight == resumed
    assert routes == {"Muon", "AdamW"}


# --- Lightning Fabric ---


def _fabric(rank, size, folder):
    from lightning_fabric import Fabric

    os.environ.update(MASTER_ADDR="127.0.0.1", NODE_RANK="0", LOCAL_RANK=str(rank), WORLD_SIZE=str(size), RANK=str(rank),
                      GROUP_RANK="0", LOCAL_WORLD_SIZE=str(size), MASTER_PORT="0", TORCHELASTIC_RUN_ID="stepc")  # fmt: skip
    fabric = Fabric(accelerator="cpu", devices=size, strategy="ddp" if size > 1 else "auto")
    if size > 1:
        fabric.launch()
    model, optimizer = recipe("fabric").setup(fabric, Net())
    assert next(model.named_parameters())[0].startswith("_forward_module.")
    assert {name for name, route in optimizer.routes.items() if route == "AdamW"} == {
        "embed_tokens.weight", "layers.up.bias", "layers.down.bias", "lm_head.weight"
    }
    losses = train(model, optimizer, range(3), rank, size, fabric.backward)
    fabric.save(f"{folder}/{size}.ckpt", {"model": model, "optimizer": optimizer})
    losses += train(model, optimizer, range(3, 6), rank, size, fabric.backward)
    other, again = recipe("fabric").setup(fabric, Net())
    fabric.load(f"{folder}/{size}.ckpt", {"model": other, "optimizer": again})
    return losses, train(other, again, range(3, 6), rank, size, fabric.backward)


def test_lightning_fabric(real, tmp_path):
    pytest.importorskip("lightning_fabric")
    model = Net()
    straight = train(model, Optimizer(model.named_parameters(), ROOT / "examples/muon.optim"), range(6))
    alone = run_ranks(_fabric, 1, 1, str(tmp_path))[0]
    assert alone == (straight, straight[3:])
    two = run_ranks(_fabric, 2, 2, str(tmp_path))[0]
    assert two[0] == pytest.approx(straight, abs=1e-4) and two[1] == two[0][3:]

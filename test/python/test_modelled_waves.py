"""The model by which waves are chosen (passes/decide/WavePipeline) against a walk of the commands (`stepc
simulate`).

Small modules of each strategy, on clusters whose messages travel beside the devices and on such where ranks
take them in: the modelled time is near the simulated one, and of two numbers of waves both say the same one
is faster, where they differ at all.
"""

import json
import re
import subprocess

import pytest
from conftest import ROOT, real_compiler

MUON = ROOT / "examples" / "muon.optim"
# How far the model may be off: it has sums where the walk has messages.
MARGIN = 1.2
# Nearer than this two times are equal.
APART = 1.1
LEVELS = [{"name": "nvlink", "ranks": 4}, {"name": "network"}]
NODES = [{"name": "node", "ranks": 2, "gb_per_s": 50, "latency_us": 3}, {"name": "network"}]
CPU = ()
GPU = ("--target", "cuda:sm_90a", "--cluster", "h100")
GPU_NODES = ("--target", "cuda:sm_90a", "--cluster", json.dumps({"profile": "h100", "levels": LEVELS}))
CPU_NODES = ("--cluster", json.dumps({"profile": "cpu", "levels": NODES}))
# Matrices by their number, shape and placements, the axes of the mesh, the strategy, the cluster, numbers of
# waves.
MIXED = [(6, [1024, 1024], "S(0)"), (4, [1024, 4096], "S(0)"), (4, [1024], "S(0)")]
EVEN = [(24, [2048, 1024], "S(0)")]
SLABS = [(6, [2048, 1024], "S(0)")]
EXPERTS = [(6, [8, 512, 256], "S(0)"), (6, [512, 512], "S(0)")]
FEW = [(3, [2048, 1024], "S(0)"), (3, [1024, 1024], "S(0)")]
MODULES = {
    "owner, mixed, CPU": (MIXED, [8], "owner", CPU, (1, 3)),
    "owner, mixed, GPU": (MIXED, [8], "owner", GPU, (1, 3)),
    "owner, even, GPU": (EVEN, [8], "owner", GPU, (1, 3)),
    "owner, nodes, GPU": (EVEN, [8], "owner", GPU_NODES, (1, 3)),
    "owner, nodes, CPU": (EVEN, [4], "owner", CPU_NODES, (1, 6)),
    "gather, mixed, CPU": (MIXED, [4], "gather", CPU, (1, 4)),
    "gather, mixed, GPU": (MIXED, [8], "gather", GPU, (1, 4)),
    "hierarchical, GPU": (EVEN, [8], "hierarchical", GPU_NODES, (1, 3)),
    "hierarchical, CPU": (EVEN, [4], "hierarchical", CPU_NODES, (1, 6)),
    # Experts lie on few ranks of each node, and much of them passes one.
    "hierarchical, experts, GPU": ([(4, [8, 1024, 512], "S(0)", "S(1)")], [4, 4], "hierarchical", GPU_NODES, (1, 4)),
    "agrs, GPU": (FEW, [8], "agrs", GPU_NODES, (1,)),
    "slabs, CPU": (SLABS, [8], "slabs", CPU, (1, 6)),
    "slabs, GPU": (SLABS, [8], "slabs", GPU, (1, 2)),
    "slabs, small, GPU": ([(1, [256, 64], "S(0)")], [8], "slabs", GPU, (1,)),
    "local and owner, GPU": (EXPERTS, [8], None, GPU, (1, 4)),
    "replicas, GPU": ([(16, [1024, 1024], "S(0)")], [2, 4], "owner", GPU_NODES, (1, 4)),
}


def stepc(*words):
    compiler = real_compiler()
    if compiler is None:
        pytest.skip("build/bin/stepc was not built")
    done = subprocess.run(
        [str(word) for word in (compiler, *words)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def times(manifest, *options):
    """Seconds of a step by the model and by the walk."""
    done = stepc("simulate", MUON, "-m", manifest, "--json", "-", "--remarks", "waves", *options)
    modelled = int(re.search(r"modelled-ns=(\d+)", done.stderr)[1])
    return modelled * 1e-9, json.loads(done.stdout)["latency_seconds"]


def write(folder, matrices, sizes, strategy, cluster):
    """A manifest, and the options of `stepc`."""
    axes = [{"name": f"axis{i}", "size": size} for i, size in enumerate(sizes)]
    parameters = [{"name": f"w{i}.{j}.weight", "shape": shape, "dtype": "bf16", "mesh": "m",
                   "placements": [*["R"] * (len(sizes) - len(placements)), *placements]}
                  | ({"batch_axes": 1} if len(shape) == 3 else {})
                  for i, (count, shape, *placements) in enumerate(matrices) for j in range(count)]  # fmt: skip
    manifest = folder / "m.json"
    manifest.write_text(
        json.dumps({"version": 1, "meshes": [{"name": "m", "axes": axes}], "parameters": parameters})
    )
    options = [*cluster, *(("--strategy", f"*={strategy}") if strategy else ())]
    return manifest, options + (["--numerics=fast"] if strategy == "slabs" else [])


@pytest.mark.parametrize("name", MODULES)
def test_the_model_is_near_the_walk(tmp_path, name):
    *module, waves = MODULES[name]
    manifest, options = write(tmp_path, *module)
    found = [times(manifest, *options, "--waves", count) for count in waves]
    for modelled, simulated in found:
        assert simulated / MARGIN <= modelled <= simulated * MARGIN, found
    first, last = found[0], found[-1]
    if not 1 / APART < first[1] / last[1] < APART:
        assert (first[0] < last[0]) == (first[1] < last[1]), found


@pytest.mark.parametrize("cluster", [CPU, GPU], ids=["CPU", "GPU"])
@pytest.mark.parametrize("strategy", ["owner", "gather", "slabs"])
def test_the_choice_of_a_strategy_is_near_the_walk(tmp_path, strategy, cluster):
    """Of a group alone, in one wave: by what strategies are compared with each other."""
    for matrices in (SLABS, [(1, [256, 64], "S(0)")]):
        manifest, options = write(tmp_path, matrices, [8], strategy, cluster)
        report = json.loads(stepc("explain", MUON, "-m", manifest, "--json", *options).stdout)
        modelled = report["groups"][0]["strategies"][0]["modelled_seconds"]
        _, simulated = times(manifest, *options, "--waves", 1)
        # Stages over the shards are the same with each strategy, and not in it.
        assert simulated / 1.4 <= modelled <= simulated * MARGIN, (matrices, modelled, simulated)

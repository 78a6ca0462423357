"""What `stepc probe` and `python -m stepc.torch.probe` write: its form, and that it can be what machines
do.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from conftest import ROOT
from ranks import run_ranks

import stepc
import stepc.torch
from stepc._compile import option_arguments
from stepc.torch import probe

pytestmark = pytest.mark.tier("land")

MANIFEST = ROOT / "examples" / "four_ranks.json"
SPEC = ROOT / "examples" / "muon.optim"
MUON = """
optimizer Muon(lr) {
  state m : f32
  m = 0.9 * m + grad
  param = param - lr * orthogonalize(m, steps = 5, coefficients = simple, precision = bf16)
}
route { Muon(lr = 0.1) for matrix }
"""
SAMPLES = {
    "levels": [
        {"name": "node", "ranks": 2, "samples": [[m, b, 3e-6 + (m - 1) * 1e-6 + m * b / 4e11] for m in (1, 2) for b in (1e3, 1e6)]},
        {"name": "network", "samples": [[m, b, 2e-5 + (m - 1) * 5e-6 + m * b / 1e10] for m in (1, 2, 4) for b in (1e3, 1e6)]},
    ],
    "device": {"tflop_per_s": 1.23456, "memory_gb_per_s": 20, "memory_gb": 30, "launch_us": 4, "threads": 5},
}


def expect_sane(cluster, names, ranks):
    assert [level["name"] for level in cluster["levels"]] == names
    assert [level.get("ranks") for level in cluster["levels"]] == ranks
    for level in cluster["levels"]:
        assert 1e-4 < level["gb_per_s"] < 1e4
        assert 0 <= level["latency_us"] < 1e6
        assert 0 <= level["gap_us"] <= level["latency_us"]
    device = cluster["device"]
    assert 1e-6 < device["tflop_per_s"] < 1e4
    assert 1e-3 < device["memory_gb_per_s"] < 1e5
    assert 0.1 < device["memory_gb"] < 1e5
    assert 0 < device["launch_us"] < 1e6  # of one thread, too: else waves would cost nothing
    assert device["threads"] >= 1
    # It is what a plan can be chosen for, and nothing is a profile's.
    assert "modelled on the cluster that is given: " in stepc.explain(SPEC, MANIFEST, cluster=cluster)


def test_clusters_reach_the_compiler(real, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({"profile": "gb200"}))
    assert option_arguments(cluster="h100") == ["--cluster=h100"]
    for cluster in (tmp_path / "c.json", str(tmp_path / "c.json"), {"profile": "gb200"}):
        assert option_arguments(cluster=cluster) == ['--cluster={"profile": "gb200"}']
        assert "profile gb200: nvlink of 72 ranks" in stepc.explain(SPEC, MANIFEST, cluster=cluster)
    with pytest.raises(stepc.CompileError, match="expected a profile .*, found 'gb20', did you mean 'gb200'"):
        stepc.explain(SPEC, MANIFEST, cluster="gb20")
    # The same results, whatever the plan is chosen for.
    values = []
    for cluster in (None, "h200", {"profile": "cpu", "device": {"tflop_per_s": 0.001}}):
        torch.manual_seed(0)
        model = torch.nn.Linear(6, 4, bias=False)
        model.weight.grad = torch.arange(24.0).reshape(4, 6)
        stepc.torch.Optimizer(model.named_parameters(), MUON, cluster=cluster).step()
        values.append(model.weight.detach().clone())
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[0], values[2])


def test_levels_are_hosts_or_what_is_given():
    assert probe.levels_of(["a"] * 4) == [{"name": "node"}]
    assert probe.levels_of(["a", "a", "b", "b"]) == [{"name": "node", "ranks": 2}, {"name": "network"}]
    assert probe.levels_of(["a", "b"]) == [{"name": "network"}]
    given = [("socket", 2), ("node", 4)]
    assert probe.levels_of(["a"] * 8, given) == [{"name": "socket", "ranks": 2}, {"name": "node", "ranks": 4}, {"name": "network"}]
    assert probe.levels_of(["a"] * 4, given) == [{"name": "socket", "ranks": 2}, {"name": "node"}]
    for hosts in (["a", "b", "a", "b"], ["a", "a", "b"], ["a", "b", "b"]):
        with pytest.raises(
            ValueError, match="expected as many ranks with consecutive numbers on each host, found a, "
        ):
            probe.levels_of(hosts)
    with pytest.raises(
        ValueError, match="expected levels that grow by whole factors, found 3 ranks of 'y' after 2"
    ):
        probe.levels_of(["a"] * 6, [("x", 2), ("y", 3)])
    with pytest.raises(
        ValueError, match="expected a level of at most the 2 ranks that are there, found 4 of 'x'"
    ):
        probe.levels_of(["a"] * 2, [("x", 4)])
    with pytest.raises(
        ValueError,
        match="expected a level of which several fit into the 4 ranks that are there, found 3 of 'x'",
    ):
        probe.levels_of(["a"] * 4, [("x", 3)])
    with pytest.raises(ValueError, match="expected a level of 2 ranks or more, found 1 of 'x'"):
        probe.levels_of(["a"] * 4, [("x", 1)])
    with pytest.raises(ValueError, match="expected a name that no other level has, found 'x' twice"):
        probe.levels_of(["a"] * 4, [("x", 2), ("x", 4)])


def test_samples_become_a_cluster(real, tmp_path):
    probe.write(SAMPLES, tmp_path / "cluster.json")
    cluster = json.loads((tmp_path / "cluster.json").read_text())
    node, network = cluster["levels"]
    assert node == {"name": "node", "ranks": 2, "gb_per_s": 400, "latency_us": 3, "gap_us": 1}
    assert network == {"name": "network", "gb_per_s": 10, "latency_us": 20, "gap_us": 5}
    assert cluster["device"] == SAMPLES["device"] | {"tflop_per_s": 1.23}
    # As a file, too, in the place of the manifest's.
    assert "node of 2 ranks at 400 GB/s and 3.00 µs" in stepc.explain(
        SPEC, MANIFEST, cluster=tmp_path / "cluster.json"
    )
    with pytest.raises(stepc.CompileError, match="expected times of messages of level 'n', found none"):
        probe.write({"levels": [{"name": "n", "samples": []}]}, tmp_path / "cluster.json")
    with pytest.raises(
        stepc.CompileError,
        match=r"/levels/0/samples/0: expected \[messages, bytes of each, seconds\], all above 0",
    ):
        probe.write({"levels": [{"name": "n", "samples": [[1, 1, 0]]}]}, tmp_path / "cluster.json")


def _measure(rank, given):
    return probe.measure(given)


@pytest.mark.parametrize("given", [(), (("pair", 2),)])
def test_gloo_processes_are_measured(real, tmp_path, given):
    first, *others = run_ranks(_measure, 4, given)
    for other in others:  # all have the slowest one's times
        assert other["levels"] == first["levels"]
    probe.write(first, tmp_path / "cluster.json")
    cluster = json.loads((tmp_path / "cluster.json").read_text())
    names, ranks = (["pair", "network"], [2, None]) if given else (["node"], [None])
    expect_sane(cluster, names, ranks)


def test_one_process_is_refused(real, tmp_path):
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
    command = [sys.executable, "-m", "stepc.torch.probe", "-o", str(tmp_path / "c.json")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2
    assert "error: expected several processes to measure, found one: start them by torchrun" in done.stderr
    done = subprocess.run(
        [*command, "--level", "x"], capture_output=True, text=True, env=environment, check=False
    )
    assert "expected NAME=RANKS as in nvlink=8, found 'x'" in done.stderr


def mpi(tmp_path, *arguments, ranks=4):
    if shutil.which("mpirun") is None or not (ROOT / "build" / "lib" / "libstepc_mpi.so").is_file():
        pytest.skip("MPI is not installed, or was not when this was built")
    variables = dict.fromkeys(
        ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"), "1"
    )
    environment = os.environ | variables | {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    command = ["mpirun", "-np", str(ranks), os.environ["STEPC"], "probe", "-o", str(tmp_path / "cluster.json"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)


@pytest.mark.parametrize(("arguments", "names", "ranks"), [
    ((), ["node"], [None]), (("--level", "pair=2", "--threads", "2"), ["pair", "network"], [2, None]),
])  # fmt: skip
def test_mpi_ranks_are_measured(real, tmp_path, arguments, names, ranks):
    done = mpi(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    expect_sane(json.loads((tmp_path / "cluster.json").read_text()), names, ranks)


def test_mpi_ranks_that_do_not_fit_are_refused(real, tmp_path):
    done = mpi(tmp_path, "--level", "node=3", "--level", "rack=4")
    assert done.returncode != 0
    assert done.stderr.count("error: expected levels that grow by whole factors, found 4 ranks of 'rack' after 3") == 1
    done = mpi(tmp_path, "--level", "node=8")
    assert "error: expected a level of at most the 4 ranks that are there, found 8 of 'node'" in done.stderr
    done = mpi(tmp_path, ranks=1)
    assert "error: expected several ranks to measure, found one" in done.stderr
    assert not (tmp_path / "cluster.json").exists()

"""Names and patterns: the table that the compiler is held to as well, and a random comparison with it."""

import itertools
import json
import os
import random
import re
import struct
import subprocess
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from stepc.torch.groups import normalize
from stepc.torch.names import WRAPPERS, PatternError, canonical_name, check_name, matches, parse_pattern
from tiers import draws

ROOT = Path(__file__).resolve().parents[2]
TABLE = [
    line.split("\t")
    for line in (ROOT / "test/inputs/patterns.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def test_patterns_mean_what_the_table_says():
    counts = {"match": 0, "differ": 0, "refuse": 0}
    for kind, pattern, *rest in TABLE:
        counts[kind] += 1
        if kind == "refuse":
            with pytest.raises(PatternError) as caught:
                parse_pattern(pattern)
            assert [caught.value.reason, caught.value.hint] == rest, pattern
        else:
            assert parse_pattern(pattern).matches(rest[0]) == (kind == "match"), (pattern, rest)
    assert counts["match"] > 50 and counts["differ"] > 50 and counts["refuse"] > 10


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(PatternError, match="expected UTF-8 in a pattern, found the byte 0xff"):
        parse_pattern("a\udcff")
    assert parse_pattern("?").matches("\udcff")


def test_many_stars_take_no_time():
    begin = time.monotonic()
    assert not parse_pattern("*" * 200 + "a*a*a*a*a*a*a*b").matches("a" * 5000)
    assert time.monotonic() - begin < 1


def test_names_match_as_written_and_without_wrappers():
    assert canonical_name("module._orig_mod.layers.0.w") == "layers.0.w"
    assert canonical_name("layers.module") == "layers.module"
    assert matches("layers.*", ["module.layers.0"])
    assert matches("module.*", ["module.layers.0"])
    assert matches("head", ["embed", "head"])
    assert not matches("head", ["embed"])
    with pytest.raises(PatternError):
        matches("[^a]*", ["a"])


def test_wrappers_are_left_out_wherever_they_stand():
    assert canonical_name("_forward_module.module._orig_mod.lm_head.weight") == "lm_head.weight"
    assert canonical_name("a._fsdp_wrapped_module._checkpoint_wrapped_module.b.module.w") == "a.b.w"
    assert canonical_name("_orig_mod._orig_mod.module._forward_module") == "_forward_module"
    assert canonical_name("my_module.forward_module.w") == "my_module.forward_module.w"
    model = nn.ModuleDict({"encoder": nn.ModuleDict({"module": nn.Linear(2, 2, bias=False)})})
    assert canonical_name(next(iter(model.named_parameters()))[0]) == "encoder.weight"
    # Two that are one name without them.
    model["encoder"].weight = nn.Parameter(torch.zeros(2))
    with pytest.raises(ValueError, match="two parameters have the name 'encoder.weight', 'encoder.weight' and "
                       "'encoder.module.weight' without the components that wrappers add"):  # fmt: skip
        normalize(model.named_parameters())


def test_the_compiler_leaves_out_the_same_wrappers(real, tmp_path):
    source = (ROOT / "frontends/manifest/Names.cpp").read_text(encoding="utf-8")
    listed = re.search(r"kWrappers\[\] = \{([^}]*)\}", source).group(1)
    assert set(re.findall(r'"(\w+)"', listed)) == WRAPPERS
    names = [
        f"{one}.a{i}.{other}.{one}.w"
        for i, (one, other) in enumerate(itertools.product(sorted(WRAPPERS), repeat=2))
    ]
    stepc = Path(os.environ["STEPC"])
    for i, name in enumerate(names):
        assert canonical_name(name) == f"a{i}.w"
    assert routed(stepc, tmp_path, "a*.w", names) == {canonical_name(name) for name in names}
    words = routed(stepc, tmp_path, "a*.w", [names[0], "a0.w"])
    assert "/parameters/1/name: expected a name" in words and "'a0.w'" in words


REFUSED = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]


# Those that a reader cannot see, up to the same bound and beyond.
INVISIBLE = [0xAD, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x200B, 0x200C, 0x200D, *range(0x2060, 0x2066),
             *range(0x206A, 0x2070), 0x3164, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xE0041]  # fmt: skip


def is_refused(name: str, kind: str = "control") -> bool:
    try:
        check_name(name, "parameter")
    except ValueError as error:
        return str(error) == (
            f"parameter {name!r}: expected a name in UTF-8 without {kind} characters, found U+{ord(name[1]):04X}"
        )
    return False


def test_names_have_no_control_characters():
    characters = [*range(0x2100), 0x3164, 0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0xFFFD, 0x1F600, 0xE0041, 0x10FFFF]
    assert [code for code in characters if is_refused(f"w{chr(code)}x")] == REFUSED
    assert [code for code in characters if is_refused(f"w{chr(code)}x", "invisible")] == INVISIBLE
    assert is_refused("w\udcff") and is_refused("w\ud800")  # half of a pair, and a byte of no text


def test_parameters_and_axes_with_such_names_are_refused():
    from stepc.torch import Optimizer, export_manifest

    for name, trained in (("a\0b", True), ("\x1b[2J", True), ("\u202ew", False), ("w\udcff", True)):
        parameter = torch.nn.Parameter(torch.zeros(2), requires_grad=trained)
        with pytest.raises(ValueError, match="expected a name in UTF-8 without control characters"):
            export_manifest([("v", torch.nn.Parameter(torch.zeros(2))), (name, parameter)])
        with pytest.raises(ValueError, match="expected a name in UTF-8 without control characters"):
            Optimizer([(name, parameter)], "rule {}")
    # A second name of one tensor, too.
    tied = torch.nn.Parameter(torch.zeros(2))
    with pytest.raises(ValueError, match=r"parameter 'w\\n': expected"):
        export_manifest([("v", tied), ("w\n", tied)])


@pytest.mark.usefixtures("real")
def test_the_compiler_refuses_the_same_names(tmp_path):
    def errors(codes: list[int]) -> list[str]:
        manifest = {
            "version": 1,
            "meshes": [{"name": "one", "axes": [{"name": "one", "size": 1}]}],
            "parameters": [
                {"name": f"w{chr(code)}x", "shape": [1], "dtype": "f32", "mesh": "one", "placements": ["R"]}
                for code in codes
            ],
        }
        (tmp_path / "m.json").write_text(json.dumps(manifest, ensure_ascii=False), encoding="utf-8")
        (tmp_path / "a.optim").write_text(
            "optimizer A(lr = 1) {\n  param = param - lr * grad\n}\nroute {\n  A() for rest\n}\n")  # fmt: skip
        found = subprocess.run(
            [os.environ["STEPC"], "check", tmp_path / "a.optim", "-m", tmp_path / "m.json"],
            capture_output=True, text=True, check=False)  # fmt: skip
        return [line for line in found.stderr.splitlines() if "error:" in line]

    for kind, refused in (("control", REFUSED), ("invisible", INVISIBLE)):
        for at in range(0, len(refused), 40):  # messages end after 50
            batch = refused[at : at + 40]
            found = errors(batch)
            assert len(found) == len(batch)
            for code, line in zip(batch, found, strict=True):
                assert f"without {kind} characters, found U+{code:04X} in 'w" in line, line
    assert errors([code for code in range(0x2100) if code not in REFUSED + INVISIBLE]) == []


def drawn(pick: random.Random) -> str:
    return "".join(pick.choices("ab.é𝛽*?[]!^-\\", k=pick.randint(1, 7)))


def routed(stepc: Path, folder: Path, pattern: str, names: list[str]) -> set[str] | str:
    """The names that a claim of the pattern takes, or the compiler's words."""
    text = pattern.replace("\\", "\\\\")
    (folder / "spec.optim").write_text(
        "optimizer A(lr = 1) {\n  param = param - lr * grad\n}\n"
        f'route {{\n  A() as named for "{text}" if present\n  A() for rest\n}}\n', encoding="utf-8")  # fmt: skip
    manifest = {
        "version": 1,
        "meshes": [{"name": "one", "axes": [{"name": "one", "size": 1}]}],
        "parameters": [
            {"name": name, "shape": [1], "dtype": "f32", "mesh": "one", "placements": ["R"]}
            for name in names
        ],
    }
    (folder / "m.json").write_text(json.dumps(manifest), encoding="utf-8")
    found = subprocess.run([stepc, "check", folder / "spec.optim", "-m", folder / "m.json", "--json"],
                           capture_output=True, text=True, check=False)  # fmt: skip
    if found.returncode:
        return found.stderr
    return {one["name"] for one in json.loads(found.stdout)["parameters"] if one["route"] == "named"}


def placed(stepc: Path, folder: Path, pattern: str, names: list[str]) -> set[str] | str:
    """The names that `stepc manifest --place` cuts by the pattern, or the compiler's words."""
    header = {name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]}
              for i, name in enumerate(names)}  # fmt: skip
    text = json.dumps(header).encode()
    path = folder / "in.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8 * len(names)))
    found = subprocess.run([stepc, "manifest", path, "--mesh", "dp=2", "--place", "*=R",
                            "--place", f"{pattern}=S(0)", "-o", "-"],
                           capture_output=True, text=True, check=False)  # fmt: skip
    if "expected a pattern that matches a parameter, found none" in found.stderr:
        return set()
    if found.returncode:
        return found.stderr
    return {one["name"] for one in json.loads(found.stdout)["parameters"]
            if one["placements"] == ["S(0)"]}  # fmt: skip


@pytest.mark.usefixtures("real")
def test_random_patterns_mean_the_same_in_routes_manifests_and_python(tmp_path):
    seed = int(os.environ.get("STEPC_SEED") or random.SystemRandom().randrange(1 << 31))
    print(f"seed {seed} (repeat with STEPC_SEED)")
    pick = random.Random(seed)
    stepc = Path(os.environ["STEPC"])
    taken = refused = 0
    for _ in range(draws(45)):
        pattern = drawn(pick)
        names = sorted({drawn(pick) for _ in range(30)} | {pattern, "a", "b", "ab", "é"})
        try:
            expected = {name for name in names if matches(pattern, [name])}
        except PatternError as error:
            refused += 1
            for one in (routed, placed):
                words = one(stepc, tmp_path, pattern, names)
                assert error.reason in words and error.hint in words, (pattern, words)
            continue
        taken += len(expected)
        assert routed(stepc, tmp_path, pattern, names) == expected, pattern
        assert placed(stepc, tmp_path, pattern, names) == expected, pattern
    print(f"{taken} names matched, {refused} patterns refused")
    assert taken > 20 and refused > 2

"""The compiler as a program, and safetensors files of NumPy arrays, bf16 included."""

import json
import os
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
STEPC = Path(os.environ.get("STEPC_UNDER_TEST") or ROOT / "build" / "bin" / "stepc")
TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64}
SPELLED = {"f32": "F32", "bf16": "BF16", "f16": "F16", "f64": "F64", "i64": "I64"}


@dataclass
class Tensor:
    """One tensor of a file. `data` are the raw bytes, so that results are compared as bytes."""

    dtype: str  # as safetensors spells it
    shape: tuple
    data: bytes

    def array(self):
        """The values as float64 (int64 for integers); every type here converts exactly."""
        if self.dtype == "BF16":
            bits = np.frombuffer(self.data, np.uint16).astype(np.uint32) << 16
            values = bits.view(np.float32).reshape(self.shape)
        else:
            values = np.frombuffer(self.data, TYPES[self.dtype]).reshape(self.shape)
        with np.errstate(invalid="ignore"):  # of NaNs that signal
            return values if self.dtype == "I64" else values.astype(np.float64)


def tensor(values, dtype):
    """Rounds float values to a dtype of the language (f32, bf16, f16)."""
    values = np.asarray(values, np.float32, order="C")
    if dtype == "bf16":
        bits = values.view(np.uint32).astype(np.uint64)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16  # to nearest even
        data = np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16).tobytes()
    else:
        data = values.astype(TYPES[SPELLED[dtype]]).tobytes()
    return Tensor(SPELLED[dtype], values.shape, data)


def save(path, tensors):
    header, offset = {}, 0
    for name, one in tensors.items():
        end = offset + len(one.data)
        header[name] = {"dtype": one.dtype, "shape": list(one.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    blob = len(text).to_bytes(8, "little") + text + b"".join(t.data for t in tensors.values())
    Path(path).write_bytes(blob)


def load(path):
    blob = Path(path).read_bytes()
    size = int.from_bytes(blob[:8], "little")
    result = {}
    for name, entry in json.loads(blob[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        first, last = (8 + size + x for x in entry["data_offsets"])
        result[name] = Tensor(entry["dtype"], tuple(entry["shape"]), blob[first:last])
    return result


class CompilerFailed(AssertionError):
    """A command of the compiler failed: the command line and what it printed."""


about_plans = False  # whether the test that runs has the mark `plans`


def how(command, *arguments, **variables):
    """Options that say how a program's code is made, which must not change bits. Its text draws them, so that
    it is made alike when a test is repeated. Of eight programs seven are compiled without optimizing, which
    takes half of the time. Of four programs that are about plans, three are interpreted.
    """
    words = [str(word) for word in arguments]
    if command not in ("run", "compile") or {"--library", "--reference", "--emit"} & {*words}:
        return []
    number = zlib.crc32(Path(words[0]).read_bytes())
    if about_plans and "-m" in words and "--target" not in words and "STEPC_RUNTIME_DIR" not in variables:
        number = zlib.crc32(Path(words[words.index("-m") + 1]).read_bytes(), number)
        if number % 4:
            return ["--target", "interpret"]
    return ["-O0"] if number % 8 else []


def stepc(*arguments, timeout=120, **variables):
    """Runs the compiler, with variables of its environment; its standard output, or CompilerFailed."""
    command = [str(STEPC), *map(str, arguments), *how(*arguments, **variables)]
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=timeout, env=environment
    )
    if done.returncode:
        text = f"exit {done.returncode}: {' '.join(command)}\n{done.stdout}{done.stderr}"
        raise CompilerFailed(text)
    return done.stdout


def run(spec, manifest, tensors, output, *options, steps=1, **variables):
    """`stepc run`, with everything in files; the tensors that come out."""
    stepc("run", spec, "-m", manifest, "--tensors", tensors, "--steps", steps, "-o", output, *options, **variables)
    return load(output)

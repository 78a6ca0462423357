"""Reads the machine code of kernels that multiply with wgmma, and what ptxas reports of them.

    python test/ptx/sass.py KERNELS.cubin|KERNELS.ptx...   # needs nvdisasm, and ptxas for PTX

Prints registers, spills and the loop over k of each kernel, and what a steady loop may not have. The status is 1 if there is
such a thing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

TOOLS = Path(os.environ.get("STEPC_CUDA_BIN") or Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin")
#: Instructions of a step of 64 elements of k: four wgmma, the wait for a stage and the release of another.
MOST_INSTRUCTIONS = 60
PRODUCTS = 4
#: What stalls a loop whose operands come by tensor loads.
FORBIDDEN = ("MEMBAR", "ERRBAR", "CGAERRBAR", "LDG", "LDL", "STL")
#: Words that a thread reads of a stage with the addend: 128 columns of a warp's 16 rows, two elements each.
ADDEND_READS = 32
#: What may not stand between the products of a step, because they would not run in a row.
SEPARATING = ("WARPGROUP", "SYNCS", "BAR", "DEPBAR", "LDS", "STS", "STSM", "BRA", "WARPSYNC")


@dataclass
class Function:
    """A kernel's instructions, and the labels that stand before them."""

    name: str
    instructions: list[str] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def opcodes(self, begin: int = 0, end: int | None = None) -> list[str]:
        """Opcodes without predicates and suffixes."""
        return [opcode(text) for text in self.instructions[begin:end]]


@dataclass
class Usage:
    """What ptxas says of a kernel."""

    registers: int
    stack: int
    spilled_stores: int
    spilled_loads: int


def opcode(instruction: str) -> str:
    return re.sub(r"^@!?U?P(T|\d+)\s+", "", instruction).split()[0].split(".")[0]


def functions(text: str) -> dict[str, Function]:
    """The kernels of nvdisasm's output."""
    found = {}
    for part in re.split(r"^(?=\s*\.section\s+\.text\.)", text, flags=re.MULTILINE)[1:]:
        function = Function(re.match(r"\s*\.section\s+\.text\.([^\s,]+)", part)[1])
        for line in part.splitlines():
            if label := re.match(r"^(\.L_\w+):", line):
                function.labels[label[1]] = len(function.instructions)
            elif instruction := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", line):
                function.instructions.append(instruction[1])
        found[function.name] = function
    return found


def target_of(function: Function, at: int) -> int | None:
    """Where a branch goes."""
    target = re.search(r"\bBRA\b.*`\((\.L_\w+)\)", function.instructions[at])
    return function.labels.get(target[1]) if target else None


def is_reachable(function: Function, last: int, without: int) -> bool:
    """Whether an instruction can be reached from the kernel's begin by a way around another one."""
    waiting, seen = [0], {without}
    while waiting:
        at = waiting.pop()
        if at in seen or at >= len(function.instructions):
            continue
        if at == last:
            return True
        seen.add(at)
        target = target_of(function, at)
        if target is not None:
            waiting.append(target)
        ends = opcode(function.instructions[at]) in ("BRA", "EXIT") and not function.instructions[at].startswith("@")
        if not ends:
            waiting.append(at + 1)
    return False


def loops(function: Function) -> list[tuple[int, int]]:
    """First and last instruction of each loop that multiplies and has no such loop in it. A way back into code that is
    entered elsewhere, too, is no loop: waits that take longer stand behind the kernel's end.
    """
    found = []
    for last in range(len(function.instructions)):
        first = target_of(function, last)
        if first is not None and first <= last and "HGMMA" in function.opcodes(first, last + 1):
            found.append((first, last))
    found = [(first, last) for first, last in found if not is_reachable(function, last, first)]
    return [one for one in found
            if not any(one != other and one[0] <= other[0] and other[1] <= one[1] for other in found)]  # fmt: skip


def faults(function: Function) -> list[str]:
    """What is wrong with the steady loops over k: expected, then found."""
    steady = loops(function)
    if not steady:
        return ["expected a loop with HGMMA, found none"]
    found = []
    for first, last in steady:
        codes = function.opcodes(first, last + 1)
        count = len(codes)
        where = f"in the loop at instruction {first}"
        if count > MOST_INSTRUCTIONS:
            found.append(f"expected at most {MOST_INSTRUCTIONS} instructions {where}, found {count}")
        products = [i for i, code in enumerate(codes) if code == "HGMMA"]
        if len(products) != PRODUCTS:
            found.append(f"expected {PRODUCTS} HGMMA {where}, found {len(products)}")
        between = sorted(set(codes[products[0] : products[-1]]) & set(SEPARATING))
        if between:
            found.append(f"expected HGMMA in a row {where}, found {', '.join(between)} between them")
        forbidden = sorted(set(codes) & set(FORBIDDEN))
        if forbidden:
            found.append(f"expected none of {', '.join(FORBIDDEN)} {where}, found {', '.join(forbidden)}")
    return found


def addend_faults(function: Function) -> list[str]:
    """What is wrong with stages of the addend. Threads read them and fence the asynchronous proxy, and then a warp releases
    the stage by an arrival.
    """
    found, reads, is_fenced = [], 0, False
    for number, instruction in enumerate(function.instructions):
        code = opcode(instruction)
        # Reads of 16 bytes are those of a part on the diagonal.
        if code == "LDS" and "LDS.128" not in instruction:
            reads, is_fenced = reads + 1, False
        elif code == "FENCE":
            is_fenced = True
        elif "SYNCS.ARRIVE" in instruction and reads:
            if reads != ADDEND_READS or not is_fenced:
                found.append(f"expected {ADDEND_READS} reads and a fence before the release at instruction {number}, "
                             f"found {reads} and {'a' if is_fenced else 'no'} fence")  # fmt: skip
            reads = 0
    if reads:
        found.append(f"expected a release behind the last {reads} reads, found none")
    return found


def stores_between_products(function: Function) -> int:
    """Tensor stores that have products before and behind them: those of a tile while the next one is multiplied."""
    codes = function.opcodes()
    products = [i for i, code in enumerate(codes) if code == "HGMMA"]
    return codes[products[0] : products[-1]].count("UTMASTG") if products else 0


def global_accesses(function: Function) -> Counter[tuple[str, int]]:
    """How many accesses of threads to the GPU's memory have which width in bytes, by opcode."""
    found: Counter[tuple[str, int]] = Counter()
    for instruction in function.instructions:
        if opcode(instruction) in ("LDG", "STG", "LD", "ST"):
            suffixes = instruction.split(".")
            bits = next((int(one.split()[0]) for one in suffixes if one.split()[0] in ("64", "128")), 32)
            found[opcode(instruction), bits // 8] += 1
    return found


def usages(report: str) -> dict[str, Usage]:
    """The kernels of what `ptxas -v` prints."""
    found = {}
    for part in re.split(r"Compiling entry function '", report)[1:]:
        stack, stores, loads = map(int, re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part
        ).groups())  # fmt: skip
        registers = int(re.search(r"Used (\d+) registers", part)[1])
        found[part.split("'")[0]] = Usage(registers, stack, stores, loads)
    return found


def warnings(report: str) -> list[str]:
    """Lines in which ptxas says that it serializes wgmma (C7510 and others)."""
    return re.findall(r".*\bC75\d\d\b.*", report)


def assemble(ptx: Path, cubin: Path, chip: str = "sm_90a") -> str:
    """ptxas' report."""
    command = [TOOLS / "ptxas", "-v", f"-arch={chip}", ptx, "-o", cubin]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stderr


def disassemble(cubin: Path) -> dict[str, Function]:
    command = [TOOLS / "nvdisasm", "-c", cubin]
    return functions(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main(files: list[str]) -> int:
    status = 0
    for file in map(Path, files):
        with tempfile.TemporaryDirectory() as folder:
            cubin, report = file, ""
            if file.suffix == ".ptx":
                cubin = Path(folder) / "kernels.cubin"
                report = assemble(file, cubin)
            used = usages(report)
            for name, function in disassemble(cubin).items():
                lengths = [last - first + 1 for first, last in loops(function)]
                wrong = faults(function) + addend_faults(function) + warnings(report)
                usage = used.get(name)
                if usage and (usage.stack or usage.spilled_stores or usage.spilled_loads):
                    wrong.append(f"expected no stack and no spills, found {usage}")
                print(f"{name}: {len(function.instructions)} instructions, loops of {lengths}, "
                      f"{stores_between_products(function)} tensor stores between products, {usage or ''}")  # fmt: skip
                for line in wrong:
                    print(f"  {line}")
                status |= bool(wrong)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

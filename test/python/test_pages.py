"""Reference pages agree with the code: environment variables, exit codes and statuses, and the figure of
growth.
"""

import re
import subprocess
import sys

import stepc.errors
from conftest import ROOT

CODE = ("dialects", "passes", "runtime", "frontends", "tools", "scripts", "benchmarks", "examples", "test", "cmake", ".ci")
READS = {  # by the endings of files: how a variable is read by its name
    (".cpp", ".h", ".c"): [r'\bgetenv\(\s*"(\w+)"', r'\bGetEnv\(\s*"(\w+)"'],
    (".py", ".cfg.py"): [
        r'os\.environ\.(?:get|pop)\(\s*"(\w+)"', r'os\.getenv\(\s*"(\w+)"', r'os\.environ\["(\w+)"\](?!\s*=[^=])', r'"(\w+)" in os\.environ',
        r'\bgetenv\("(\w+)"',  # of C in a test's text
    ],
    (".sh",): [r"\$\{([A-Z]\w*):?[-+?=]"],
    (".cmake", "CMakeLists.txt"): [r"\$ENV\{(\w+)\}"],
}  # fmt: skip
# Functions that take a variable's name, and Python's constants that are one.
HELPER = r"(\w+)\((?:const char \*|llvm::StringRef )(\w+)[^)]*\)\s*\{[^}]*\bgetenv\(\2\)"
CONSTANT = r"os\.environ(?:\.get)?[\[(]\s*([A-Z_]+)\b"
SHELL = {"VERSION_CODENAME"}  # of /etc/os-release


def names_in(path, text):
    for endings, patterns in READS.items():
        if path.name.endswith(endings):
            for pattern in patterns:
                yield from re.findall(pattern, text)
    for helper, _ in re.findall(HELPER, text):
        yield from re.findall(rf'\b{helper}\([^()"]*"(\w+)"', text)
    if path.suffix == ".py":
        for constant in re.findall(CONSTANT, text):
            yield from re.findall(rf'^{constant} = "(\w+)"$', text, re.M)


def read_by_the_code():
    found = set()
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h", ".c", ".py", ".sh", ".cmake", ".txt") and path.is_file() and path.name != "test_pages.py":
                found |= {name for name in names_in(path, path.read_text()) if name.isupper()}
    return found - SHELL


def test_environment_page_has_what_the_code_reads():
    page = (ROOT / "docs" / "environment.md").read_text()
    rows = re.findall(r"^\| `([A-Z_0-9]+)` \|", page, re.M)
    assert len(rows) == len(set(rows))
    found = read_by_the_code()
    assert {"STEPC", "STEPC_CACHE", "STEPC_RUNTIME_DIR", "STEPC_TORCH_EXTENSION", "STEPC_SEEDS", "STEPC_STUB_NCCL_ASYNC"} <= found
    assert set(rows) == found


def test_every_read_names_its_variable():
    """A read by a name that the test above does not see would be missing there."""
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h", ".c") or not path.is_file():
                continue
            text = path.read_text()
            known = {name for _, name in re.findall(HELPER, text)}
            for argument in re.findall(r"\b(?:std::)?(?:getenv|GetEnv)\(\s*([^)]*)\)", text):
                assert argument.startswith(('"', "&")) or argument in known | {""}, (
                    path,
                    argument,
                )


def test_exit_codes_page():
    page = (ROOT / "docs" / "exit-codes.md").read_text()
    options = (ROOT / "tools" / "stepc" / "Options.h").read_text()
    codes = dict(
        re.findall(r"^  k(\w+) = (\d+),", re.search(r"enum ExitCode.*?\};", options, re.DOTALL)[0], re.M)
    )
    assert set(codes) == {"Success", "InputError", "UsageError", "InternalError"}
    stepc_rows = re.findall(r"^\| (\d+) \|", page.split("## In Python")[0], re.M)
    assert stepc_rows == [*sorted(codes.values()), "130"]
    header = (ROOT / "runtime" / "include" / "stepc" / "stepc.h").read_text()
    status = {
        name: int(value) for name, value in re.findall(r"^  (STEPC_OK|STEPC_ERROR_\w+) = (\d+)", header, re.M)
    }
    rows = re.findall(r"^\| (\d+) \| `(STEPC_\w+)` \| (?:`(\w+)`|–) \|", page, re.M)
    assert {name: int(value) for value, name, _ in rows} == status
    for value, _, python in rows:
        assert not python or getattr(stepc.errors, python).status == int(value)
    assert [python for _, _, python in rows].count("") == 1


def test_growth_table_is_of_the_points_that_are_kept():
    script = ROOT / "benchmarks" / "growth_curves.py"
    command = [sys.executable, script, "--json", script.with_suffix(".json"), "--stepc", "/nonexistent"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    page = (ROOT / "docs" / "growth.md").read_text()
    assert done.stdout.count("\n") == 8
    assert done.stdout in page


def test_growth_figure_has_plain_numbers():
    figure = (ROOT / "docs" / "growth.svg").read_text()
    assert "mathdefault" not in figure  # how powers of ten are written
    ticks = re.findall(r'<g id="[xy]tick_\d+">.*?<text[^>]*>([^<]*)</text>', figure, re.DOTALL)
    assert len(ticks) > 40
    assert all(re.fullmatch(r"[0-9,.]+", tick) for tick in ticks), ticks

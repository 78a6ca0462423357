"""Checks that some pages show what is true, or brings them up to date.

    .venv/bin/python test/readme.py [--update]

A code block after `<!-- file: PATH -->` holds that file; one after `<!-- output: COMMAND -->` holds what the
command prints.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

PAGES = ("README.md", "docs/explain.md", "docs/torch.md", "runtime/plan/README.md")
ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- (file|output): (.+?) -->\n```[a-z]*\n)(.*?)(```\n)", re.DOTALL)


def actual(kind: str, what: str) -> str:
    if kind == "file":
        return (ROOT / what).read_text()
    return subprocess.run(what, shell=True, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def main() -> int:
    wrong = []
    for page in PAGES:
        text = (ROOT / page).read_text()

        def replace(match: re.Match, page: str = page) -> str:
            now = actual(match[2], match[3])
            if match[4] != now:
                wrong.append(f"{page}, {match[2]} {match[3]}: expected\n{now}\nfound\n{match[4]}")
            return match[1] + now + match[5]

        updated = BLOCK.sub(replace, text)
        if not BLOCK.search(text):
            wrong.append(f"{page}: expected blocks to check, found none")
        if "--update" in sys.argv:
            (ROOT / page).write_text(updated)
    if "--update" in sys.argv:
        return 0
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

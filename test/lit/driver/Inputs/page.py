"""The C of a page as one program: page.py PAGE PRELUDE OUT.c

A block that begins with a function stands as it is; the others become the body of a function each, after what
they include.
"""

import re
import sys

page, prelude, out = sys.argv[1:]
blocks = re.findall(r"^```c\n(.*?)^```$", open(page, encoding="utf-8").read(), re.M | re.S)
with open(out, "w", encoding="utf-8") as file:
    file.write(open(prelude, encoding="utf-8").read())
    for number, block in enumerate(blocks):
        if re.match(r"\w+ \**\w+\(.*\{$", block, re.M):
            file.write(block)
            continue
        body = re.sub(r"^#include.*$", "", block, flags=re.M)
        file.write(f"void block_{number}(void) {{\n{body}}}\n")
print(len(blocks), "blocks")

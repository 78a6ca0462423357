"""plain.py FILE: fails where a file has what a terminal would obey, but for line ends and tabs."""

import sys
import unicodedata

text = open(sys.argv[1], "rb").read().decode("utf-8")
found = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"]
sys.exit(f"found {found!r}" if found else 0)

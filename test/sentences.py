"""Finds sentences of README.md and of docs/ that have too many words.

    .venv/bin/python test/sentences.py [PAGE]...

A line per sentence: file, line, words, and the sentence. Code blocks, tables, headings, comments and lists of links
are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 35
ITEM = re.compile(r"\s*([-*+]|\d+\.)\s+")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"""[.!?]["”’'`)\]*_]*$""")

Word = tuple[int, str]  # with the number of its line


def paragraphs(text: str) -> Iterator[list[Word]]:
    """The words of each paragraph, and of each item of a list."""
    words: list[Word] = []
    fence, in_list = "", False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        stripped, item = line.strip(), ITEM.match(line)
        opened = re.match(r"```+|~~~+", stripped)
        is_code = bool(fence or opened) or (line.startswith("    ") and not words and not in_list)
        if opened:
            fence = "" if fence and stripped.startswith(fence) else fence or opened[0]
        if item or is_code or not stripped or stripped.startswith(("|", "#", "<!--")):
            yield words
            words = []
        if is_code or not stripped or stripped.startswith(("|", "#", "<!--")):
            in_list = in_list and not (stripped and not line.startswith(" "))
            continue
        in_list = bool(item) or (in_list and (bool(words) or line.startswith(" ")))
        words += [(number, word) for word in line[item.end() if item else 0 :].split()]


def is_list_of_links(words: list[Word]) -> bool:
    """Whether more words stand in links than beside them."""
    text = " ".join(word for _, word in words)
    linked = sum(len(shown.split()) for shown in LINK.findall(text))
    return linked > len(LINK.sub("", text).split())


def sentences(text: str) -> Iterator[list[Word]]:
    for words in paragraphs(text):
        if is_list_of_links(words):
            continue
        sentence: list[Word] = []
        for word in words:
            sentence.append(word)
            if END.search(word[1]):
                yield sentence
                sentence = []
        if sentence:
            yield sentence


def too_long(path: Path) -> Iterator[str]:
    for sentence in sentences(path.read_text()):
        count = sum(bool(re.search(r"\w", word)) for _, word in sentence)
        if count > MOST:
            name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            text = " ".join(word for _, word in sentence)
            yield f"{name}:{sentence[0][0]}: expected at most {MOST} words, found {count}: {text}"


def main() -> int:
    pages = [Path(page).resolve() for page in sys.argv[1:]]
    found = [line for page in pages or [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] for line in too_long(page)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

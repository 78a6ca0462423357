"""Names of parameters, and the patterns that match them: the same rules as the compiler's.

docs/language.md (Routes) has the rules. ``test/inputs/patterns.txt`` holds both implementations to
them; Python's own ``fnmatch`` reads some patterns otherwise.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

# Components that wrappers add, as frontends/manifest/Names.cpp has them: DDP, torch.compile, checkpointing,
# FSDP1 and Lightning Fabric.
WRAPPERS = frozenset(
    {"module", "_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_forward_module"}
)


def canonical_name(name: str) -> str:
    """The name without the components that wrappers add, wherever they stand.

    The last component is never a wrapper's: a parameter called ``module`` stays one.
    """
    *path, last = name.split(".")
    return ".".join([part for part in path if part not in WRAPPERS] + [last])


# As text::checkName of the compiler: control characters, separators of lines, what turns the direction of
# text, and how Python keeps bytes that are not UTF-8.
_UNPRINTABLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)


# Characters that a reader cannot see, as text::checkName of the compiler lists them.
_INVISIBLE = re.compile(
    "[\\xad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2060-\\u206f\\u3164"
    "\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\U000e0000-\\U000e0fff]"
)


def check_name(name: str, whose: str) -> None:
    """Raises ValueError for a name that C would cut, a terminal would obey, or a reader would take for
    another one; ``whose`` is "parameter"."""
    for kind, pattern in (("control", _UNPRINTABLE), ("invisible", _INVISIBLE)):
        if found := pattern.search(name):
            raise ValueError(
                f"{whose} {name!r}: expected a name in UTF-8 without {kind} characters, found "
                f"U+{ord(found[0]):04X}"
            )


class PatternError(ValueError):
    """A text that is no pattern. ``reason`` and ``hint`` are the compiler's."""

    def __init__(self, pattern: str, reason: str, hint: str) -> None:
        super().__init__(f"pattern {pattern!r}: {reason}; {hint}")
        self.reason = reason
        self.hint = hint


class Pattern:
    """A pattern of whole names: ``*`` ``?`` ``[abc]`` ``[a-z]`` ``[!abc]``; see docs/language.md.

    Raises :class:`PatternError` for a text that other matchers would read otherwise.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if not text:
            raise PatternError(text, "expected a pattern, found an empty one", "'*' matches every name")
        for character in text:
            if 0xD800 <= ord(character) <= 0xDFFF:  # how Python keeps bytes that are not UTF-8
                raise PatternError(
                    text,
                    f"expected UTF-8 in a pattern, found the byte 0x{ord(character) & 0xFF:x}",
                    "names are Unicode text",
                )
        # The text between two stars matches a fixed number of characters. So the pieces can be matched
        # one after the other, each as early as possible, without going back.
        pieces = [""]
        at = 0
        while at < len(text):
            character = text[at]
            at += 1
            if character == "*":
                pieces.append("")
            elif character == "?":
                pieces[-1] += "."
            elif character == "[":
                members, at = self._set(at)
                pieces[-1] += members
            else:
                pieces[-1] += re.escape(character)
        if len(pieces) > 1:
            pieces[-1] += r"\Z"
        self._first, *self._rest = (re.compile(piece, re.DOTALL) for piece in pieces)

    def _set(self, at: int) -> tuple[str, int]:
        """The set whose '[' is before ``at``, as a regular expression, and the position behind its ']'."""
        text = self.text
        if text[at : at + 1] == "^":
            raise PatternError(
                text,
                "expected '!' where a set of a pattern is negated, found '^'",
                "write '[!...]' for a character that is not in the set, and a '^' that belongs to "
                "the set behind its first character",
            )
        negated = text[at : at + 1] == "!"
        at += negated
        # A "]" in first place is a member, so the search for the closing one starts after it.
        close = text.find("]", at + 1)
        if close < 0:
            raise PatternError(
                text,
                "expected ']' after '[' in a pattern",
                "a '[' of the name itself is written '[[]'",
            )
        members = ""
        while at < close:
            low = high = text[at]
            at += 1
            if at + 1 < close and text[at] == "-":
                high = text[at + 1]
                at += 2
            if low > high:
                raise PatternError(
                    text,
                    f"expected a range that rises in a pattern, found '{low}-{high}'",
                    f"write '{high}-{low}'",
                )
            members += f"\\U{ord(low):08x}-\\U{ord(high):08x}"
        return f"[{'^' if negated else ''}{members}]", close + 1

    def matches(self, name: str) -> bool:
        """Whether the pattern matches the whole name."""
        if not self._rest:
            return self._first.fullmatch(name) is not None
        found = self._first.match(name)
        for piece in self._rest:
            if found is None:
                return False
            found = piece.search(name, found.end())
        return found is not None


@functools.lru_cache(maxsize=4096)
def parse_pattern(text: str) -> Pattern:
    """The pattern that a text is; raises :class:`PatternError` if it is none."""
    return Pattern(text)


def matches(pattern: str, names: Iterable[str]) -> bool:
    """Whether a pattern matches the whole of a name, as written or in canonical form."""
    parsed = parse_pattern(pattern)
    return any(parsed.matches(form) for name in names for form in (name, canonical_name(name)))

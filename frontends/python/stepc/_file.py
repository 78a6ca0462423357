"""Whether a library's file is whole, before the system's loader maps it.

The loader does not check this: a read behind the end of a truncated file kills the process. The compiler ends
each file with a checksum (``passes/codegen/LibraryFile.h``).
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

_TEXT = b"\nstepc checksum\n"
_FOOTER = struct.Struct("<16sQQ")
# The header of a 64-bit ELF file: its identification, type, machine and the places of its tables.
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SHARED, _X86_64, _NO_BITS = 3, 62, 8


def problem_of_file(path: str) -> str | None:
    """Returns an error text if a library's file is damaged, and None if it is whole.

    A file without a checksum (from another linker, or after a tool such as strip) is compared with its own
    headers alone.
    """
    data = memoryview(Path(path).read_bytes())
    if len(data) >= _FOOTER.size and data[-_FOOTER.size :][: len(_TEXT)] == _TEXT:
        _, size, checksum = _FOOTER.unpack(data[-_FOOTER.size :])
        content = data[: -_FOOTER.size]
        if size != len(content):
            return f"the library is damaged: expected {size} bytes, found {len(content)} before its checksum"
        if (found := zlib.crc32(content)) != checksum:
            return (
                f"the library is damaged: expected checksum {checksum:08x}, as the compiler wrote it, "
                f"found {found:08x}; compile the library again"
            )
        return None
    return _problem_of_headers(data)


def _problem_of_headers(data: memoryview) -> str | None:
    if len(data) < _HEADER.size or data[:4] != b"\x7fELF":
        found = "another, or its first bytes alone" if data else "an empty file"
        return f"expected an ELF file, found {found}"
    header = _HEADER.unpack_from(data)
    ident, kind, machine = header[:3]
    segments, sections = header[5], header[6]
    segment_size, segment_count, section_size, section_count = header[9:13]
    if (
        ident[4:6] != b"\x02\x01"
        or (kind, machine) != (_SHARED, _X86_64)
        or segment_size != _SEGMENT.size
        or (section_count and section_size != _SECTION.size)
    ):
        return "expected a shared library for x86-64, found another file"
    parts = [
        ("its table of segments", segments, segment_count * _SEGMENT.size),
        ("its table of sections", sections, section_count * _SECTION.size),
    ]
    for what, begin, size in parts:
        if begin + size > len(data):
            return _truncated(what, begin + size, len(data))
    for i in range(segment_count):
        segment = _SEGMENT.unpack_from(data, segments + i * _SEGMENT.size)
        parts.append(("its segments", segment[2], segment[5]))
    for i in range(section_count):
        section = _SECTION.unpack_from(data, sections + i * _SECTION.size)
        if section[1] not in (0, _NO_BITS):
            parts.append(("its sections", section[4], section[5]))
    for what, begin, size in parts:
        if begin + size > len(data):
            return _truncated(what, begin + size, len(data))
    if extra := len(data) - max(_HEADER.size, *(begin + size for _, begin, size in parts)):
        return (
            "the library is damaged: expected a checksum behind its sections, or nothing, "
            f"found {extra} other bytes; compile the library again"
        )
    return None


def _truncated(what: str, end: int, found: int) -> str:
    return (
        f"expected {what} within the file, up to byte {end}, found {found} bytes; "
        "the library is truncated or damaged"
    )

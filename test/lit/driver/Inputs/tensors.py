"""Writes a safetensors file: tensors.py OUT NAME=DTYPE[SIZE,SIZE]... Elements are 0.5."""

import json
import struct
import sys

HALF = {"F32": struct.pack("<f", 0.5), "F64": struct.pack("<d", 0.5), "BF16": b"\x00\x3f",
        "F16": struct.pack("<e", 0.5), "I64": struct.pack("<q", 3)}
header, data = {}, b""
for argument in sys.argv[2:]:
    name, _, kind = argument.rpartition("=")
    dtype, _, sizes = kind.rstrip("]").partition("[")
    shape = [int(size) for size in sizes.split(",") if size]
    count = 1
    for size in shape:
        count *= size
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + count * len(HALF[dtype])]}
    data += HALF[dtype] * count
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)

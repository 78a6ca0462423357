"""What ranks sent and received, as the runtime counts it and as it is simulated."""

import json
import re
from collections import Counter

from compiler import stepc

COUNTERS = re.compile(
    r"rank (\d+): .*; sent (\d+) messages?, (\d+) bytes?; received (\d+) messages?, (\d+) bytes?; as planned"
)
KEYS = ("rank", "messages_sent", "bytes_sent", "messages_received", "bytes_received")


def expect_simulated(printed, program, *options):
    """What `stepc run` printed of this program is what `stepc simulate` says with these options; how much
    that is.
    """
    counted = [tuple(map(int, found)) for found in COUNTERS.findall(printed)]
    step = json.loads(stepc("simulate", *program, *options, "--json", "-"))
    simulated = [tuple(rank[key] for key in KEYS) for rank in step["ranks"]]
    assert counted and simulated == counted, program[0].read_text().partition("\n")[0]  # the batch's seed
    return Counter(
        ranks=len(counted), messages=sum(rank[1] for rank in counted), bytes=sum(rank[2] for rank in counted)
    )

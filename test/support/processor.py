"""Processor time of a process and of all that it started, from Linux's /proc."""

import os


def seconds(root: int) -> float:
    """Processor seconds of a process, of the processes below it, and of those of them that have ended and were
    waited for.
    """
    ticks, children = {}, {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                text = file.read()
        except OSError:  # it has ended
            continue
        fields = text[text.rindex(")") + 2 :].split()  # behind the name, from the field "state" on
        children.setdefault(int(fields[1]), []).append(int(name))
        ticks[int(name)] = sum(map(int, fields[11:15]))  # utime, stime, and both of children
    total, left = 0, [root]
    while left:
        process = left.pop()
        total += ticks.get(process, 0)
        left += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")

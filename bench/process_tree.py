"""What a process and everything it started use, read from /proc: memory now, processor time so far."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Usage(NamedTuple):
    """Resident bytes now, processor seconds so far."""

    bytes: int
    seconds: float


def processes(root: int) -> dict[int, Usage]:
    """Return a process and all below it; the time of children that ended counts with their parents."""
    children: dict[int, list[int]] = {}
    own: dict[int, Usage] = {}
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue  # it ended while we looked
        number = int(entry.name)
        children.setdefault(int(fields[1]), []).append(number)
        own[number] = Usage(int(fields[21]) * page, sum(map(int, fields[11:15])) / tick)
    found, waiting = {}, [root]
    while waiting:
        number = waiting.pop()
        if number in own:
            found[number] = own[number]
        waiting += children.get(number, [])
    return found


def usage(root: int) -> Usage:
    """Return what the whole tree uses."""
    parts = processes(root).values()
    return Usage(sum(part.bytes for part in parts), sum(part.seconds for part in parts))


def largest_peak(root: int, *words: str) -> int:
    """Return the most resident bytes that a process below `root` ever had whose command has these words."""
    largest = 0
    for number in processes(root):
        path = Path(f"/proc/{number}")
        try:
            command, status = (path / "cmdline").read_text(), (path / "status").read_text()
        except OSError:
            continue
        if all(word in command for word in words) and "VmHWM:" in status:
            largest = max(largest, int(status.split("VmHWM:")[1].split()[0]) * 1024)
    return largest

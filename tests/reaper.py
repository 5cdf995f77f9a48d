"""`reaper.py PARENT`: kills processes when the one that started them is gone, however it ended.

Each line on standard input is the id of one more process to look after. It is held by a descriptor, so that
another process that is given the same id later is never meant.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys


def main() -> None:
    watched: set[int] = set()
    try:
        parent = os.pidfd_open(int(sys.argv[1]))
    except ProcessLookupError:
        return
    ready = select.poll()
    ready.register(parent, select.POLLIN)
    ready.register(0, select.POLLIN)
    lines = open(0, "rb", buffering=0)  # noqa: SIM115  # poll knows nothing of a buffer
    while parent not in {descriptor for descriptor, _ in ready.poll()}:
        line = lines.readline()
        if not line:
            break
        forget_ended(watched)
        with contextlib.suppress(ProcessLookupError):
            watched.add(os.pidfd_open(int(line)))
    for descriptor in watched:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)


def forget_ended(watched: set[int]) -> None:
    """Close the descriptors of processes that have ended."""
    ended = select.poll()
    for descriptor in watched:
        ended.register(descriptor, select.POLLIN)
    for descriptor, _ in ended.poll(0):
        os.close(descriptor)
        watched.discard(descriptor)


if __name__ == "__main__":
    main()

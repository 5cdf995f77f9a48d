"""Whether the machine, or only this process, has been restarted."""

from __future__ import annotations

from faircopy.storage.system import read_proc


def boot_id() -> str:
    """A string that differs after each boot of the machine; empty if the system does not tell.

    While it stays the same, the bytes that a process has written are in the page cache, even if the process
    was killed.
    """
    return (read_proc("sys/kernel/random/boot_id") or "").strip()

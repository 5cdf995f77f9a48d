"""Whether the machine, or only this process, has been restarted."""

from __future__ import annotations

from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Another string after each boot of the machine; empty where there is no telling.

    While it stays the same, what a process has written is in the page cache, also if the process was killed.
    """
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""

"""A small file system in memory, which needs no root: a process holds the namespace where it is mounted."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.child_process import next_line, start_child
from tests.requirements import missing


class SmallDisk:
    """A file system that only some commands see: those that have `inside` before them.

    They find it at `path`; all others find it at `outside`.
    """

    def __init__(self, holder: int, mounted: Path) -> None:
        self.inside = ("nsenter", "-t", str(holder), "-U", "-m", "--preserve-credentials")
        self.path = mounted
        self.outside = Path(f"/proc/{holder}/root{mounted}")

    @property
    def free_bytes(self) -> int:
        disk = os.statvfs(self.outside)
        return disk.f_bavail * disk.f_frsize

    def fill(self, leave_bytes: int = 0) -> Path:
        """Have another program take what is free; return its file."""
        path = Path(f"{self.outside}/of another program")
        with path.open("ab") as file:
            size = path.stat().st_size + max(self.free_bytes - leave_bytes, 0) // 4096 * 4096
            os.posix_fallocate(file.fileno(), 0, size)
        return path


def can_mount() -> bool:
    """Whether this user may make namespaces."""
    try:
        subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


@contextmanager
def small_disk(mounted: Path, size_mib: int) -> Iterator[SmallDisk]:
    """A disk of so many MiB at a directory, as long as this is open. Skips the test if there can be none."""
    if not can_mount():
        missing("no user namespaces, to mount a small file system")
    mounted.mkdir()
    script = 'mount -t tmpfs -o "size=$2m" faircopy "$1" && echo mounted && exec cat'
    command = ["unshare", "-Urm", "sh", "-c", script, "sh", str(mounted), str(size_mib)]
    holder = start_child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        assert next_line(holder) == "mounted\n"
        yield SmallDisk(holder.pid, mounted)
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()

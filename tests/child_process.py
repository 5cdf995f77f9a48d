"""Processes that tests start: they end with the process that started them, and none is awaited for ever."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

READY_SECONDS = 120.0
"""After so long a process is taken to hang. A busy machine may take tens of seconds to start one."""


class Reaper:
    """A process that kills our children if we are gone: after a crash, or kill -9 of this process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()

    def watch(self, pid: int) -> None:
        """Have this process end with ours."""
        with self._starting:
            self._process = self._process or self._start()
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), b"%d\n" % pid)

    def _start(self) -> subprocess.Popen[bytes]:
        path = Path(__file__).with_name("reaper.py")
        command = [sys.executable, "-I", "-S", str(path), str(os.getpid())]
        atexit.register(self._end)
        # Ctrl-C is only for us.
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def _end(self) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


REAPER = Reaper()


def start_child(command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Start a process that ends with ours at the latest; the caller ends it earlier. Its output is text."""
    process: subprocess.Popen[str] = subprocess.Popen(command, text=True, **options)
    REAPER.watch(process.pid)
    return process


def next_line(process: subprocess.Popen[str]) -> str:
    """The next line of a process's output; empty if it has ended. One that hangs is killed."""
    assert process.stdout is not None
    late = threading.Timer(READY_SECONDS, process.kill)
    late.start()
    try:
        return process.stdout.readline()
    finally:
        late.cancel()
        late.join()

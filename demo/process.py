"""Processes of the demo, which report what they do as lines of JSON; each is ended by its own id."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from faircopy.errors import FaircopyError

CHECKOUT = Path(__file__).parents[1]
Listen = Callable[[dict[str, Any]], None]


class DemoFailed(FaircopyError):
    """A process of the demo ended with an error, or took too long."""


def environment(**variables: str) -> dict[str, str]:
    """The environment of a process that finds the demo and this faircopy, with these variables."""
    path = os.pathsep.join([str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"PYTHONPATH": path} | variables


class DemoProcess:
    """One process; `listen` is called, on a thread, with each event that it reports."""

    def __init__(
        self, name: str, arguments: Sequence[str], listen: Listen, log: Path, **variables: str
    ) -> None:
        self.name = name
        self._listen = listen
        self._log = log
        self._arguments = [sys.executable, "-P", *arguments]
        self._environment = environment(**variables)
        self._start()

    def _start(self) -> None:
        with self._log.open("a") as log:
            self.child = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
            )
        self._thread = threading.Thread(target=self._hear, args=(self.child,), daemon=True)
        self._thread.start()

    def _hear(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with contextlib.suppress(ValueError):
                self._listen(json.loads(line))

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.child.poll() is None

    def crash(self) -> bool:
        """Kill the process with kill -9, and start it again; false if it had already ended."""
        if not self.is_running:
            return False
        self.child.kill()
        self._close()
        self._start()
        return True

    def finish(self, seconds: float = 90.0) -> None:
        """Close its standard input, and wait until it has ended. Raises DemoFailed."""
        assert self.child.stdin is not None
        self.child.stdin.close()
        try:
            code = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise DemoFailed(f"{self.name} did not end within {seconds:.0f} s; see {self._log}") from None
        self._close()
        if code:
            raise DemoFailed(f"{self.name} ended with code {code}; see {self._log}")

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self.is_running:
            self.child.kill()
        self._close()

    def _close(self) -> None:
        self.child.wait()
        self._thread.join(10)
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe is not None:
                pipe.close()

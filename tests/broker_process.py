"""A real broker in a process of its own, for tests and benchmarks: started, killed, stopped by its own id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.child_process import next_line, start_child
from tests.finding import Finding

STOP_SECONDS = 120.0
"""After so long a broker is taken to hang: a busy machine may take tens of seconds to stop one."""
LOG_CHARACTERS_SHOWN = 10_000

Result = TypeVar("Result")


class BrokerProcess:
    """`faircopy start` on a free port of loopback. After `restart` it listens on the same port."""

    def __init__(self, directory: Path, *settings: str) -> None:
        self.data_directory = directory / "data"
        self.settings = settings  # from the next start on
        self.program: tuple[str, ...] = ("faircopy",)  # a module, and what it takes before `start`
        self.arguments: tuple[str, ...] = ()
        self.within: tuple[str, ...] = ()  # a command that runs the broker's
        self._log_path = directory / "broker.log"
        self._port = 0
        self.process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """What the broker has logged, in all its lives."""
        return self._log_path.read_text()

    def ensure_no_traceback(self) -> None:
        """Raise Finding if the broker has logged an error that it did not expect."""
        log = self.log
        if "Traceback" in log:
            raise Finding(f"the broker has logged a traceback:\n{log[-LOG_CHARACTERS_SHOWN:]}")

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> BrokerProcess:
        """Start it, and return when it accepts clients."""
        self.begin()
        self.wait_until_ready()
        return self

    def begin(self) -> None:
        """Start it. It is not ready yet."""
        command = [*self.within, sys.executable, "-m", *self.program, "start"]
        command += ["--data-dir", str(self.data_directory), "--listen", self.address, *self.arguments]
        for setting in self.settings:
            command += ["--set", setting]
        with self._log_path.open("a") as log:
            self.process = start_child(command, stdout=subprocess.PIPE, stderr=log, env=environment())

    def wait_until_ready(self) -> None:
        """Return when it accepts clients. Raises RuntimeError if it ends instead."""
        assert self.process is not None
        line = next_line(self.process)
        if not line.startswith("faircopy is ready on "):
            self.kill()
            raise RuntimeError(f"the broker did not become ready; it logged:\n{self.log}")
        self._port = int(line.rsplit(":", 1)[1])

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; returns the exit code. Raises AssertionError if the broker has to be killed."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        if self.process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        hangs = False
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            hangs = True
            self.process.kill()
            code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        assert not hangs, f"the broker did not end within {STOP_SECONDS} s; it logged:\n{self.log}"
        return code

    def restart(self, *, kill: bool = True) -> None:
        """End it, by kill -9 or in order, and start it again."""
        if kill:
            self.kill()
        else:
            code = self.stop()
            assert code == 0, f"the broker ended with {code}, not in order"
        self.start()

    def __enter__(self) -> BrokerProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def environment() -> dict[str, str]:
    """This process's environment without settings of a broker."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FAIRCOPY_")}


def eventually(check: Callable[[], Result], seconds: float = 60.0) -> Result:
    """Call `check` until it returns something true, and return that; fail after so many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        if result := check():
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"this did not become true within {seconds} s: {check}")
        time.sleep(0.01)

"""A foreign program in a process of its own: started, killed, stopped in order."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.broker_process import environment
from tests.child_process import start_child
from tests.ecosystem.packages.python import PACKAGES, PYTHON, interpreter
from tests.fetch.needed import needed

STOP_SECONDS = 120.0
ORDERLY = (0, -signal.SIGTERM, 128 + signal.SIGTERM)  # the last is what Java says of it
LOG_CHARACTERS_SHOWN = 10_000
OURS = ("PYTHONPATH", "VIRTUAL_ENV")  # what would show it the packages of the project


class ForeignProgram:
    """A command that runs in `directory`, where it may keep its state."""

    def __init__(self, command: Sequence[str], directory: Path, **variables: str) -> None:
        self.directory = directory
        self._command = command
        self._log_path = directory / "program.log"
        ours = {name: value for name, value in environment().items() if name not in OURS}
        self._environment = {**ours, "PYTHONUNBUFFERED": "1", **variables}
        self._process: subprocess.Popen[str] | None = None
        directory.mkdir(exist_ok=True)

    @property
    def log(self) -> str:
        """What it has printed, in all its lives."""
        return self._log_path.read_text()

    @property
    def end_of_log(self) -> str:
        """What it has printed last, for whoever looks why it failed."""
        return f"it printed:\n{self.log[-LOG_CHARACTERS_SHOWN:]}"

    def start(self) -> None:
        """Start it; it is not awaited."""
        with self._log_path.open("a") as log:
            self._process = start_child(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self.directory,
            )

    def ensure_it_runs(self) -> None:
        """Raise AssertionError if it has ended."""
        assert self._process is not None
        code = self._process.poll()
        assert code is None, f"the program ended with {code}; {self.end_of_log}"

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: it ends in order. Raises AssertionError if it does not."""
        code = self._end(signal.SIGTERM)
        assert code in ORDERLY, f"the program ended with {code}; {self.end_of_log}"

    def wait(self) -> None:
        """Return when it has ended by itself. Raises AssertionError if it failed, or hangs."""
        code = self._wait()
        assert code == 0, f"the program ended with {code}; {self.end_of_log}"

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._wait()

    def _wait(self) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the program did not end; {self.end_of_log}") from None

    def __enter__(self) -> ForeignProgram:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()


class SupervisedProgram(ForeignProgram):
    """It is started again whenever it has ended: it may give up while the broker is away."""

    def ensure_it_runs(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.start()


def python_program(
    packages: str, arguments: Sequence[str], directory: Path, **variables: str
) -> ForeignProgram:
    """`python` with these arguments and the packages that a file pins. A script is one of those here."""
    python = interpreter(needed(PACKAGES[packages].find))
    folder = f"{PYTHON}{os.pathsep}{directory}"
    return ForeignProgram([str(python), *arguments], directory, PYTHONPATH=folder, **variables)

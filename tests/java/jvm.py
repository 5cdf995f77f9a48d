"""A program of Java in a process of its own: started, killed, and started again."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.child_process import start_child

SMALL = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOG_CHARACTERS_SHOWN = 10_000


class Jvm:
    """One program, with the same arguments in each of its lives. It logs to one file."""

    def __init__(self, java: Path, class_path: str, arguments: Sequence[str], log: Path) -> None:
        temporary = f"-Djava.io.tmpdir={log.parent}"  # a killed program leaves there what it has unpacked
        self._command = [str(java), *SMALL, temporary, "-cp", class_path, *arguments]
        self._log_path = log
        self._process: subprocess.Popen[str] | None = None

    @property
    def log(self) -> str:
        """What it has logged, in all its lives."""
        return self._log_path.read_text(errors="replace")

    @property
    def end_of_log(self) -> str:
        """What it has logged last, for whoever looks why it failed."""
        return f"it logged:\n{self.log[-LOG_CHARACTERS_SHOWN:]}"

    def start(self) -> None:
        """Start it, and do not wait until it is ready."""
        with self._log_path.open("a") as log:
            self._process = start_child(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def restart(self) -> None:
        """kill -9, and start it again."""
        self.kill()
        self.start()

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and wait until it has ended."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def ensure_it_runs(self) -> None:
        """Raise AssertionError if it has ended by itself."""
        assert self._process is not None
        code = self._process.poll()
        assert code is None, f"it ended with {code}; {self.end_of_log}"

    def __enter__(self) -> Jvm:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

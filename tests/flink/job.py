"""The job of Flink in a process of its own: started, killed, stopped with a savepoint, and restored."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

from tests.child_process import next_line, start_child
from tests.flink.installed import PROGRAM
from tests.java.compiled import Installed

PARALLELISM = 2
CHECKPOINT_MS = 250
PAUSE_MS = 80
FAILURES_MAX = 100
"""So often the job may fail and go on within one process. One that can't go on ends sooner than its test."""
STOP_SECONDS = 120.0
LOG_CHARACTERS_SHOWN = 10_000
SMALL = ("-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class FlinkJob:
    """Copies the topic `source` to the topic `target`. After a kill it starts from its newest checkpoint."""

    def __init__(self, installed: Installed, directory: Path, broker: str, naming: str) -> None:
        self.source, self.target = "from", "to"
        self._installed = installed
        self._checkpoints = directory / "checkpoints"
        self._savepoints = directory / "savepoints"
        self._log_path = directory / "flink.log"
        self._options = {
            "broker": broker,
            "from": self.source,
            "to": self.target,
            "naming": naming,
            "checkpoints": self._checkpoints.as_uri(),
            "checkpoint-ms": str(CHECKPOINT_MS),
            "pause-ms": str(PAUSE_MS),
            "parallelism": str(PARALLELISM),
            "failures": str(FAILURES_MAX),
        }
        self._process: subprocess.Popen[str] | None = None

    @property
    def log(self) -> str:
        """What Flink has logged, in all lives of the job."""
        return self._log_path.read_text()

    @property
    def end_of_log(self) -> str:
        """What it has logged last, for whoever looks why it failed."""
        return f"it logged:\n{self.log[-LOG_CHARACTERS_SHOWN:]}"

    def start(self, restore: str = "") -> None:
        """Start it, from this checkpoint or savepoint if there is one, and return when it is submitted."""
        options = self._options | ({"restore": restore} if restore else {})
        command = [str(self._installed.java), *SMALL, "-cp", self._installed.class_path, PROGRAM]
        command += [word for name, value in options.items() for word in (f"--{name}", value)]
        with self._log_path.open("a") as log:
            self._process = start_child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self._expect("running")

    def restart(self) -> None:
        """kill -9, and start it from the newest checkpoint."""
        self.kill()
        self.start(self.newest_checkpoint())

    def newest_checkpoint(self) -> str:
        """The path of the newest complete checkpoint; "" if there is none. Numbers go on after a restore."""
        complete = [path.parent for path in self._checkpoints.glob("*/chk-*/_metadata")]
        newest = max(complete, key=lambda path: int(path.name.removeprefix("chk-")), default=None)
        return "" if newest is None else newest.as_uri()

    def stop_with_savepoint(self) -> str:
        """Have it commit all that it has read, and end. Returns where the savepoint is."""
        self._tell(self._savepoints.as_uri())
        assert self._process is not None
        savepoint = self._expect("savepoint")
        code = self._process.wait(STOP_SECONDS)
        assert code == 0, f"the job ended with {code}; {self.end_of_log}"
        self._close()
        return savepoint

    def fail(self) -> None:
        """Have a task fail at its next record; the process runs on, and Flink starts the job again in it."""
        self._tell("fail")

    @property
    def failures(self) -> int:
        """How often Flink has started the job again within a process."""
        return self.log.count("switched from state RUNNING to RESTARTING")

    def _tell(self, command: str) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def ensure_it_runs(self) -> None:
        """Raise AssertionError if it has failed for good."""
        assert self._process is not None
        code = self._process.poll()
        assert code is None, f"the job ended with {code}; {self.end_of_log}"

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._close()

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process = None

    def _expect(self, word: str) -> str:
        """Wait for a line that begins so, and return the rest of it."""
        assert self._process is not None
        line = next_line(self._process)
        found = re.fullmatch(rf"{word} ?(.*)\n", line)
        assert found, f"the job said {line!r}, not {word}; {self.end_of_log}"
        return found[1]

    def __enter__(self) -> FlinkJob:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

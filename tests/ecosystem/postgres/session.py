"""A session of SQL: a program with Java's driver in a process of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.child_process import next_line, start_child
from tests.ecosystem.postgres.installed import PROGRAM
from tests.java.compiled import Installed
from tests.java.jvm import SMALL


class SqlSession:
    """Executes statements, one after the other."""

    def __init__(self, installed: Installed, url: str, log: Path) -> None:
        command = [str(installed.java), *SMALL, "-cp", installed.class_path, PROGRAM, url]
        self._log_path = log
        with log.open("w") as errors:
            self._process = start_child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self._expect("connected")

    def execute(self, *statements: str) -> None:
        """All of them in one transaction."""
        assert self._process.stdin is not None
        self._process.stdin.write("; ".join(("BEGIN", *statements, "COMMIT")) + "\n")
        self._process.stdin.flush()
        self._expect("done")

    def _expect(self, word: str) -> None:
        said = next_line(self._process)
        assert said == f"{word}\n", f"the session said {said!r}; it logged:\n{self._log_path.read_text()}"

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

"""What a trial asks of an application that writes in transactions, in whichever library and language.

The steps are `open` (servers, transactional_id, patience_ms), `begin`, `send` (topic, value), `commit`,
`abort` and `close`. A program of another language is sent each as a line of JSON, {"step": ...}, and answers
with a line: {} when the step succeeded, or {"error": ..., "says": [...]}.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Error(NamedTuple):
    """What the library raised: the error's name, and what else it says of it, such as "retriable"."""

    name: str
    says: tuple[str, ...] = ()


class Application(Protocol):
    """An application that does one step at a time, and tells how the step ended."""

    library: str

    def do(self, step: str, **arguments: Any) -> Error | None:
        """Do a step. Returns the error that the library raised, or None."""


class ForeignApplication:
    """An application that is a program."""

    def __init__(self, library: str, command: Sequence[str], directory: Path) -> None:
        self.library = library
        self._log = (directory / "application.log").open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, bufsize=1
        )

    def do(self, step: str, **arguments: Any) -> Error | None:
        """Have the program do a step."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"step": step, **arguments}) + "\n")
        line = self._process.stdout.readline()
        assert line, f"the program has ended: {Path(self._log.name).read_text()[-2000:]}"
        answer = json.loads(line)
        return Error(answer["error"], tuple(answer["says"])) if answer else None

    def end(self) -> None:
        """Kill the program."""
        self._process.kill()
        self._process.communicate()
        self._log.close()

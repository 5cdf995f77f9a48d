"""Files of lines that Connect reads and writes, and what it makes of lines in a topic."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.ecosystem.ends import read_all_of
from tests.ecosystem.outlet import Outlet

LINES_AT_ONCE = 1000
TOPIC = "connect-test"


class GrowingFile:
    """A file with a line for each number, from 0 on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.touch()
        self.written = 0

    def write(self) -> None:
        """Write some more lines."""
        end = self.written + LINES_AT_ONCE
        with self._path.open("a") as file:
            file.writelines(f"{line(number)}\n" for number in range(self.written, end))
        self.written = end


class FileOfSink(Outlet):
    """A file that Connect writes, at least once each line: after a kill it repeats the last ones."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> list[str]:
        """Each line at its first appearance. Of a line that a kill has cut, the end is missing."""
        text = self._path.read_text() if self._path.exists() else ""
        return list(dict.fromkeys(re.findall(r"line \d+\.", text)))

    def count(self) -> int:
        """How many lines there are."""
        return len(self.lines())


def line(number: int) -> str:
    """A line whose end can be told."""
    return f"line {number}."


def lines_of_topic(broker: str, isolation: str) -> list[str]:
    """What Connect's converter to JSON made of the lines, undone."""
    values = [message.value() for message in read_all_of(broker, TOPIC, isolation=isolation)]
    return [str(json.loads(value)["payload"]) for value in values if value is not None]

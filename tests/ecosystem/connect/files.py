"""The connectors of Kafka's quick start: one reads a file, and one writes another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.ecosystem.connect.flow import Disturbance, Flow
from tests.ecosystem.connect.lines import TOPIC, FileOfSink, GrowingFile, line, lines_of_topic
from tests.ecosystem.ends import Ends
from tests.finding import a_finding_if_not

AHEAD = 20_000
"""So much work lies before the worker that a kill falls in the middle of a transaction."""
AHEAD_OF_SINK = 3000
SOURCE, SINK = "local-file-source", "local-file-sink"


def read_file(flow: Flow, directory: Path, disturbances: Sequence[Disturbance]) -> None:
    """Have a file read while it grows: the topic has each line, once and in order, whoever reads."""
    file = growing_file(flow, directory)
    ends = Ends(flow.broker.address, TOPIC)
    flow.disturbed(SOURCE, file, ends, AHEAD, disturbances)
    ends.close()
    ensure_topic_has(flow, file)


def copy_file(flow: Flow, directory: Path, disturbances: Sequence[Disturbance]) -> None:
    """Have a file read, and another written: it has each line, in order. After a kill some are repeated."""
    file = growing_file(flow, directory)
    path = directory / "test.sink.txt"
    settings = {"connector.class": "FileStreamSink", "tasks.max": "1", "topics": TOPIC, "file": str(path)}
    flow.worker.make(SINK, settings)
    copy = FileOfSink(path)
    flow.disturbed(SINK, file, copy, AHEAD_OF_SINK, disturbances)
    ensure_topic_has(flow, file)
    with a_finding_if_not():
        assert copy.lines() == lines_of(file)


def growing_file(flow: Flow, directory: Path) -> GrowingFile:
    """A file that the worker reads."""
    path = directory / "test.txt"
    file = GrowingFile(path)
    settings = {"connector.class": "FileStreamSource", "tasks.max": "1", "topic": TOPIC, "file": str(path)}
    flow.worker.make(SOURCE, settings)
    return file


def ensure_topic_has(flow: Flow, file: GrowingFile) -> None:
    """Raise Finding unless the topic has each line, once and in order."""
    with a_finding_if_not():
        for isolation in ("read_committed", "read_uncommitted"):
            assert lines_of_topic(flow.broker.address, isolation) == lines_of(file)


def lines_of(file: GrowingFile) -> list[str]:
    """All lines that were written."""
    return [line(number) for number in range(file.written)]

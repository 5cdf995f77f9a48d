"""The program of Faust that counts words."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

from confluent_kafka import Message

from tests.broker_process import eventually
from tests.ecosystem.counting import CountingProgram, counting
from tests.ecosystem.program import ForeignProgram, python_program

CHANGELOG = "words-counts-changelog"
READY = "[^Worker]: Ready"
READY_SECONDS = 240.0


def faust_program(broker: str, directory: Path) -> ForeignProgram:
    """A worker; without its server for the web, which has a port of its own."""
    worker = ["-m", "faust", "-A", "faust_words", "worker", "-l", "info", "--without-web"]
    return python_program("faust", worker, directory, BROKER=broker)


def until_ready(worker: ForeignProgram, starts: int) -> None:
    """Return when a worker has its table, after so many starts.

    Before, it may lose messages that it reads while it restores the table: `Consumer._drain_messages` of
    Faust 0.15.3 drops the one that it is handing over when the flow is suspended, and counts it as read.
    """
    eventually(lambda: worker.log.count(READY) >= starts, READY_SECONDS)


def counting_by_faust(directory: Path) -> AbstractContextManager[CountingProgram]:
    """A worker that counts at a new broker. Its changelog has each count that it came to."""
    return counting(
        directory, lambda broker: faust_program(broker, directory / "program"), CHANGELOG, count_of_faust
    )


def count_of_faust(message: Message) -> tuple[str, int]:
    """Key and value are JSON."""
    return json.loads(message.key() or b""), json.loads(message.value() or b"")

"""The program of Quix Streams that counts words."""

from __future__ import annotations

import json
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from confluent_kafka import Message

from tests.ecosystem.counting import CountingProgram, counting
from tests.ecosystem.packages.python import PYTHON
from tests.ecosystem.program import ForeignProgram, python_program


def quix_program(broker: str, guarantee: str, directory: Path) -> ForeignProgram:
    """It counts with this guarantee, and keeps its state in a directory of its own."""
    return python_program("quix", [str(PYTHON / "quix_words.py"), broker, guarantee], directory)


def counting_by_quix(directory: Path, guarantee: str) -> AbstractContextManager[CountingProgram]:
    """One that counts at a new broker."""
    return counting(
        directory,
        lambda broker: quix_program(broker, guarantee, directory / "program"),
        "counts",
        count_of_quix,
    )


def count_of_quix(message: Message) -> tuple[str, int]:
    """What it says in JSON."""
    said = json.loads(message.value() or b"")
    return said["word"], said["count"]


def delete_state(program: ForeignProgram) -> None:
    """Remove its database of RocksDB: it has to read the changelog again."""
    shutil.rmtree(program.directory / "state")


def ensure_counts(work: CountingProgram, guarantee: str) -> None:
    """Raise Finding unless the counts are as this guarantee promises."""
    if guarantee == "exactly-once":
        work.ensure_each_counted_once()
    else:
        work.ensure_none_is_lost()

"""The sink, with stages at which it waits for a test, so that driver or broker can be killed there.

Only one stage counts, in one micro-batch: the test has put its name into a file. Whoever comes there first
makes a file `reached`, and waits for a file `go`, or for one that says that it is dead.

A race has two stages. The first attempt of a task has written its drafts and waits, until Spark has started a
second attempt and that has written too; the second goes on when the first has answered that it still lives.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from faircopy.spark.data_source import FaircopyDataSource
from faircopy.spark.sink import JointKey, SinkOptions, StreamWriter, TaskWrote

if TYPE_CHECKING:
    import pyarrow as pa

DIRECTORY = "kafka.stages.directory"  # options with this prefix that are not known are ignored
STAGES = ("writing", "written", "before the commit", "in the commit", "after the commit")
SENT = "sent"
FIRST_ATTEMPT, SECOND_ATTEMPT = "first attempt", "second attempt"  # of a task, both have written
KEY = 1  # one batch is committed before
SECONDS = 60.0
SENDING_SECONDS = 0.5  # until a request has left, although nobody answers it


class Stage:
    """The stage that counts, of the test whose files are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def choose(self, name: str) -> None:
        """It is this one."""
        (self._directory / "stage").write_text(name)

    def is_chosen(self, name: str, key: JointKey) -> bool:
        """Whether it is this one, in the batch that counts."""
        path = self._directory / "stage"
        return key.key == KEY and path.exists() and path.read_text() == name

    def reach(self, name: str) -> None:
        """Whoever comes to the stage first waits until it may go on, or ends if its driver was killed."""
        try:
            self._file(name, "reached").touch(exist_ok=False)
        except FileExistsError:
            return
        deadline = time.monotonic() + SECONDS
        while not self.may_go(name):
            if self._file("driver", "dead").exists() or time.monotonic() > deadline:
                os._exit(1)
            time.sleep(0.01)

    def is_reached(self, name: str) -> bool:
        """Whether somebody is there."""
        return self._file(name, "reached").exists()

    def may_go(self, name: str) -> bool:
        """Whether they may go on."""
        return self._file(name, "go").exists()

    def let_go(self, name: str) -> None:
        """Let them go on."""
        self._file(name, "go").touch()

    def mark_dead(self) -> None:
        """The driver was killed: whatever of it waits somewhere ends as well."""
        self._file("driver", "dead").touch()

    def _file(self, name: str, what: str) -> Path:
        return self._directory / f"{name.replace(' ', '-')}.{what}"


class StagedWriter(StreamWriter):
    """The writer of a stream, in stages."""

    def __init__(self, schema: StructType, options: SinkOptions, directory: Path) -> None:
        super().__init__(schema, options)
        self._stage = Stage(directory)

    def write_for(self, key: JointKey, rows: Iterator[pa.RecordBatch]) -> TaskWrote:
        """Write a task's rows; it is `written` when all drafts are, and Spark has not heard of it."""
        wrote = super().write_for(key, self._in_stages(key, rows))
        self._reach("written", key)
        if self._stage.is_chosen(FIRST_ATTEMPT, key):
            self._race()
        return wrote

    def _race(self) -> None:
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber():
            self._stage.let_go(FIRST_ATTEMPT)
            self._stage.reach(SECOND_ATTEMPT)
        else:
            self._stage.reach(FIRST_ATTEMPT)
            self._stage.let_go(SECOND_ATTEMPT)
            time.sleep(SENDING_SECONDS)

    def _in_stages(self, key: JointKey, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from rows
        self._reach("writing", key)

    def commit_all(self, key: JointKey, messages: list[WriterCommitMessage | None]) -> None:
        """Commit, in stages."""
        self._reach("before the commit", key)
        if self._stage.is_chosen("in the commit", key):
            self._stage.reach("in the commit")
            with ThreadPoolExecutor(1) as pool:
                committing = pool.submit(super().commit_all, key, messages)
                time.sleep(SENDING_SECONDS)
                self._stage.reach(SENT)
                committing.result()
        else:
            super().commit_all(key, messages)
        self._reach("after the commit", key)

    def _reach(self, name: str, key: JointKey) -> None:
        if self._stage.is_chosen(name, key):
            self._stage.reach(name)


class StagedDataSource(FaircopyDataSource):
    """`format("staged")`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "staged"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Writes micro-batches."""
        return StagedWriter(schema, SinkOptions.read(self.options), Path(self.options[DIRECTORY]))

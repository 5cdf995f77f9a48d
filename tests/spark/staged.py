"""The sink, with stages at which it waits for a test, so that query or broker can be killed there.

Only one stage counts, in one micro-batch: the test has put its name into a file. Whoever comes there first
makes a file `reached`, and waits for a file `go`, or for one that says that its query is dead. A dead query
does nothing more, as if its driver had been killed: its processes end where they are, those that Spark
starts for it end at once, and nobody aborts anything. Spark's checkpoint stays as it was.

A race has two stages. The first attempt of a task has written its drafts and waits, until Spark has started a
second attempt and that has written too; the second goes on when the first has answered that it still lives.
The first one then waits for Spark, which kills it when the second has won.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from faircopy.client.link import Link
from faircopy.client.protocol import END_JOINT_TRANSACTION, Request
from faircopy.spark.data_source import FaircopyDataSource
from faircopy.spark.sink import JointKey, SinkOptions, StreamWriter, TaskWrote
from faircopy.wire.codec import Body, Message

if TYPE_CHECKING:
    import pyarrow as pa

DIRECTORY = "kafka.stages.directory"  # options with this prefix that are not known are ignored
STAGES = ("writing", "written", "before the commit", "in the commit", "after the commit")
SENT = "sent"
FIRST_ATTEMPT, SECOND_ATTEMPT = "first attempt", "second attempt"  # of a task, both have written
KEY = 1  # one batch is committed before
SECONDS = 240.0


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
        """Whoever comes to the stage first waits until it may go on, or ends if its query is dead."""
        try:
            self._file(name, "reached").touch(exist_ok=False)
        except FileExistsError:
            return
        self.wait(lambda: self.may_go(name))

    def wait(self, is_over: Callable[[], bool]) -> None:
        """Wait for something, and end if the query is dead, or if it takes too long."""
        deadline = time.monotonic() + SECONDS
        while not is_over():
            self.end_if_dead()
            if time.monotonic() > deadline:
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
        """The query is dead: whatever of it waits somewhere, or is started from now on, ends."""
        self._file("query", "dead").touch()

    def end_if_dead(self) -> None:
        """End this process, like by kill -9, if its query is dead."""
        if self._file("query", "dead").exists():
            os._exit(1)

    def _file(self, name: str, what: str) -> Path:
        return self._directory / f"{name.replace(' ', '-')}.{what}"


class StagedWriter(StreamWriter):
    """The writer of a stream, in stages."""

    def __init__(self, schema: StructType, options: SinkOptions, directory: Path) -> None:
        super().__init__(schema, options)
        self._stage = Stage(directory)

    def write_for(self, key: JointKey, rows: Iterator[pa.RecordBatch]) -> TaskWrote:
        """Write a task's rows; it is `written` when all drafts are, and Spark has not heard of it."""
        self._stage.end_if_dead()
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
            self._stage.wait(lambda: False)

    def _in_stages(self, key: JointKey, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from rows
        self._reach("writing", key)

    def commit_all(self, key: JointKey, messages: list[WriterCommitMessage | None]) -> None:
        """Commit, in stages."""
        self._stage.end_if_dead()
        self._reach("before the commit", key)
        if self._stage.is_chosen("in the commit", key):
            with patch.object(Link, "ask", sending_in_stages(self._stage)):
                super().commit_all(key, messages)
        else:
            super().commit_all(key, messages)
        self._reach("after the commit", key)

    def abort_all(self, key: JointKey) -> None:
        """Abort, unless the query is dead."""
        self._stage.end_if_dead()
        super().abort_all(key)

    def _reach(self, name: str, key: JointKey) -> None:
        if self._stage.is_chosen(name, key):
            self._stage.reach(name)


def sending_in_stages(stage: Stage) -> Callable[..., object]:
    """A `Link.ask` that waits before it sends a commit, and again when the request has left."""
    ask = Link.ask

    async def ask_in_stages(link: Link, request: Request, body: Body, timeout_seconds: float) -> Message:
        if request is not END_JOINT_TRANSACTION:
            return await ask(link, request, body, timeout_seconds)
        stage.reach("in the commit")
        asking = asyncio.create_task(ask(link, request, body, timeout_seconds))
        await asyncio.sleep(0)  # it has written
        assert link._writer.transport.get_write_buffer_size() == 0, "the system has taken all of it"
        await asyncio.to_thread(stage.reach, SENT)
        return await asking

    return ask_in_stages


class StagedDataSource(FaircopyDataSource):
    """`format("staged")`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "staged"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Writes micro-batches."""
        return StagedWriter(schema, SinkOptions.read(self.options), Path(self.options[DIRECTORY]))

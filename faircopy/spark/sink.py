"""The sink: tasks write drafts, and the driver commits them by one decision.

See docs/ARCHITECTURE.md, Joint transactions.

The group of a streaming query is its query id, the key is the batch id, and the run is that of the query, so
a micro-batch that Spark repeats is written once, and a driver that was replaced can do nothing. A batch job
has a group of its own, or the one that option `job` names: then running it again writes nothing.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from faircopy.client import BlockingClient, BlockingMember, DataLost
from faircopy.client.codecs import CODECS
from faircopy.client.errors import OutcomeUnknown, RequestFailed
from faircopy.errors import FaircopyError
from faircopy.spark.clients import client_of
from faircopy.spark.options import BadOption, Options
from faircopy.spark.sink_columns import ensure_columns

if TYPE_CHECKING:
    import pyarrow as pa

TRANSACTION_TIMEOUT_MS = 900_000
NAMES = (
    "bootstrap.servers",
    "topic",
    "job",
    "batch",
    "compression.type",
    "transaction.timeout.ms",
    "client.id",
)
QUERY_ID, RUN_ID, BATCH_ID = "sql.streaming.queryId", "spark.jobGroup.id", "streaming.sql.batchId"


@dataclass(frozen=True)
class JointKey:
    """What a batch is written under."""

    group: str
    run: str
    key: int


@dataclass
class TaskWrote(WriterCommitMessage):
    """What a task has written, and the ids of the topics. `producer_id` is None if the key was committed
    already.
    """

    key: JointKey
    producer_id: int | None
    topic_ids: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class SinkOptions:
    """The options of a write. `job` and `batch` name what is written once."""

    servers: str
    client_id: str
    topic: str | None
    job: str | None
    batch: int | None
    codec: int
    timeout_ms: int

    @classmethod
    def read(cls, given: Mapping[str, str]) -> SinkOptions:
        """Raises BadOption."""
        options = Options(given, NAMES)
        job, number = options.text("job"), options.number("batch")
        if number is not None and job is None:
            raise BadOption("option 'batch' numbers the batches of a job: name it by option 'job'")
        return cls(
            options.required("bootstrap.servers", "HOST:PORT of a broker"),
            options.text("client.id", "faircopy-spark") or "",
            options.text("topic"),
            job,
            number,
            options.choice("compression.type", CODECS, 0),
            options.number("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS, at_least=1) or 0,
        )


class LostTopic(FaircopyError):
    """A topic was deleted while a batch was written to it, and with it what some tasks had written."""


class SinkWriter:
    """What tasks and driver do, whether of a batch job or of a stream. It is pickled and sent to tasks."""

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        ensure_columns(schema, options.topic)
        self._options = options

    @property
    def client(self) -> BlockingClient:
        """The client of this process."""
        return client_of(self._options.servers, self._options.client_id)

    def write_for(self, key: JointKey, rows: Iterator[pa.RecordBatch]) -> TaskWrote:
        """Write a task's rows as drafts of a member of its own."""
        context = TaskContext.get()
        assert context is not None
        name = f"partition {context.partitionId()}, attempt {context.taskAttemptId()}"
        member = self.client.join(
            key.group,
            run=key.run,
            key=key.key,
            member=name,
            transaction_timeout_ms=self._options.timeout_ms,
        )
        if member is None:
            return TaskWrote(key, None)
        try:
            topic_ids = self._write_rows(member, context.partitionId(), rows)
        except BaseException:
            with contextlib.suppress(RequestFailed, OutcomeUnknown):
                member.abort()
            raise
        return TaskWrote(key, member.producer_id, topic_ids)

    def _write_rows(
        self, member: BlockingMember, task: int, rows: Iterator[pa.RecordBatch]
    ) -> dict[str, bytes]:
        # Only tasks need Arrow and numpy. Those who plan and commit start much faster without.
        from faircopy.spark.writing import write_rows

        return write_rows(member, self._options.topic, self._options.codec, task, rows)

    def commit_all(self, key: JointKey, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what the tasks have written. Raises LostTopic."""
        written = [message for message in messages if isinstance(message, TaskWrote)]
        if any(message.producer_id is None for message in written):
            return  # the key is committed
        self._ensure_topics_are_there(written)
        producer_ids = [message.producer_id for message in written if message.producer_id is not None]
        self.client.commit(key.group, run=key.run, key=key.key, members=producer_ids)

    def _ensure_topics_are_there(self, written: list[TaskWrote]) -> None:
        """Raise LostTopic unless each topic is still the one that all tasks have written to: a commit would
        leave out the rows of those that wrote to the one before, and Spark would take the batch for written.
        """
        for topic, topic_id in sorted({each for message in written for each in message.topic_ids.items()}):
            try:
                self.client.topic(topic, topic_id=topic_id)
            except DataLost as error:
                raise LostTopic(
                    f"nothing of this batch is written: {error}. To write it to the topic that is there now, "
                    f"run it again"
                ) from error

    def abort_all(self, key: JointKey) -> None:
        """Discard what the tasks have written. What can't be discarded now goes by its timeout."""
        with contextlib.suppress(RequestFailed, OutcomeUnknown):
            self.client.abort(key.group, run=key.run, key=key.key)


class BatchWriter(SinkWriter, DataSourceArrowWriter):
    """The writer of a batch job. It is made once for a job, so that its run is one."""

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        super().__init__(schema, options)
        run = uuid.uuid4().hex
        self._is_named = options.job is not None
        self._key = JointKey(options.job or f"spark-{run}", run, options.batch or 0)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrote:
        """Write the rows of one task."""
        return self.write_for(self._key, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks have written."""
        self.commit_all(self._key, messages)
        if not self._is_named:
            self._forget()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Discard what tasks have written."""
        self.abort_all(self._key)
        if not self._is_named:
            self._forget()

    def _forget(self) -> None:
        """Nobody will ask for a job without a name again, and nobody has to wait until it is forgotten."""
        self.client.forget_soon(self._key.group)


class StreamWriter(SinkWriter, DataSourceStreamArrowWriter):
    """The writer of a streaming query. Only tasks are told which query and batch it is."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrote:
        """Write the rows of one task of a micro-batch."""
        return self.write_for(self._key_of_task(), iterator)

    def _key_of_task(self) -> JointKey:
        context = TaskContext.get()
        assert context is not None
        query, run, number = map(context.getLocalProperty, (QUERY_ID, RUN_ID, BATCH_ID))
        if not query or not run or number is None:
            raise FaircopyError(
                "this version of Spark does not tell tasks which query and batch they belong to: use PySpark "
                "4.2 or newer"
            )
        return JointKey(self._options.job or query, run, int(number))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit what all tasks of a micro-batch have written."""
        key = key_of(messages)
        if key is not None:
            self.commit_all(key, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Discard what tasks of a micro-batch have written."""
        key = key_of(messages)
        if key is not None:
            self.abort_all(key)


def key_of(messages: list[WriterCommitMessage | None]) -> JointKey | None:
    """What the tasks have written under; None if no task has written anything."""
    return next((message.key for message in messages if isinstance(message, TaskWrote)), None)

"""The source: a micro-batch is a cut, so it holds whole transactions of all topics that are read."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from faircopy.client import EARLIEST, LATEST, BlockingClient, DataLost, OffsetRange
from faircopy.client.brokers import KnownTopic, TopicPartition
from faircopy.errors import FaircopyError
from faircopy.spark.clients import client_of
from faircopy.spark.options import BadOption
from faircopy.spark.source_options import SourceOptions
from faircopy.spark.splits import Split, splits, tasks
from faircopy.spark.subscription import Bound, Position, ending, starting

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)


class LostData(FaircopyError):
    """Messages that were to be read are gone."""


class RangesOfLog(InputPartition):
    """What one task reads."""

    def __init__(self, splits: tuple[Split, ...]) -> None:
        super().__init__(splits)
        self.splits = splits


class LogReader:
    """What batch and stream have in common. It is pickled and sent to tasks."""

    def __init__(self, schema: StructType, options: SourceOptions) -> None:
        self._schema = schema
        self._options = options
        repeated = {name for name in schema.fieldNames() if schema.fieldNames().count(name) > 1}
        if repeated:
            raise BadOption(
                f"option 'value.schema' has columns that a row has already: {', '.join(sorted(repeated))}; "
                f"give them other names, or read values as they are and use from_json"
            )

    @property
    def client(self) -> BlockingClient:
        """The client of this process."""
        return client_of(self._options.servers, self._options.client_id)

    # -- where -----------------------------------------------------------------------------------------------

    def known(self) -> dict[str, KnownTopic]:
        """The topics that there are. Raises LostData if one that is subscribed to by name is missing."""
        known = self.client.topics()
        missing = self._options.subscription.missing(known)
        if missing:
            self.lose(f"there is no topic or partition {', '.join(missing)}")
        return known

    def resolved(
        self, bound: Bound, partitions: list[TopicPartition], topic_ids: Mapping[str, bytes]
    ) -> dict[TopicPartition, int]:
        """The offsets that a bound stands for. Raises BadOption, DataLost."""
        strangers = [each for each in (*bound.offsets, *bound.times_ms) if each not in partitions]
        if strangers:
            raise BadOption(f"offsets are given for {strangers}, which are not subscribed to")
        otherwise = bound.otherwise if bound.at_ms is None else bound.at_ms
        asked = {each: bound.offsets.get(each, bound.times_ms.get(each, otherwise)) for each in partitions}
        are_times = bound.at_ms is not None or bool(bound.times_ms)
        open_ones = {each: at for each, at in asked.items() if are_times or at in (EARLIEST, LATEST)}
        found = self.client.offsets_at(open_ones, topic_ids=topic_ids)
        late = [each for each, offset in found.items() if offset is None]
        if late and not bound.or_otherwise:
            raise BadOption(f"nothing in {late} is as new as the time that reading should start at")
        latest = self.client.offsets_at(dict.fromkeys(late, LATEST), topic_ids=topic_ids)
        return asked | {each: offset for each, offset in (found | latest).items() if offset is not None}

    def cut(
        self,
        starts: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, bytes],
        rows_max: int | None = None,
        bytes_max: int | None = None,
    ) -> dict[TopicPartition, OffsetRange]:
        """The largest cut of partitions that are read from these offsets on: from the nearest that are there,
        if failOnDataLoss is false. Raises LostData, DataLost.
        """
        while starts:
            try:
                return self.client.cut(
                    starts, limit_rows=rows_max, limit_bytes=bytes_max, topic_ids=topic_ids
                )
            except DataLost as error:
                self.lose(str(error))
            starts = self._within_logs(starts, topic_ids)
        return {}

    def _within_logs(
        self, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, bytes]
    ) -> dict[TopicPartition, int]:
        """The nearest offsets that are there. Raises DataLost."""
        earliest, latest = (
            self.client.offsets_at(dict.fromkeys(offsets, each), topic_ids=topic_ids)
            for each in (EARLIEST, LATEST)
        )
        return {
            each: min(max(offset, earliest[each] or 0), latest[each] or 0) for each, offset in offsets.items()
        }

    def lose(self, what: str) -> None:
        """Messages are gone: fail, or go on if failOnDataLoss is false."""
        if self._options.fails_on_loss:
            raise LostData(
                f"{what}. If that is as it should be, set option failOnDataLoss to false; a stream may also "
                f"start anew, with a new checkpoint"
            )
        log.warning("faircopy: %s", what)

    def split_up(
        self, ranges: Mapping[TopicPartition, OffsetRange], topic_ids: Mapping[str, bytes]
    ) -> list[InputPartition]:
        """The tasks that read these ranges of these topics."""
        limits = self._options.splits_min, self._options.split_rows_max
        return [RangesOfLog(each) for each in tasks(splits(ranges, topic_ids, *limits), *limits)]

    # -- what ------------------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task. Raises LostData."""
        # Only tasks need Arrow's kernels. Those who plan, and only import this, start much faster without.
        from faircopy.spark.task_reader import TaskReader

        reader = TaskReader(self.client, self._schema, self._options, self.lose)
        for split in getattr(partition, "splits", ()):
            yield from reader.read(split)


class BatchReader(LogReader, DataSourceReader):
    """Reads once. Unless an end is given, it is a cut: whole transactions of all topics."""

    def partitions(self) -> list[InputPartition]:
        """The tasks of the read. Raises LostData."""
        given, known = self._options.given, self.known()
        partitions, topic_ids = self._options.subscription.partitions(known), ids_of(known)
        starts = self.resolved(starting(given, "earliest"), partitions, topic_ids)
        end = ending(given)
        if end.is_otherwise_only and end.otherwise == LATEST:
            ranges = self.cut(starts, topic_ids)
        else:
            ends = self.resolved(end, partitions, topic_ids)
            ranges = {each: OffsetRange(start, ends[each]) for each, start in starts.items()}
        return self.split_up(ranges, topic_ids) or [RangesOfLog(())]


class StreamReader(LogReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batches, each of which is a cut."""

    def __init__(self, schema: StructType, options: SourceOptions) -> None:
        super().__init__(schema, options)
        self._target: Position | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a new query starts."""
        known = self.known()
        bound = starting(self._options.given, "latest")
        if bound.is_otherwise_only and bound.otherwise == LATEST:
            return self._present_ends(known).as_json()
        partitions = self._options.subscription.partitions(known)
        return position_of(self.resolved(bound, partitions, ids_of(known)), known).as_json()

    def _present_ends(self, known: Mapping[str, KnownTopic]) -> Position:
        partitions = self._options.subscription.partitions(known)
        ranges = self.client.cut(partitions, topic_ids=ids_of(known)) if partitions else {}
        return position_of({each: end for each, (_, end) in ranges.items()}, known)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit of a micro-batch, by the options."""
        rows_max = self._options.rows_max
        if rows_max is None and self._options.bytes_max is None:
            return ReadAllAvailable()
        return ReadMaxRows(rows_max if rows_max is not None else NO_LIMIT_OF_ROWS)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next micro-batch ends: at a cut. Raises LostData."""
        position, known = self._continued(Position.of_json(start))
        is_limited = not isinstance(limit, ReadAllAvailable)
        ranges = self.cut(
            self._unfinished(position),
            position.topic_ids,
            getattr(limit, "max_rows", None) if is_limited else None,
            self._options.bytes_max if is_limited else None,
        )
        ends = {each: end for each, (_, end) in ranges.items()}
        if self._target is not None:
            ends = {each: min(end, self._target.offsets[each]) for each, end in ends.items()}
        return position_of(position.offsets | ends, known).as_json()

    def _unfinished(self, position: Position) -> dict[TopicPartition, int]:
        """Where partitions are that have not come to the end of the query. Others may grow, and would take
        what a limit leaves.
        """
        if self._target is None:
            return position.offsets
        ends = self._target.offsets
        return {each: offset for each, offset in position.offsets.items() if offset != ends.get(each, offset)}

    def _continued(self, position: Position) -> tuple[Position, dict[str, KnownTopic]]:
        """A position with what has come since, and without what has gone. Raises LostData."""
        known = self.known()
        remade = {
            topic
            for topic, its in position.topic_ids.items()
            if topic in known and known[topic].topic_id != its
        }
        partitions = self._options.subscription.partitions(known)
        gone = [each for each in position.offsets if each not in partitions]
        if remade or gone:
            names = sorted({*remade, *(f"{topic}-{number}" for topic, number in gone)})
            self.lose(f"{', '.join(names)} was deleted, or deleted and made anew, since it was last read")
        fresh = [each for each in partitions if each not in position.offsets or each[0] in remade]
        starts = {each: position.offsets[each] for each in partitions if each not in fresh}
        earliest = self.client.offsets_at(dict.fromkeys(fresh, EARLIEST), topic_ids=ids_of(known))
        starts |= {each: offset or 0 for each, offset in earliest.items()}
        return position_of(starts, known), known

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Where the logs end now, for the status of the query."""
        return self._present_ends(self.client.topics()).as_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Take the present ends for those of the query."""
        self._target = self._present_ends(self.known())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a micro-batch: of the topics for which it was planned, which may be gone when Spark
        repeats it. Raises LostData.
        """
        before, after = Position.of_json(start), Position.of_json(end)
        ranges = {
            each: OffsetRange(self._start_of(each, before, after), offset)
            for each, offset in after.offsets.items()
        }
        return self.split_up(ranges, after.topic_ids)

    def _start_of(self, partition: TopicPartition, before: Position, after: Position) -> int:
        """Where a micro-batch starts in a partition: one that is new since then, at its start."""
        topic = partition[0]
        if partition in before.offsets and before.topic_ids[topic] == after.topic_ids[topic]:
            return before.offsets[partition]
        try:
            found = self.client.offsets_at({partition: EARLIEST}, topic_ids=after.topic_ids)
        except DataLost as error:
            self.lose(str(error))
            return after.offsets[partition]
        return found[partition] or 0


NO_LIMIT_OF_ROWS = (1 << 62) - 1
"""When only bytes are limited: Spark knows one limit at a time."""


def position_of(offsets: Mapping[TopicPartition, int], known: Mapping[str, KnownTopic]) -> Position:
    """A position in topics as they are known now."""
    return Position(dict(offsets), {topic: known[topic].topic_id for topic, _ in offsets})


def ids_of(known: Mapping[str, KnownTopic]) -> dict[str, bytes]:
    """The ids of topics, by name."""
    return {name: topic.topic_id for name, topic in known.items()}

"""Rows that are to be written: their columns are found, and each row gets its partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from faircopy.client.outgoing import Describe
from faircopy.errors import FaircopyError
from faircopy.spark.partitioning import partitions_of_keys
from faircopy.spark.record_batches import (
    ABSENT,
    Columns,
    divisions,
    header_lengths,
    headers_encoded,
    lengths,
    records,
)
from faircopy.spark.schema import HEADERS_TYPE
from faircopy.spark.sink_columns import KINDS
from faircopy.spark.varints import Integers

CountPartitions = Callable[[str, int], int]
"""The number of a topic's partitions; it is looked up again if it is below the second argument."""


class BadRow(FaircopyError):
    """A row can't be written; nothing of its batch is."""


class EncodedRows(NamedTuple):
    """Rows of one partition, as the records section of a batch. `describe` says where they were."""

    topic: str
    partition: int
    section: memoryview
    rows: int
    describe: Describe


class Encoding:
    """Turns the rows of a task into batches, by topic and partition. `topic` is that of all rows, or None.

    Rows without key and partition share the partition of their Arrow batch; `first_keyless` says whose turn
    it is.
    """

    def __init__(self, topic: str | None, count_partitions: CountPartitions, first_keyless: int) -> None:
        self._topic = topic
        self._count_partitions = count_partitions
        self._keyless = first_keyless
        self._rows = 0

    def encode(self, rows: pa.RecordBatch) -> Iterator[EncodedRows]:
        """The batches of some rows. Raises BadRow."""
        names = [name.lower() for name in rows.schema.names]
        found = {name: rows.column(names.index(name)) for name in KINDS if name in names}
        count = rows.num_rows
        columns = Columns(
            as_binary(found.get("key"), count),
            as_binary(found["value"], count),
            headers_encoded(as_headers(found.get("headers"))),
        )
        for topic, numbers in self._by_topic(found.get("topic"), count):
            if len(numbers):
                of_topic = columns if len(numbers) == count else columns.take(pa.array(numbers))
                yield from self._of_topic(topic, of_topic, found.get("partition"), numbers)
        self._rows += count

    def _by_topic(self, column: Any | None, count: int) -> Iterator[tuple[str, Integers]]:
        """Each topic, and the numbers of its rows."""
        everything = np.arange(count)
        if self._topic is not None or column is None:
            yield self._topic or "", everything
            return
        missing = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))
        if len(missing):
            raise BadRow(f"{self._place(int(missing[0]))}: its topic is null")
        encoded = column.dictionary_encode()
        codes = encoded.indices.to_numpy()
        for code, topic in enumerate(encoded.dictionary.to_pylist()):
            yield topic, everything[codes == code]

    def _of_topic(
        self, topic: str, columns: Columns, given: Any | None, numbers: Integers
    ) -> Iterator[EncodedRows]:
        """The batches of the rows of one topic; `numbers` are those of the rows in the task's Arrow batch."""
        key_lengths, value_lengths = lengths(columns.key), lengths(columns.value)
        more_lengths = header_lengths(columns.headers, len(numbers))
        partitions = self._partitions(topic, columns.key, key_lengths, given, numbers)
        order = order_of(partitions)
        numbers, partitions = numbers[order], partitions[order]
        key_lengths, value_lengths, more_lengths = (
            each[order] for each in (key_lengths, value_lengths, more_lengths)
        )
        divided = divisions(partitions, key_lengths.clip(0) + value_lengths.clip(0) + more_lengths)
        deltas = np.concatenate([np.arange(end - start, dtype=np.int64) for start, end in divided])
        encoded = records(columns, order, deltas, key_lengths, value_lengths, more_lengths)
        for start, end in divided:
            describe = partial(place_among, self._rows + numbers[start:end])
            section = encoded.section(start, end)
            yield EncodedRows(topic, int(partitions[start]), section, end - start, describe)

    def _partitions(
        self, topic: str, key: Any, key_lengths: Integers, given: Any | None, numbers: Integers
    ) -> Integers:
        """The partition of each row. Raises BadRow."""
        wanted = np.full(len(numbers), ABSENT)
        if given is not None:
            wanted = pc.fill_null(given.take(pa.array(numbers)), ABSENT).to_numpy(zero_copy_only=False)
        count = self._count_partitions(topic, int(wanted.max()) + 1)
        self._ensure_there(topic, count, wanted, numbers)
        chosen = partitions_of_keys(key, key_lengths, count)
        chosen[chosen < 0] = self._keyless % count
        self._keyless += 1
        return np.where(wanted >= 0, wanted, chosen).astype(np.int64)

    def _ensure_there(self, topic: str, count: int, given: Any, rows: Integers) -> None:
        outside = np.flatnonzero((given >= count) | (given < ABSENT))
        if len(outside):
            at = int(outside[0])
            raise BadRow(
                f"{self._place(int(rows[at]))}: partition {int(given[at])} of topic {topic!r} is not there, "
                f"which has {count}"
            )

    def _place(self, row: int) -> str:
        return place_of(self._rows + row, self._rows + row)


def order_of(partitions: Integers) -> Integers:
    """The order of rows by partition; those of one stay in their order."""
    # numpy sorts integers of 16 bits by their digits, several times as fast as by comparison.
    are_short = not len(partitions) or int(partitions.max()) < 1 << 15
    return np.argsort(partitions.astype(np.int16) if are_short else partitions, kind="stable")


def place_among(rows: Integers, first: int, last: int) -> str:
    """Where the rows of a batch are, from one to another."""
    return place_of(int(rows[first]), int(rows[last]))


def place_of(first_row: int, last_row: int) -> str:
    """Where rows are, for people; the first row of a task is row 0."""
    many = f"rows {first_row} to {last_row}" if last_row > first_row else f"row {first_row}"
    return f"{many} of its task"


def as_binary(column: Any | None, count: int) -> Any:
    """A column of text or bytes as Arrow binaries; nulls if there is none."""
    if column is None:
        return pa.nulls(count, pa.binary())
    return column if column.type == pa.binary() else column.cast(pa.binary())


def as_headers(column: Any | None) -> Any | None:
    """A column of headers in the expected Arrow type."""
    return column.cast(HEADERS_TYPE) if column is not None and column.type != HEADERS_TYPE else column

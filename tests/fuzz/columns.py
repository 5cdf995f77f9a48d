"""Batches of the log as the publisher reads them: with Arrow's kernels, which trust what they are given."""

from __future__ import annotations

from faircopy.publish.columns import decode
from faircopy.publish.record_run import LoggedBatch, Source
from faircopy.wire.batch import BatchError, check_produced, placed_prefix, read_header
from tests.fuzz.batches import DECOMPRESSED_BYTES_MAX, as_sent, odd_batch, signed
from tests.fuzz.choices import Choices
from tests.unit.publish.publish_oracle import Row, loop_over

BATCHES_MAX = 8
FIRST_OFFSET = 3


def feed_batches(data: bytes) -> bool:
    """Batches, sound or with odd parts, whose length and CRC fit; the log has those that Produce takes."""
    choices = Choices(data)
    log: list[LoggedBatch] = []
    next_offset = 0
    source = Source("orders", 3, FIRST_OFFSET)
    while len(log) < BATCHES_MAX and not choices.is_over:
        batch = signed(odd_batch(choices) if choices.number() % 2 else choices.some())
        try:
            header = check_produced(memoryview(as_sent(batch)))
        except BatchError:
            continue
        placed = placed_prefix(next_offset, header.length, 0) + batch[16:]
        log.append(LoggedBatch(source, read_header(placed), placed, 0, None))
        next_offset += header.records
    check_rows(log)
    return bool(log)


def check_rows(log: list[LoggedBatch]) -> None:
    """The columns hold what a loop over the records finds."""
    expected = [row for batch in log for row in loop_over(batch, FIRST_OFFSET, DECOMPRESSED_BYTES_MAX)]
    found: list[Row] = []
    for rows in decode(log, DECOMPRESSED_BYTES_MAX):
        rows.batch.validate(full=True)
        assert sum(part.rows for part in rows.slices) == rows.batch.num_rows
        found += [comparable(row) for row in rows.batch.to_pylist()]
    assert found == [comparable(row) for row in expected]


def comparable(row: Row) -> Row:
    """A row without what is the same for all."""
    return {name: value for name, value in row.items() if name not in ("topic", "partition")}

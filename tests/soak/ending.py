"""What fresh clients read in the end: every log from start to end, offsets of groups, plain tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as parquet

from faircopy.publish.files import Files
from faircopy.publish.live_files import NoTableError, live_files
from tests.checker.history import Committed, Final, Operation, Read, Snapshot
from tests.clients.adapter import Client, Consumer, Place
from tests.soak.consumer import read_of
from tests.soak.stage import MEMBERS_GROUP, PLACES, TABLE, TABLE_TOPICS, name_of, now

READ_SECONDS = 60.0
TABLE_SECONDS = 60.0
COLUMNS = ["topic", "partition", "offset", "value"]


class TableBehind(Exception):
    """A plain table does not have the rows of its logs."""


def read_all(client: Client, address: str, isolation: str) -> Iterator[Operation]:
    """Read all logs, and what the group of members has committed."""
    consumer = client.consumer(address, group=MEMBERS_GROUP, isolation=isolation)
    try:
        asked = now()
        for place, offset in consumer.committed(PLACES).items():
            yield Committed(MEMBERS_GROUP, name_of(place), asked, now(), -1 if offset is None else offset)
        for place in PLACES:
            yield final_of(consumer, place)
    finally:
        consumer.close()


def final_of(consumer: Consumer, place: Place) -> Final:
    """Read one log. Stops early if no more comes; the checker sees that."""
    start, end = consumer.beginnings([place])[place], consumer.ends([place])[place]
    consumer.assign({place: start})
    reads: list[Read] = []
    deadline = time.monotonic() + READ_SECONDS
    while (reads[-1].offset + 1 if reads else start) < end and time.monotonic() < deadline:
        reads += [read_of(got) for got in consumer.poll(0.5)]
    return Final(name_of(place), start, end, reads)


def look_at_table(data_directory: Path) -> Snapshot:
    """All rows of the plain table's present files; none if there is no table yet."""
    directory = data_directory / "plain" / TABLE
    try:
        paths = live_files(Files(), directory)
    except NoTableError:
        paths = []
    reads = []
    for path in paths:
        rows = parquet.read_table(path, columns=COLUMNS).to_pydict()
        reads += [
            Read(f"{topic}-{partition}", offset, value.decode())
            for topic, partition, offset, value in zip(*(rows[column] for column in COLUMNS), strict=True)
        ]
    return Snapshot("+".join(TABLE_TOPICS), now(), reads)


def whole_table(data_directory: Path, finals: list[Final]) -> Snapshot:
    """The plain table, once it has the rows of the logs. Raises TableBehind if it never does."""
    expected = {
        read for final in finals if final.partition.rpartition("-")[0] in TABLE_TOPICS for read in final.reads
    }
    deadline = time.monotonic() + TABLE_SECONDS
    while True:
        snapshot = look_at_table(data_directory)
        if len(snapshot.reads) == len(expected) and set(snapshot.reads) == expected:
            return snapshot
        if time.monotonic() > deadline or len(snapshot.reads) > len(expected):
            raise TableBehind(
                f"the plain table has {len(snapshot.reads):,} rows, its logs have {len(expected):,}"
            )
        time.sleep(0.2)

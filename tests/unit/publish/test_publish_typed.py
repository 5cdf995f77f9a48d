"""Columns of values: what rows have, what becomes of those that do not fit, and how a schema changes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faircopy.publish import compaction, names
from faircopy.publish.layout import DEAD_LETTER, KEEP, STOP, Layout, TopicColumns
from faircopy.publish.requests import Drop, Open, Publish, Tidy, format_request, parse_reply
from faircopy.publish.schema import SCHEMA, parse_footer
from faircopy.publish.server import PublishServer
from faircopy.publish.table_columns import TableSchemaError
from faircopy.publish.trimming import Keep, Upkeep
from faircopy.publish.value_columns import BadValueError
from faircopy.wire.records import NewRecord
from tests.unit.publish.published_log import GrowingLog, Partition
from tests.unit.publish.simulated_disk import DirectoryNode, SimulatedFiles, crashed
from tests.unit.publish.table_bench import DAY_MS, START_MS, TABLE, Place
from tests.unit.publish.table_reader import listed, live_contents, streamed_contents

BAD = TABLE.with_name("orders~bad")
SMALL = Layout((TopicColumns("orders", "id bigint, name string"),))
LARGE = Layout((TopicColumns("orders", "at date, name string, id bigint, tags array<string>"),), by_day=True)
GOOD_VALUE = b'{"id": %d, "name": "n", "at": "2024-02-29", "tags": ["a", null]}'
BAD_VALUES = [b"{", b'{"id": "x"}', b"null", b"[]"]


def rows_in(contents: list[bytes]) -> list[dict[str, Any]]:
    return [row for content in contents for row in pq.read_table(io.BytesIO(content)).to_pylist()]


def append(place: Any, *values: bytes | None, partition: Partition = ("orders", 0)) -> None:
    place.log.append(partition, [NewRecord(value, None, START_MS) for value in values])


def test_fields_become_columns(place: Place) -> None:
    append(place, GOOD_VALUE % 1, None, b'{"id": null}', *BAD_VALUES)
    published = place.table.publish(place.log.cut(), LARGE)
    assert (published.rows, published.skipped_records, published.dead_letters) == (7, 0, 0)
    rows = rows_in(live_contents(place.files, TABLE))
    assert list(rows[0])[len(SCHEMA) :] == ["at", "name", "id", "tags", "_corrupt_record", "day"]
    assert [row["id"] for row in rows] == [1, None, None, None, None, None, None]
    assert (rows[0]["at"], rows[0]["name"], rows[0]["tags"]) == (date(2024, 2, 29), "n", ["a", None])
    assert [row["_corrupt_record"] for row in rows] == [None] * 3 + [text.decode() for text in BAD_VALUES]
    assert [row["value"] for row in rows] == [GOOD_VALUE % 1, None, b'{"id": null}', *BAD_VALUES]
    assert {row["day"] for row in rows} == {date(2026, 9, 21)}


def test_a_table_that_has_rows_gets_more_columns(place: Place) -> None:
    """The first file that readers find, by its name, has all columns, and so has the Delta log."""
    append(place, GOOD_VALUE % 1)
    place.publish()
    for layout in (SMALL, LARGE):
        append(place, GOOD_VALUE % 2)
        place.table.publish(place.log.cut(), layout)
        place.open()
        own = place.table.schema.names[len(SCHEMA) :]
        (described,) = [row for row in listed(place.files, TABLE) if names.is_schema(Path(row["path"]).name)]
        first = min(Path(row["path"]).name for row in listed(place.files, TABLE))
        assert Path(described["path"]).name == first < "_m="
        columns = pq.read_schema(io.BytesIO(place.files.read(TABLE / first))).names
        assert columns == [*SCHEMA.names, *own] == delta_columns(place)
    assert own == ["id", "name", "_corrupt_record", "at", "tags", "day"]
    globbed = [name for name in place.files.list_directory(TABLE) if name.endswith(".parquet")]
    assert min(globbed) == first and len([name for name in globbed if names.is_schema(name)]) == 3
    place.now_ms += 2 * DAY_MS
    place.table.tidy(Upkeep((Keep("orders"),)))
    left = [name for name in place.files.list_directory(TABLE) if names.is_schema(name)]
    assert left == [first]
    assert [row.get("id") for row in rows_in(live_contents(place.files, TABLE))] == [None, 2, 2]


def delta_columns(place: Place) -> list[str]:
    found: list[str] = []
    log = TABLE / "_delta_log"
    for name in sorted(name for name in place.files.list_directory(log) if name.endswith(".json")):
        for line in place.files.read(log / name).decode().split("\n"):
            action = json.loads(line)
            if "metaData" in action:
                schema = json.loads(action["metaData"]["schemaString"])
                found = [field["name"] for field in schema["fields"]]
    return found


def test_merged_files_have_all_columns(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MANY_FILES", 12)
    for number in range(30):
        append(place, GOOD_VALUE % number, b"{")
        place.table.publish(place.log.cut(), (Layout(), SMALL, LARGE)[min(number // 5, 2)])
    (merged, *_) = [content for content in live_contents(place.files, TABLE) if is_merged(content)]
    assert pq.read_schema(io.BytesIO(merged)).names == place.table.schema.names
    rows, streamed = (
        [with_all(row, place.table.schema) for row in rows_in(read(place.files, TABLE))]
        for read in (live_contents, streamed_contents)
    )
    assert rows == streamed
    assert [row["id"] for row in rows[::2]] == [None] * 5 + list(range(5, 30))
    assert [row["day"] for row in rows[::2]].count(None) == 10


def is_merged(content: bytes) -> bool:
    return len(pq.ParquetFile(io.BytesIO(content)).read()) > 2


def with_all(row: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    return {name: row.get(name) for name in schema.names}


@pytest.mark.parametrize(
    "schema", ["id int", "ID bigint", "name string, id array<bigint>"]
)  # fmt: skip
def test_columns_do_not_change(place: Place, schema: str) -> None:
    append(place, GOOD_VALUE % 1)
    place.table.publish(place.log.cut(), SMALL)
    append(place, GOOD_VALUE % 2)
    with pytest.raises(TableSchemaError, match=r"columns of a table don't change.*plain.table"):
        place.table.publish(place.log.cut(), Layout((TopicColumns("orders", schema),)))
    assert len(rows_in(live_contents(place.files, TABLE))) == 1


def test_a_column_that_is_no_longer_asked_for_stays(place: Place) -> None:
    append(place, GOOD_VALUE % 1)
    place.table.publish(place.log.cut(), SMALL)
    append(place, GOOD_VALUE % 2)
    place.table.publish(place.log.cut(), Layout())
    rows = rows_in(live_contents(place.files, TABLE))
    assert [(row["id"], row["name"]) for row in rows] == [(1, "n"), (None, None)]


def test_each_topic_has_its_own_fields() -> None:
    partitions: list[Partition] = [("orders", 0), ("orders", 1), ("payments", 0), ("raw", 0)]
    place = Place(partitions)
    layout = Layout(
        (TopicColumns("orders", "id bigint"), TopicColumns("payments", "paid boolean, id bigint"))
    )
    for partition in partitions:
        append(place, b'{"id": 1, "paid": true}', partition=partition)
    place.table.publish(place.log.cut(), layout)
    rows = rows_in(live_contents(place.files, TABLE))
    assert [(row["topic"], row["id"], row["paid"]) for row in rows] == [
        ("orders", 1, None),
        ("orders", 1, None),
        ("payments", 1, True),
        ("raw", None, None),
    ]


def test_a_value_that_does_not_fit_stops_the_table(place: Place) -> None:
    append(place, GOOD_VALUE % 1)
    append(place, GOOD_VALUE % 2, b"{")
    cuts = place.log.cut()
    stop = Layout((SMALL.topics[0]._replace(bad_values=STOP),))
    with pytest.raises(BadValueError, match=r"orders-0 at offset 2 .*DeleteRecords"):
        place.table.publish(cuts, stop)
    place.open()
    assert rows_in(live_contents(place.files, TABLE)) == []
    place.table.publish(cuts, SMALL)
    assert len(rows_in(live_contents(place.files, TABLE))) == 3


class Served:
    """A publisher that answers requests, on a simulated disk."""

    def __init__(self, files: SimulatedFiles | None = None) -> None:
        self.files = files or SimulatedFiles()
        if files is None:
            self.files.make_directory(Path("/log"))
            self.files.sync_directory(Path("/"))
        self.log = GrowingLog(self.files, Path("/log"), [("orders", 0), ("orders", 1), ("raw", 0)])
        self.server = PublishServer(self.files)
        self.now_ms = START_MS

    def ask(self, request: Any) -> tuple[str, dict[str, Any]]:
        self.now_ms += 1000
        reply, _ = self.server.answer(format_request(1, self.now_ms, request))
        return parse_reply(reply)[1:]

    def offsets(self, table: Path) -> list[tuple[str, int, int]]:
        found = [rows_in(read(self.files, table)) for read in (live_contents, streamed_contents)]
        keys = [[(row["topic"], row["partition"], row["offset"]) for row in rows] for rows in found]
        assert sorted(keys[0]) == sorted(keys[1]) and len(set(keys[0])) == len(keys[0])
        return sorted(keys[0])


DEAD = Layout((SMALL.topics[0]._replace(bad_values=DEAD_LETTER),))


@pytest.fixture
def served() -> Iterator[Served]:
    yield Served()


def publish_mixed(served: Served, number: int) -> Publish:
    """Every third value of orders-0 is bad, and all of raw."""
    values = [b"{" if offset % 3 == 0 else GOOD_VALUE % offset for offset in range(number, number + 5)]
    append(served, *values, partition=("orders", 0))
    append(served, GOOD_VALUE % 0, partition=("orders", 1))
    append(served, b"{", partition=("raw", 0))
    return Publish("orders", str(TABLE), served.log.cut(), DEAD)


def expected(ends: dict[Partition, int], *, bad: bool) -> list[tuple[str, int, int]]:
    return sorted(
        (*partition, offset)
        for partition, end in ends.items()
        for offset in range(end)
        if (partition == ("orders", 0) and offset % 3 == 0) == bad
    )


def test_dead_letters_go_to_another_table(served: Served) -> None:
    served.ask(Open("orders", str(TABLE), DEAD))
    assert not served.files.is_directory(BAD)
    append(served, GOOD_VALUE % 1, partition=("raw", 0))
    served.ask(Publish("orders", str(TABLE), served.log.cut(), DEAD))
    assert not served.files.is_directory(BAD)  # there is nothing for it
    for number in range(0, 40, 5):
        verb, body = served.ask(publish_mixed(served, number))
        assert verb == "published" and body["skipped_records"] == body["skipped_offsets"] == 0
        assert body["dead_letters"] == len([n for n in range(number, number + 5) if n % 3 == 0])
    assert served.offsets(TABLE) == expected(served.log.ends, bad=False)
    assert served.offsets(BAD) == expected(served.log.ends, bad=True)
    rows = rows_in(live_contents(served.files, BAD))
    assert list(rows[0]) == SCHEMA.names and {row["value"] for row in rows} == {b"{"}
    selections = {
        parse_footer(pq.read_metadata(io.BytesIO(content)).metadata, "it").selection
        for content in live_contents(served.files, BAD)
        if len(pq.read_table(io.BytesIO(content)))
    }
    assert selections == {"misfits"}


def test_dead_letters_go_with_their_table(served: Served) -> None:
    served.ask(publish_mixed(served, 0))
    keeps = (Keep("orders", {0: 5, 1: 1}), Keep("raw"))
    verb, body = served.ask(Tidy("orders", str(TABLE), Upkeep(keeps)))
    assert (verb, body["dropped_files"]) == ("tidied", 1)
    assert served.offsets(BAD) == []
    assert served.ask(Drop("orders", str(TABLE)))[0] == "dropped"
    assert not served.files.is_directory(BAD) and not served.files.is_directory(TABLE)


@pytest.mark.parametrize("bad_values", [KEEP, DEAD_LETTER])
def test_a_crash_anywhere(served: Served, bad_values: str) -> None:
    """While columns come and dead letters go: afterwards each row is in its table, once."""
    served.ask(publish_mixed(served, 0))
    layout = Layout((LARGE.topics[0]._replace(bad_values=bad_values),), by_day=True)
    again = publish_mixed(served, 5)._replace(layout=layout)
    moments: list[DirectoryNode] = []
    served.files.before_operation = lambda operation: moments.append(served.files.snapshot())
    served.ask(again)
    assert len(moments) > 40
    misfits = expected(served.log.ends, bad=True)
    dead = [key for key in misfits if bad_values == DEAD_LETTER or key[2] < 5]
    kept = [key for key in misfits if key not in dead]
    for number, moment in enumerate(moments):
        for mode in ("lost", "kept", "mixed"):
            after = Served(crashed(moment, mode, number))
            assert after.ask(again)[0] == "published"
            assert after.offsets(BAD) == dead
            assert after.offsets(TABLE) == sorted([*expected(served.log.ends, bad=False), *kept])

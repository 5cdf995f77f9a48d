"""Which offsets a publication adds: each once, though requests repeat, overlap, and retention removes."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.publish import log_reader
from faircopy.publish.offsets import Held
from faircopy.publish.requests import Cut
from faircopy.publish.table import MixedTopicsError
from faircopy.wire.records import NewRecord
from tests.unit.publish.publish_oracle import logged
from tests.unit.publish.published_log import GrowingLog
from tests.unit.publish.table_bench import GOOD, ORDERS, TABLE, Place
from tests.unit.publish.table_reader import read_table


def test_a_repeated_publication_is_done_once(place: Place) -> None:
    place.log.append(ORDERS, GOOD)
    cuts = place.log.cut()
    first = place.publish(cuts)
    assert (first.sequence, first.rows, first.live_files) == (33, 10, 1)
    again = place.publish(cuts)
    assert (again.sequence, again.rows, again.bytes, again.live_files) == (33, 0, 0, 1)
    place.open()
    assert place.publish(cuts).rows == 0
    assert place.offsets() == {ORDERS: list(range(10))}


def test_a_request_that_begins_within_what_is_published_adds_the_rest(place: Place) -> None:
    place.log.append(ORDERS, GOOD)
    (first,) = place.log.cut()
    place.publish((first,))
    place.log.append(ORDERS, GOOD)
    (second,) = place.log.cut()
    both = second._replace(first_offset=0, chunks=first.chunks + second.chunks)
    assert place.publish((both,)).rows == 10
    assert place.offsets() == {ORDERS: list(range(20))}


def test_what_retention_removed_is_skipped_and_told(place: Place) -> None:
    place.log.append(ORDERS, GOOD)
    place.publish()
    for _ in range(4):
        place.log.append(ORDERS, GOOD)
    (cut,) = place.log.cut()
    published = place.publish((cut._replace(first_offset=25),))
    assert (published.rows, published.skipped_offsets, published.skipped_records) == (25, 15, 0)
    assert place.offsets() == {ORDERS: [*range(10), *range(25, 50)]}


def test_retention_removed_all(place: Place) -> None:
    place.log.append(ORDERS, GOOD)
    place.publish()
    published = place.publish((Cut("orders", "0f", 0, 50, 50, ()),))
    assert (published.rows, published.skipped_offsets) == (0, 40)
    assert place.open().held.next_offsets == {"orders": {0: 50}}


def test_a_partition_may_begin_anywhere(place: Place) -> None:
    """A table that is turned on late has missed nothing."""
    place.log.append(ORDERS, GOOD)
    (cut,) = place.log.cut()
    published = place.publish((cut._replace(first_offset=5),))
    assert (published.rows, published.skipped_offsets) == (5, 0)


def test_chunks_in_several_files_and_pieces(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "PIECE_BYTES", 150)
    for number in range(20):
        place.log.append(ORDERS, GOOD[: 1 + number % 10] * (1 + number // 5))
    (cut,) = place.log.cut()
    (chunk,) = cut.chunks
    content = place.files.read(Path(chunk.path))
    half = next(batch.at for batch in logged(content) if batch.at > len(content) // 2)
    other = Path("/log/other.log")
    place.files.create(other).write(b"garbage" + content[half:])
    parts = (chunk._replace(size=half), chunk._replace(path=str(other), position=7, size=len(content) - half))
    assert place.publish((cut._replace(chunks=parts),)).rows == place.log.ends[ORDERS]
    assert place.offsets() == {ORDERS: list(range(place.log.ends[ORDERS]))}


def test_whole_batches_outside_of_the_cut_are_skipped(place: Place) -> None:
    for number in range(4):
        place.log.append(ORDERS, GOOD, f"7.0.{number}")
    (cut,) = place.log.cut()
    assert place.publish((cut._replace(end_offset=10),)).rows == 10
    assert place.publish((cut._replace(first_offset=10, end_offset=30),)).rows == 20
    assert place.offsets() == {ORDERS: list(range(30))}
    txids = read_table(place.files, TABLE).column("txid").to_pylist()
    assert txids == [f"7.0.{n}" for n in range(3) for _ in range(10)]


def test_rows_of_a_topic_that_was_made_again_are_not_mixed_with_those_of_its_predecessor(
    place: Place,
) -> None:
    """Also when the new one has more offsets than the old one had, and after the table is opened anew."""
    place.log.append(ORDERS, [NewRecord(b"old")] * 10)
    place.publish()
    place.files.make_directory(Path("/again"))
    again = GrowingLog(place.files, Path("/again"), [ORDERS], topic_id="f0")
    again.append(ORDERS, [NewRecord(b"new")] * 20)
    cuts = again.cut()
    for _ in range(2):
        with pytest.raises(MixedTopicsError, match="another topic that was called 'orders'"):
            place.publish(cuts)
        assert place.open().held == Held({"orders": {0: 10}}, {"orders": "0f"})

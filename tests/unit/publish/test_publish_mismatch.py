"""A log that is not what the request says it is: refused, and nothing of it is in the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.publish import names
from faircopy.publish.log_reader import LogMismatchError
from faircopy.publish.requests import Cut
from tests.unit.publish.table_bench import GOOD, ORDERS, TABLE, Place


def wrong_log(place: Place, kind: str) -> Cut:
    for _ in range(3):
        place.log.append(ORDERS, GOOD)
    (cut,) = place.log.cut()
    (chunk,) = cut.chunks
    batch = chunk.size // 3
    if kind == "bit flipped":
        node = place.files.file(Path(chunk.path))
        node.content = node.content[: batch + 70] + b"\xff" + node.content[batch + 71 :]
    chunks = {
        "batch missing": (chunk._replace(size=batch), chunk._replace(position=2 * batch, size=batch)),
        "first missing": (chunk._replace(position=batch, size=2 * batch),),
        "last missing": (chunk._replace(size=2 * batch),),
        "none": (),
        "beyond the file": (chunk._replace(size=chunk.size + 1),),
        "in the middle of a batch": (chunk._replace(size=chunk.size - 1),),
        "from the middle of a batch": (chunk._replace(position=9, size=chunk.size - 9),),
        "twice": (chunk, chunk),
        "one over": (chunk,),
    }
    ends = {"one over": cut.end_offset + 1, "twice": cut.end_offset + 30}
    return cut._replace(chunks=chunks.get(kind, (chunk,)), end_offset=ends.get(kind, cut.end_offset))


@pytest.mark.parametrize(
    "kind",
    [
        "bit flipped",
        "batch missing",
        "first missing",
        "last missing",
        "none",
        "beyond the file",
        "in the middle of a batch",
        "from the middle of a batch",
        "twice",
        "one over",
    ],
)
def test_a_log_that_is_not_what_the_request_says(place: Place, kind: str) -> None:
    cut = wrong_log(place, kind)
    with pytest.raises(LogMismatchError):
        place.publish((cut,))
    assert place.offsets() == {}
    assert place.open().held.next_offsets == {}
    assert not any(names.is_temporary(path.name) for path in place.files.walk(TABLE))


def test_a_cut_through_a_batch(place: Place) -> None:
    place.log.append(ORDERS, GOOD)
    (cut,) = place.log.cut()
    with pytest.raises(LogMismatchError, match="crosses"):
        place.publish((cut._replace(end_offset=7),))

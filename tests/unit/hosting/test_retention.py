"""Which segments retention gives up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from faircopy.hosting.retention import start_offset_to_keep, start_offset_to_publish, trim_partition

DAY_MS = 86_400_000
END = 35


def segment(base_offset: int, size: int, written_ms: int | None) -> Any:
    return SimpleNamespace(base_offset=base_offset, size=size, written_ms=written_ms, began_ms=None)


SEGMENTS = [
    segment(0, 100, 1 * DAY_MS),
    segment(10, 100, 2 * DAY_MS),
    segment(20, 100, 3 * DAY_MS),
    segment(30, 50, 4 * DAY_MS),
]


def kept_from(
    retention_ms: int, retention_bytes: int, now_ms: int, segments: list[Any] = SEGMENTS, end: int = END
) -> int:
    topic = cast(Any, SimpleNamespace(retention_ms=retention_ms, retention_bytes=retention_bytes))
    log = SimpleNamespace(segments=segments, start_offset=0, end_offset=end)
    return start_offset_to_keep(topic, cast(Any, SimpleNamespace(log=log)), now_ms)


@pytest.mark.parametrize(
    ("retention_ms", "retention_bytes", "now_ms", "expected"),
    [
        (-1, -1, 100 * DAY_MS, 0),
        (DAY_MS, -1, 3 * DAY_MS, 10),
        (DAY_MS, -1, 3 * DAY_MS + 1, 20),
        (DAY_MS, -1, 5 * DAY_MS, 30),
        (DAY_MS, -1, 100 * DAY_MS, END),
        (-1, 350, 4 * DAY_MS, 0),
        (-1, 250, 4 * DAY_MS, 10),
        (-1, 249, 4 * DAY_MS, 10),
        (-1, 0, 4 * DAY_MS, 30),
        (DAY_MS, 150, 3 * DAY_MS + 1, 20),
    ],
)
def test_whole_segments_go_and_the_last_one_only_when_it_has_expired(
    retention_ms: int, retention_bytes: int, now_ms: int, expected: int
) -> None:
    assert kept_from(retention_ms, retention_bytes, now_ms) == expected


def test_what_is_not_visible_stays() -> None:
    """A large transaction is being copied: its segments have their places, and nobody has seen them."""
    assert kept_from(-1, 0, 4 * DAY_MS, end=20) == 20
    assert kept_from(-1, 0, 4 * DAY_MS, end=15) == 10
    assert kept_from(DAY_MS, -1, 100 * DAY_MS, end=32) == 32


def test_a_segment_of_unknown_age_is_young() -> None:
    assert kept_from(DAY_MS, -1, 100 * DAY_MS, [segment(0, 1, None), segment(10, 1, 0)]) == 0


def test_an_empty_log_has_nothing_to_give() -> None:
    assert kept_from(DAY_MS, 0, 100 * DAY_MS, [], end=0) == 0


@pytest.mark.parametrize(
    ("offset", "unpublished_from", "bytes_max", "expected"),
    [
        (30, 0, 1000, 0),
        (30, 9, 1000, 0),
        (30, 10, 1000, 10),
        (30, 19, 1000, 10),
        (30, 0, 200, 10),
        (30, 0, 199, 20),
        (30, 0, 0, 30),
        (20, 12, 100, 10),
        (20, 12, 99, 20),
        (END, 30, 50, 30),
        (END, 30, 49, END),
    ],
)
def test_what_a_plain_table_does_not_have_yet_stays(
    offset: int, unpublished_from: int, bytes_max: int, expected: int
) -> None:
    """The newest segments of it, up to so many bytes; what is published goes in any case."""
    log = cast(Any, SimpleNamespace(segments=SEGMENTS, start_offset=0, end_offset=END))
    assert start_offset_to_publish(log, offset, unpublished_from, bytes_max) == expected


@pytest.mark.parametrize(
    ("retention_ms", "unpublished_from", "bytes_max", "expected", "lost"),
    [
        (-1, 0, 1000, 5, ""),
        (-1, 5, 1000, 5, ""),
        (-1, 12, 0, 5, ""),
        (DAY_MS, 0, 1000, 5, ""),
        (DAY_MS, 0, 100, 10, "offsets 5 to 9 are deleted though"),
        (DAY_MS, 12, 0, 20, "offsets 12 to 19 are deleted though"),
    ],
)
def test_no_plain_table_waits_for_records_that_were_deleted_on_purpose(
    caplog: pytest.LogCaptureFixture,
    retention_ms: int,
    unpublished_from: int,
    bytes_max: int,
    expected: int,
    lost: str,
) -> None:
    """DeleteRecords has moved the log's start to 5."""
    trimmed: list[int] = []
    log = SimpleNamespace(segments=SEGMENTS, start_offset=5, end_offset=END, stamp=lambda: 3 * DAY_MS + 1)
    partition = SimpleNamespace(
        name="t-0",
        log=log,
        state=SimpleNamespace(start_offset=5),
        trim=lambda offset, _done: trimmed.append(offset),
    )
    topic = SimpleNamespace(retention_ms=retention_ms, retention_bytes=-1, segment_ms=100 * DAY_MS)
    kept = trim_partition(cast(Any, topic), cast(Any, partition), unpublished_from, bytes_max)
    assert (kept, trimmed) == (expected, [expected] if expected > 5 else [])
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == bool(lost)
    assert all(lost in error for error in errors)

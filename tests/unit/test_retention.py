"""Which segments retention gives up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from faircopy.broker.retention import start_offset_to_keep

DAY_MS = 86_400_000


def segment(base_offset: int, size: int, written_ms: int) -> Any:
    return SimpleNamespace(base_offset=base_offset, size=size, written_ms=lambda _otherwise: written_ms)


SEGMENTS = [
    segment(0, 100, 1 * DAY_MS),
    segment(10, 100, 2 * DAY_MS),
    segment(20, 100, 3 * DAY_MS),
    segment(30, 50, 4 * DAY_MS),
]


@pytest.mark.parametrize(
    ("retention_ms", "retention_bytes", "now_ms", "kept_from"),
    [
        (-1, -1, 100 * DAY_MS, 0),
        (DAY_MS, -1, 3 * DAY_MS, 10),
        (DAY_MS, -1, 3 * DAY_MS + 1, 20),
        (DAY_MS, -1, 100 * DAY_MS, 30),
        (-1, 350, 4 * DAY_MS, 0),
        (-1, 250, 4 * DAY_MS, 10),
        (-1, 249, 4 * DAY_MS, 10),
        (-1, 0, 4 * DAY_MS, 30),
        (DAY_MS, 150, 3 * DAY_MS + 1, 20),
    ],
)
def test_whole_segments_go_and_the_last_one_stays(
    retention_ms: int, retention_bytes: int, now_ms: int, kept_from: int
) -> None:
    topic = cast(Any, SimpleNamespace(retention_ms=retention_ms, retention_bytes=retention_bytes))
    partition = cast(Any, SimpleNamespace(log=SimpleNamespace(segments=SEGMENTS, start_offset=0)))
    assert start_offset_to_keep(topic, partition, now_ms) == kept_from

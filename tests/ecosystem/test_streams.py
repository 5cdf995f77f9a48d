"""Kafka Streams counts words exactly once while it and the broker are killed, and loses its state."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystem.streams.content import ensure_streams_is_content
from tests.ecosystem.streams.counting import counting
from tests.ecosystem.streams.stores import STORES

SOON = {"consumer.session.timeout.ms": "6000"}
"""The place that it had in its group is free so long after a kill, and not only after 45 s."""


@pytest.mark.parametrize("store", STORES)
def test_words_are_counted_exactly(tmp_path: Path, store: str) -> None:
    with counting(tmp_path, SOON | STORES[store]) as work:
        work.disturbed([work.broker.restart, work.lose_the_state, work.broker.restart, work.kill_both])
        work.check()
        ensure_streams_is_content(work)

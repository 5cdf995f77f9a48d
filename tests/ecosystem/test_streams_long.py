"""Kafka Streams with nothing but the settings of its quick start: after each kill it waits for 45 s."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystem.streams.content import ensure_streams_is_content
from tests.ecosystem.streams.counting import counting
from tests.ecosystem.streams.stores import STORES

KILLS_OF_BROKER = 5


@pytest.mark.parametrize("store", STORES)
def test_words_are_counted_exactly_for_long(tmp_path: Path, store: str) -> None:
    with counting(tmp_path, STORES[store]) as work:
        of_broker = [work.broker.restart] * KILLS_OF_BROKER
        work.disturbed([*of_broker, work.application.restart, *of_broker, work.application.restart])
        work.disturbed([work.kill_both, work.broker.restart, work.kill_both])
        work.disturbed([work.lose_the_state, *of_broker])
        work.check()
        ensure_streams_is_content(work)

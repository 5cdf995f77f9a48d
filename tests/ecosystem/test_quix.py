"""Quix Streams counts words with a state in RocksDB and a changelog, which is a compacted topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystem.quix import counting_by_quix, delete_state, ensure_counts

SENTENCES = 500


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_quix_streams_counts(tmp_path: Path, guarantee: str) -> None:
    """Counts survive kill -9 of the broker, and a state that was deleted comes back from the changelog."""
    with counting_by_quix(tmp_path, guarantee) as work:
        work.sentences.write(SENTENCES // 2)
        work.until_counting()
        work.sentences.write(SENTENCES // 2)
        work.broker.restart()
        work.until_complete()
        work.program.stop()
        delete_state(work.program)
        work.program.start()
        work.sentences.write(SENTENCES)
        work.until_complete()
        work.program.stop()
        assert "Recovery successful" in work.program.log
        ensure_counts(work, guarantee)

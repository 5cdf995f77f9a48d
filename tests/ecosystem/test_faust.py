"""Faust counts words in a table, whose changelog is a compacted topic."""

from __future__ import annotations

from pathlib import Path

from tests.ecosystem.faust import counting_by_faust, until_ready

SENTENCES = 500


def test_faust_counts(tmp_path: Path) -> None:
    """The table, which is only in memory, comes back from its changelog after a stop in order."""
    with counting_by_faust(tmp_path) as work:
        until_ready(work.program, 1)
        work.sentences.write(SENTENCES)
        work.until_complete()
        work.program.stop()
        work.program.start()
        until_ready(work.program, 2)
        work.sentences.write(SENTENCES)
        work.until_complete()
        work.program.stop()
        work.ensure_each_counted_once()

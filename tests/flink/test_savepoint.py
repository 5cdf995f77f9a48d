"""A job that was stopped with a savepoint goes on from there, after the broker was stopped in order."""

from __future__ import annotations

from pathlib import Path

from tests.flink.copying import copying
from tests.java.compiled import Installed

MESSAGES = 4_000


def test_a_job_goes_on_from_its_savepoint(flink: Installed, tmp_path: Path, naming: str) -> None:
    with copying(flink, tmp_path, naming) as work:
        work.feed.until_visible(MESSAGES // 2)
        savepoint = work.job.stop_with_savepoint()
        work.broker.restart(kill=False)
        work.job.start(savepoint)
        work.feed.until_visible(MESSAGES)
        work.check()

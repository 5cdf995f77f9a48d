"""The job or the broker is killed with -9 while Flink copies: each message is there, and once."""

from __future__ import annotations

from pathlib import Path

from tests.flink.copying import copying
from tests.flink.installed import Installed

KILLS_OF_JOB = 5
KILLS_OF_BROKER = 8


def test_the_job_is_killed(flink: Installed, tmp_path: Path, naming: str) -> None:
    """It goes on from its newest checkpoint: commits what that holds, and aborts what came after."""
    with copying(flink, tmp_path, naming) as work:
        work.disturbed(KILLS_OF_JOB, work.job.restart)
        work.check()


def test_the_broker_is_killed(flink: Installed, tmp_path: Path, naming: str) -> None:
    """The job runs on: what it has flushed before its checkpoint can still be committed after it (P9)."""
    with copying(flink, tmp_path, naming) as work:
        work.disturbed(KILLS_OF_BROKER, work.broker.restart)
        work.check()
        assert work.transactions_gone_on > 0

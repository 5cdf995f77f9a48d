"""Job or broker are killed with -9, or a task fails, while Flink copies: each message is there, and once."""

from __future__ import annotations

from pathlib import Path

from tests.flink.copying import copying
from tests.java.compiled import Installed
from tests.power_loss import lose_power

KILLS_OF_JOB = 5
KILLS_OF_BROKER = 8
LOSSES_OF_POWER = 4
FAILURES = 5


def test_the_job_is_killed(flink: Installed, tmp_path: Path, naming: str) -> None:
    """It goes on from its newest checkpoint: commits what that holds, and aborts what came after."""
    with copying(flink, tmp_path, naming) as work:
        work.disturbed(KILLS_OF_JOB, work.job.restart)
        work.check()


def test_the_broker_is_killed(flink: Installed, tmp_path: Path, naming: str) -> None:
    """The job runs on, and no task fails: what was flushed before a checkpoint is committed after it (P9)."""
    with copying(flink, tmp_path, naming) as work:
        work.disturbed(KILLS_OF_BROKER, work.broker.restart)
        work.check()
        assert work.transactions_gone_on > 0
        assert work.job.failures == 0


def test_the_power_of_the_broker_fails(flink: Installed, tmp_path: Path, naming: str) -> None:
    """With durable acks, the job runs on then, too."""
    with copying(flink, tmp_path, naming, "transactional.ack=durable") as work:
        work.disturbed(LOSSES_OF_POWER, lambda: lose_power(work.broker))
        work.check()
        assert work.transactions_gone_on > 0
        assert work.job.failures == 0


def test_a_task_fails(flink: Installed, tmp_path: Path, naming: str) -> None:
    """It goes on in the same process, where its producers of before may still be."""
    with copying(flink, tmp_path, naming) as work:
        work.disturbed(FAILURES, work.job.fail)
        work.check()
        assert work.job.failures > 0

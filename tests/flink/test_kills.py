"""The job, the broker, or both are killed with -9 while Flink copies: each message is there, and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flink.copying import copying
from tests.flink.installed import Installed

KILLS_OF_BROKER = 8


@pytest.mark.parametrize("naming", ["INCREMENTING", "POOLING"])
def test_the_broker_is_killed(flink: Installed, tmp_path: Path, naming: str) -> None:
    """The job runs on: what it has flushed before its checkpoint can still be committed after it (P9)."""
    with copying(flink, tmp_path, naming) as work:
        work.disturbed(KILLS_OF_BROKER, work.broker.restart)
        work.check()
        assert work.transactions_gone_on > 0

"""Debezium tells each change of a table of PostgreSQL once, killed more often."""

from __future__ import annotations

from pathlib import Path

from tests.ecosystem.debezium.following import following

ROUNDS = 4


def test_each_change_is_told_once_for_long(tmp_path: Path) -> None:
    with following(tmp_path) as work:
        worker, broker = work.flow.worker.jvm, work.flow.broker
        one_round = [broker.restart, worker.restart, broker.restart, work.flow.kill_both]
        work.disturbed(one_round * ROUNDS)

"""Debezium tells each change of a table of PostgreSQL once, while its worker and the broker are killed."""

from __future__ import annotations

from pathlib import Path

from tests.ecosystem.debezium.following import following


def test_each_change_is_told_once(tmp_path: Path) -> None:
    with following(tmp_path) as work:
        worker, broker = work.flow.worker.jvm, work.flow.broker
        work.disturbed([broker.restart, worker.restart, broker.restart, work.flow.kill_both])

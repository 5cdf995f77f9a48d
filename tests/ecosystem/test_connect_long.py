"""Kafka Connect moves lines, killed more often; the sink waits for 45 s after each kill of the worker."""

from __future__ import annotations

from pathlib import Path

from tests.ecosystem.connect.files import copy_file, read_file
from tests.ecosystem.connect.flow import flowing
from tests.ecosystem.connect.installed import FILE

ROUNDS = 4


def test_each_line_is_read_once_for_long(tmp_path: Path) -> None:
    with flowing(tmp_path, FILE) as flow:
        worker, broker = flow.worker.jvm, flow.broker
        one_round = [broker.restart, worker.restart, broker.restart, flow.kill_both]
        read_file(flow, tmp_path, one_round * ROUNDS)


def test_each_line_is_written_for_long(tmp_path: Path) -> None:
    with flowing(tmp_path, FILE) as flow:
        worker, broker = flow.worker.jvm, flow.broker
        copy_file(flow, tmp_path, [broker.restart, worker.restart, broker.restart, flow.kill_both])

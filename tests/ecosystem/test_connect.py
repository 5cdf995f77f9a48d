"""Kafka Connect moves lines between files and a topic while it and the broker are killed."""

from __future__ import annotations

from pathlib import Path

from tests.ecosystem.connect.files import copy_file, read_file
from tests.ecosystem.connect.flow import flowing
from tests.ecosystem.connect.installed import FILE


def test_each_line_is_read_once(tmp_path: Path) -> None:
    with flowing(tmp_path, FILE) as flow:
        worker, broker = flow.worker.jvm, flow.broker
        read_file(flow, tmp_path, [broker.restart, worker.restart, broker.restart, flow.kill_both])


def test_each_line_is_written(tmp_path: Path) -> None:
    """The worker's place in the group of the sink would be free only 45 s after a kill of the worker."""
    with flowing(tmp_path, FILE) as flow:
        copy_file(flow, tmp_path, [flow.broker.restart] * 3)

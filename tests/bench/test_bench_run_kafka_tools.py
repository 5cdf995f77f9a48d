"""Kafka's own tools, run: with a broker of each kind, and when they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.kafka_tools import tools as tools_module
from bench.kafka_tools.tools import KAFKA_TOOLS, Tools
from bench.measures.kafka_tools import Case, Work, measure
from bench.results import ToolProduce, ToolTotals
from bench.systems.choice import factory_of
from bench.systems.kafka import find_kafka
from tests.fetch.needed import needed


def test_a_tool_that_fails_says_what_it_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failing = tmp_path / "java"
    failing.write_text("#!/bin/sh\necho no broker; echo at all >&2; exit 3\n")
    failing.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    KAFKA_TOOLS.directory.mkdir(parents=True)
    monkeypatch.setattr(tools_module, "java", lambda: failing)
    with pytest.raises(RuntimeError, match="EndToEndLatency ended with 3; it said:\nno broker\nat all"):
        Tools().run("EndToEndLatency")


@pytest.mark.parametrize("name", ["local-copy os", "kafka"])
def test_the_tools_with_a_broker(name: str, tmp_path: Path) -> None:
    """All of them, few records: Kafka is served transactions v2, faircopy v1."""
    work = Work(Case(5, 500), [Case(100, 2000), Case(0, 2000, 4000)], end_to_end_records=100)
    needed(Tools)
    needed(find_kafka)
    rows = measure(tmp_path, [factory_of(name)], work, lambda _doing: None)
    totals = rows[-1]
    assert isinstance(totals, ToolTotals)
    runs = [row for row in rows if isinstance(row, ToolProduce)]
    found = [(run.system, run.transaction_ms, run.offered_per_second) for run in runs]
    assert found == [(name, 100, 0), (name, 0, 4000)]
    assert totals.transaction_version == (2 if name == "kafka" else 0)
    assert totals.cpu_seconds > 0.1
    assert totals.peak_memory_bytes > 20 << 20
    assert runs[0].commit_share > runs[1].commit_share == 0

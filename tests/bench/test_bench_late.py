"""`python -m bench late`, in small: both systems are written to, and nothing of faircopy's breaks."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.late.results import load
from bench.systems.kafka import find_kafka
from tests.fetch.needed import needed


@pytest.mark.parametrize("system", ["faircopy", "kafka"])
def test_late_requests_are_counted(system: str, tmp_path: Path) -> None:
    if system == "kafka":
        needed(find_kafka)
    output = tmp_path / "late.json"
    ran = CliRunner().invoke(
        main, ["late", "--seconds", "6", "--seed", "1", "--only", system, "--output", str(output)]
    )
    assert ran.exit_code == 0, ran.output
    [row] = load(output).rows
    assert row.verdict.committed and row.verdict.aborted and sum(row.late.values())
    assert row.verdict.broken == 0 or system != "faircopy", row.verdict
    assert "undead" in ran.output and row.system.version in ran.output

"""Python libraries that consume and produce, each with its own quick start, answer each message once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystem.greeting import ensure_each_is_greeted
from tests.ecosystem.packages.python import PYTHON
from tests.ecosystem.program import python_program


@pytest.mark.parametrize("kind", ["aiokafka", "confluent"])
def test_faststream(tmp_path: Path, kind: str) -> None:
    """A subscriber of FastStream answers through its publisher."""
    arguments = ["-m", "faststream", "run", "faststream_greet:app"]
    ensure_each_is_greeted(
        tmp_path,
        lambda broker: python_program(
            "faststream", arguments, tmp_path / "program", BROKER=broker, KIND=kind
        ),
    )


def test_bytewax(tmp_path: Path) -> None:
    """A dataflow of Bytewax goes on after the kill. It does not commit: started again, it would read all."""
    arguments = ["-m", "bytewax.run", "bytewax_greet:flow"]
    ensure_each_is_greeted(
        tmp_path,
        lambda broker: python_program("bytewax", arguments, tmp_path / "program", BROKER=broker),
        commits=False,
    )


def test_arroyo(tmp_path: Path) -> None:
    """A stream processor of Arroyo commits what it has answered."""
    script = str(PYTHON / "arroyo_greet.py")
    ensure_each_is_greeted(
        tmp_path, lambda broker: python_program("arroyo", [script, broker], tmp_path / "program")
    )

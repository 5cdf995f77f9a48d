"""Pathway follows a topic. Its packages have three quarters of a gigabyte, so only this test fetches them."""

from __future__ import annotations

from pathlib import Path

from tests.ecosystem.greeting import ensure_each_is_greeted
from tests.ecosystem.packages.python import LARGE, PYTHON
from tests.ecosystem.program import python_program
from tests.fetch.needed import needed


def test_pathway(tmp_path: Path) -> None:
    """A table of Pathway follows one topic, and its changes go to another; it keeps no place by default."""
    needed(LARGE.fetch)
    script = str(PYTHON / "pathway_greet.py")
    ensure_each_is_greeted(
        tmp_path,
        lambda broker: python_program("pathway", [script, broker], tmp_path / "program"),
        commits=False,
    )

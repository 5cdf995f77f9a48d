"""Which scripts there are, and what performs each."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.coordinator import CoordinatorScript
from tests.scenarios.data_journal import DataJournalScript
from tests.scenarios.metadata_journal import MetadataJournalScript
from tests.scenarios.script import play

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.glob("*/*.txt"))


def play_file(path: Path) -> str:
    """What the script would be if it were written now."""
    script = path.read_text()
    match path.parent.name:
        case "data_journal":
            return play(script, DataJournalScript().perform)
        case "metadata_journal":
            return play(script, MetadataJournalScript().perform)
        case "coordinator":
            return play_with_clients(script)
    raise ValueError(f"nothing performs scripts of {path.parent.name}")


def play_with_clients(script: str) -> str:
    """Play a script of a coordinator."""
    performer = CoordinatorScript()
    try:
        return play(script, performer.perform)
    finally:
        performer.close()

"""Tries a mutant in a process of its own."""

from __future__ import annotations

from tests.forked import Trial, said_in_child
from tests.mutants.mutants import MUTANTS


def is_found(name: str, trial: Trial) -> bool:
    """Whether a trial notices the mutant of this name. Raises TrialDied, which shows nothing."""

    def on_mutant() -> bool:
        with MUTANTS[name]():
            return trial()

    return said_in_child(on_mutant, name)

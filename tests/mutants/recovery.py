"""Mutants of what a start believes and what it cuts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faircopy.datalog.segment import LogSegment
from faircopy.journal import entry_format, opening
from faircopy.journal.segments import Segments
from tests.mutants.registry import mutant, replaced


@mutant
def cut_damage_like_a_torn_tail() -> Iterator[Any]:
    """I9: whatever is not sound is cut."""
    with replaced(opening, "ensure_torn", lambda *arguments, **named: None):
        yield


@mutant
def leave_the_torn_tail() -> Iterator[Any]:
    """A torn tail is not cut, so that old bytes may be taken for entries later."""

    def cut(self: Segments, end: int) -> None:
        pass

    with replaced(Segments, "cut", cut):
        yield


@mutant
def leave_the_log_after_its_checkpoint() -> Iterator[Any]:
    """I6: recovery does not cut the data log at the checkpoint's end."""
    with replaced(LogSegment, "begin_again_at", lambda self, byte: None):
        yield


@mutant
def skip_the_crc() -> Iterator[Any]:
    """I9: entries are not checked."""
    with replaced(entry_format, "check", lambda *arguments: None):
        yield

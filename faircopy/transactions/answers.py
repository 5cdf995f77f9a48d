"""Tracks who has not answered a message yet.

Participants are told again after a change of leader, so one may answer twice: each answer counts once.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Who = TypeVar("Who", bound=Hashable)


class Answers(Generic[Who]):
    """The answers to one message; `all_in()` is called once, when the last one arrives."""

    __slots__ = ("_all_in", "missing")

    def __init__(self, asked: Iterable[Who], all_in: Callable[[], None]) -> None:
        self.missing = dict.fromkeys(asked)
        self._all_in = all_in

    def note(self, who: Who) -> None:
        """Note that `who` has answered."""
        if who in self.missing:
            del self.missing[who]
            if not self.missing:
                self._all_in()

    def close(self) -> None:
        """Ignore all further answers."""
        self.missing.clear()

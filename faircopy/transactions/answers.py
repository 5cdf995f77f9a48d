"""Who has not answered yet, of all that were told something.

Participants are told again after a change of their leader, and may answer twice: each answer counts once.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Who = TypeVar("Who", bound=Hashable)


class Answers(Generic[Who]):
    """The answers to one thing; `all_in()` is called once, when the last one has come."""

    __slots__ = ("_all_in", "missing")

    def __init__(self, asked: Iterable[Who], all_in: Callable[[], None]) -> None:
        self.missing = dict.fromkeys(asked)
        self._all_in = all_in

    def note(self, who: Who) -> None:
        """This one has answered."""
        if who in self.missing:
            del self.missing[who]
            if not self.missing:
                self._all_in()

    def close(self) -> None:
        """Heed no answer any more."""
        self.missing.clear()

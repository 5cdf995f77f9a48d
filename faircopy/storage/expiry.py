"""What a check of ages has let expire, and whether that may be a mistake."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

log = logging.getLogger(__name__)

NAMED_MAX = 20


class Expired(NamedTuple):
    """How many objects a check has let expire, of how many that it has looked at."""

    gone: int
    known: int


def names_in_short(names: Sequence[str]) -> str:
    """Names for the log, which may be too many."""
    named = ", ".join(map(repr, names[:NAMED_MAX]))
    more = len(names) - NAMED_MAX
    return f"{named}, and {more} more" if more > 0 else named


class FirstCheck:
    """Warns if the first check since a start lets everything expire, as it would if ages were wrong.

    `what` names all objects, for the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_over = False

    def note(self, expired: Expired) -> None:
        """A check has ended."""
        if not self._is_over and 0 < expired.gone == expired.known:
            log.warning(
                "%s expired at the first check since the start. If they were not that old, stop the broker "
                "and restore a backup; docs/TIME.md says what counts as age",
                self._what,
            )
        self._is_over = True

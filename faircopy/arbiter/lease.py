"""A lease, as its holder sees it: nobody else acts in its place before it has expired.

Pure.
"""

from __future__ import annotations

MARGIN = 0.1
"""The holder gives up this part of the lease early, for clocks that run at different speeds."""
RENEWALS = 4
"""How often it is renewed in its time."""


class Lease:
    """A lease of this many seconds; math.inf if it lasts for as long as the process.

    Times are of a clock that does not stop while the machine is suspended.
    """

    def __init__(self, number: int, seconds: float, asked_ms: float) -> None:
        self.number = number
        self.is_lost = False
        self._seconds = seconds
        self._asked_ms = asked_ms

    @property
    def renewal_seconds(self) -> float:
        """The time between two renewals."""
        return self._seconds / RENEWALS

    def renewed(self, asked_ms: float) -> None:
        """The store has renewed it; it was asked to at `asked_ms`."""
        self._asked_ms = max(self._asked_ms, asked_ms)

    def is_in_doubt(self, now_ms: float) -> bool:
        """Whether it may have expired, so that its holder must not act on it."""
        return self.is_lost or now_ms - self._asked_ms >= self._seconds * 1000 * (1 - MARGIN)

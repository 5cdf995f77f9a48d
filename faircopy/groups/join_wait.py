"""How long a rebalance waits for members to join. Pure."""

from __future__ import annotations


class JoinWait:
    """One wait at a time, until `deadline_ms`. The first rebalance of a group waits a little for more
    members, and again as long as more arrive, up to a limit (KIP-134).
    """

    def __init__(self) -> None:
        self.deadline_ms: int | None = None
        self._delay_ms = 0
        self._left_ms: int | None = None  # how much longer a first rebalance may still wait
        self._has_grown = False

    @property
    def is_for_more(self) -> bool:
        """Whether it goes on even if all known members have joined."""
        return self._left_ms is not None

    def start(self, limit_ms: int, now_ms: int) -> None:
        """Wait for known members."""
        self._left_ms = None
        self.deadline_ms = now_ms + limit_ms

    def start_first(self, delay_ms: int, limit_ms: int, now_ms: int) -> None:
        """Wait for a first member's companions."""
        self._delay_ms = min(delay_ms, limit_ms)
        if self._delay_ms <= 0:
            self.start(limit_ms, now_ms)
            return
        self._has_grown = False
        self._left_ms = limit_ms - self._delay_ms
        self.deadline_ms = now_ms + self._delay_ms

    def note_member(self) -> None:
        """A new member has come."""
        self._has_grown = True

    def has_gone_on(self, now_ms: int) -> bool:
        """At the deadline: whether the wait goes on, since more members have come."""
        if not self._left_ms or not self._has_grown:
            return False
        delay_ms = min(self._delay_ms, self._left_ms)
        self._left_ms -= delay_ms
        self._has_grown = False
        self.deadline_ms = now_ms + delay_ms
        return True

    def end(self) -> None:
        """Wait no longer."""
        self.deadline_ms = self._left_ms = None

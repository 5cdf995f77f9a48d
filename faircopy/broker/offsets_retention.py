"""Offsets of groups that nobody uses any more go after offsets.retention.ms (KIP-211).

Membership is volatile, so after a start of the broker the time counts from that start on: offsets go late rather than
early.
"""

from __future__ import annotations

from collections.abc import Callable

from faircopy.broker.offsets_journals import OffsetsJournals
from faircopy.broker.settings import Settings
from faircopy.storage.clock import Clock


class OffsetsRetention:
    """Looks now and then which groups have members, and expires the offsets of those that had none for long."""

    def __init__(
        self, offsets: OffsetsJournals, has_members: Callable[[str], bool], settings: Settings, clock: Clock
    ) -> None:
        self._offsets = offsets
        self._has_members = has_members
        self._retention_ms = settings.offsets_retention_ms
        self._interval_ms = settings.offsets_retention_check_interval_ms
        self._clock = clock
        self._started_ms = clock.wall_ms()
        self._last_used_ms: dict[str, int] = {}

    async def apply(self) -> None:
        """One look. Raises JournalFull."""
        # A group with members now may lose them right after this look, but is not known to until the next.
        used_until_ms = self._clock.wall_ms() + self._interval_ms
        self._last_used_ms = {
            group: used_until_ms if self._has_members(group) else self._last_used_ms.get(group, self._started_ms)
            for group in self._offsets.groups()
        }
        await self._offsets.expire(self._retention_ms, lambda group: self._last_used_ms.get(group, used_until_ms))

"""Groups that nobody uses any more go after offsets.retention.ms, and their offsets with them (KIP-211).

Since when a group is empty stands in its metadata. One that never had members, since its clients choose their
partitions themselves, is as old as its offsets.
"""

from __future__ import annotations

from collections.abc import Callable

from faircopy.groups.offsets_journals import OffsetsJournals
from faircopy.settings.table import Settings


class OffsetsRetention:
    """Looks now and then which groups are not in use, and expires what is too old of them."""

    def __init__(self, offsets: OffsetsJournals, is_active: Callable[[str], bool], settings: Settings) -> None:
        self._offsets = offsets
        self._is_active = is_active
        self._retention_ms = settings.offsets_retention_ms

    async def apply(self) -> None:
        """One look. Raises JournalFull."""
        await self._offsets.expire(self._retention_ms, self._is_active)

"""Deletes groups that have been unused for offsets.retention.ms, with their offsets (KIP-211).

A group's metadata says since when it is empty. A group that never had members, since its clients assign
partitions themselves, is as old as its offsets.
"""

from __future__ import annotations

from collections.abc import Callable

from faircopy.groups.offsets_journals import OffsetsJournals
from faircopy.settings.table import Settings
from faircopy.storage.expiry import Expired


class OffsetsRetention:
    """Checks from time to time which groups are not in use, and expires what is too old."""

    def __init__(
        self, offsets: OffsetsJournals, is_active: Callable[[str], bool], settings: Settings
    ) -> None:
        self._offsets = offsets
        self._is_active = is_active
        self._retention_ms = settings.offsets_retention_ms

    async def apply(self) -> Expired:
        """Check once. Returns how many groups are left without offsets. Raises JournalFull."""
        return await self._offsets.expire(self._retention_ms, self._is_active)

"""A versioned map in memory, for tests of what is kept in one."""

from __future__ import annotations

from collections.abc import Mapping

from faircopy.storage.versioned_map import SortedEntries, Versioned


class MemoryMap:
    """A VersionedMap that lasts as long as the process."""

    def __init__(self) -> None:
        self._entries = SortedEntries()
        self._writes = 0

    def get(self, key: str) -> Versioned | None:
        return self._entries.get(key)

    def scan(self, prefix: str) -> dict[str, Versioned]:
        return self._entries.scan(prefix)

    async def transact(self, expected: Mapping[str, int], changes: Mapping[str, bytes | None]) -> int:
        self._entries.ensure_versions(expected)
        version = self._writes
        self._writes += 1
        self._entries.apply(changes, version)
        return version

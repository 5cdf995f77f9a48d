"""The cluster store in memory, for tests and for a process that keeps nothing."""

from __future__ import annotations

from collections.abc import Mapping

from faircopy.cluster.store import ABSENT, Conflict, Versioned


class MemoryStore:
    """A ClusterStore that lasts as long as the process."""

    def __init__(self) -> None:
        self._entries: dict[str, Versioned] = {}

    def get(self, key: str) -> Versioned | None:
        return self._entries.get(key)

    def scan(self, prefix: str) -> dict[str, Versioned]:
        return {key: self._entries[key] for key in sorted(self._entries) if key.startswith(prefix)}

    async def transact(self, expected: Mapping[str, int], changes: Mapping[str, bytes | None]) -> None:
        ensure_versions(self, expected)
        for key, value in changes.items():
            found = self._entries.get(key)
            if value is None:
                self._entries.pop(key, None)
            else:
                self._entries[key] = Versioned(value, (found.version if found else ABSENT) + 1)


def ensure_versions(store: MemoryStore, expected: Mapping[str, int]) -> None:
    """Raise Conflict unless every key has the version that is expected of it."""
    for key, version in expected.items():
        found = store.get(key)
        there = found.version if found else ABSENT
        if there != version:
            raise Conflict(f"{key} has version {there}, not {version}: someone else has changed it")

"""A small versioned map of text to bytes: what brokers share and decide by.

Reads come from memory. Writes are transactions that name the versions they depend on. The catalogue's journal
is such a map, and so is a session with the arbiter. tests/unit/catalogue/test_contract.py has the contract.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from typing import NamedTuple, Protocol

from faircopy.errors import FaircopyError

ABSENT = -1
"""The version of a key that has no value."""


class Versioned(NamedTuple):
    """A value, and the version of the write that put it there. Versions count the writes of all keys: a later
    write of any key has a greater one. So a key that is deleted and made again never has an old version.
    """

    value: bytes
    version: int


class Conflict(FaircopyError):
    """A write depended on a version that has changed. Nothing was written. Read again and decide again."""


class VersionedMap(Protocol):
    """A map. What it returns has been durable, and nobody takes it back."""

    def get(self, key: str) -> Versioned | None:
        """The value of a key, or None."""

    def scan(self, prefix: str) -> dict[str, Versioned]:
        """All keys with this prefix, in order."""

    async def transact(self, expected: Mapping[str, int], changes: Mapping[str, bytes | None]) -> int:
        """Write all `changes` (None deletes) durably, if every key in `expected` has its expected version.
        ABSENT expects no value. Returns the version that the written keys have now, which `get` shows.

        Raises Conflict, once `get` shows what was in the way.
        """


class SortedEntries:
    """Keys and their values, in memory, in order. Belongs to whoever makes a map of it."""

    def __init__(self) -> None:
        self._entries: dict[str, Versioned] = {}
        self._keys: list[str] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def get(self, key: str) -> Versioned | None:
        """The value of a key, or None."""
        return self._entries.get(key)

    def scan(self, prefix: str) -> dict[str, Versioned]:
        """All keys with this prefix, in order."""
        from_there_on = islice(self._keys, bisect_left(self._keys, prefix), None)
        there = takewhile(lambda key: key.startswith(prefix), from_there_on)
        return {key: self._entries[key] for key in there}

    def copy(self) -> SortedEntries:
        """The same entries, on their own."""
        copy = SortedEntries()
        copy._entries, copy._keys = dict(self._entries), list(self._keys)
        return copy

    def version(self, key: str) -> int:
        """The version of a key; ABSENT if it has no value."""
        found = self._entries.get(key)
        return found.version if found is not None else ABSENT

    def ensure_versions(self, expected: Mapping[str, int]) -> None:
        """Raise Conflict unless every key has the version that is expected of it."""
        for key, version in expected.items():
            if (there := self.version(key)) != version:
                raise Conflict(
                    f"{key} has version {told(there)}, not {told(version)}: someone else has changed it"
                )

    def apply(self, changes: Mapping[str, bytes | None], version: int) -> None:
        """Make the changes of one write (None deletes)."""
        for key, value in changes.items():
            is_there = key in self._entries
            if value is not None:
                self._entries[key] = Versioned(value, version)
                if not is_there:
                    insort(self._keys, key)
            elif is_there:
                del self._entries[key]
                del self._keys[bisect_left(self._keys, key)]


def told(version: int) -> str:
    """A version as people read it."""
    return "none" if version == ABSENT else str(version)


async def take_block(store: VersionedMap, counter: str, size: int) -> range:
    """The next `size` numbers of a counter, which nobody else gets. One durable write reserves them all."""
    while True:
        found = store.get(counter)
        first = int(found.value) if found else 0
        try:
            version = found.version if found else ABSENT
            await store.transact({counter: version}, {counter: str(first + size).encode()})
        except Conflict:
            continue
        return range(first, first + size)

"""The cluster store: a small versioned map that is the same for every broker of a cluster.

Reads come from memory. Writes are transactions that name the versions they depend on. Every backend passes
the same contract tests (tests/unit/cluster/test_store_contract.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from faircopy.errors import FaircopyError

ABSENT = 0


class Versioned(NamedTuple):
    """A value and its version: 1 at the first write, one more with each further write."""

    value: bytes
    version: int


class Conflict(FaircopyError):
    """A write depended on a version that has changed. Nothing was written. Read again and decide again."""


class ClusterStore(Protocol):
    """What a backend must do."""

    def get(self, key: str) -> Versioned | None:
        """The value of a key, or None."""

    def scan(self, prefix: str) -> dict[str, Versioned]:
        """All keys with this prefix, in order."""

    async def transact(self, expected: Mapping[str, int], changes: Mapping[str, bytes | None]) -> object:
        """Write all `changes` (None deletes) durably, if every key in `expected` has its expected version.
        ABSENT expects no value.

        Raises Conflict.
        """


async def take_block(store: ClusterStore, counter: str, size: int) -> range:
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

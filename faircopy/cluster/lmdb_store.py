"""The cluster store in the broker's own LMDB environment: the embedded default.

Table `cluster`: key in UTF-8 -> version u64 big-endian, value.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from faircopy.cluster.store import ABSENT, Conflict, Versioned
from faircopy.storage.state_store import Delete, Put, StateStore

_VERSION = struct.Struct(">Q")
TABLE = "cluster"


class LmdbStore:
    """A ClusterStore that is one table of a StateStore."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def get(self, key: str) -> Versioned | None:
        value = self._store.get(TABLE, key.encode())
        return decode(value) if value is not None else None

    def scan(self, prefix: str) -> dict[str, Versioned]:
        return {key.decode(): decode(value) for key, value in self._store.scan(TABLE, prefix.encode())}

    async def transact(self, expected: Mapping[str, int], changes: Mapping[str, bytes | None]) -> None:
        def check_and_write() -> list[Put | Delete]:
            for key, version in expected.items():
                if (there := self._version(key)) != version:
                    raise Conflict(f"{key} has version {there}, not {version}: someone else has changed it")
            return [self._change(key, value) for key, value in changes.items()]

        await self._store.write_checked(check_and_write)

    def _version(self, key: str) -> int:
        found = self.get(key)
        return found.version if found else ABSENT

    def _change(self, key: str, value: bytes | None) -> Put | Delete:
        if value is None:
            return Delete(TABLE, key.encode())
        return Put(TABLE, key.encode(), _VERSION.pack(self._version(key) + 1) + value)


def decode(value: bytes) -> Versioned:
    """A stored value and its version."""
    return Versioned(value[_VERSION.size :], _VERSION.unpack_from(value)[0])

"""The cluster store in etcd, for brokers on several machines.

A key of the store is a key of etcd behind a prefix, which is the cluster's own. Versions are etcd's revisions
of modification. Use etcd 3.5.28 or newer: earlier ones had faults with leases and lost updates.

The client is our own. Of those that are published, one says "refused" of a write that was carried out, and
the others know one address only, or hang with a member that is stopped.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from math import ceil

from faircopy.arbiter.backend import (
    NO_LEASE,
    Attempt,
    ChangesForgotten,
    KeyChange,
    LeaseLeft,
    StoreSnapshot,
    StoreUnavailable,
    Unanswered,
)
from faircopy.arbiter.etcd_client import EtcdClient, EtcdRefused, Json
from faircopy.storage.versioned_map import Versioned

PAGE_KEYS = 5_000
NOT_FOUND = 404
NEVER = 0  # etcd's revision of a key that has no value, for ABSENT


class EtcdBackend:
    """One process's way to etcd. `prefix` is that of the cluster's keys."""

    def __init__(self, addresses: Sequence[str], prefix: str) -> None:
        self._client = EtcdClient(addresses)
        self._watching = EtcdClient(addresses)
        self._prefix = prefix.encode()

    # -- reading ---------------------------------------------------------------------------------------------

    async def snapshot(self) -> StoreSnapshot:
        """All keys, as of a revision that is not older than the call. Raises StoreUnavailable."""
        entries: dict[str, Versioned] = {}
        first, revision = self._prefix, 0
        while True:
            body = self._range(first) | {"limit": PAGE_KEYS, "revision": revision}
            page = await self._read("kv/range", body)
            revision = revision or revision_of(page)
            for row in page.get("kvs", ()):
                entries[self._key_in(row)] = versioned(row)
            if not page.get("more"):
                return StoreSnapshot(revision, entries)
            first = b64decode(page["kvs"][-1]["key"]) + b"\0"

    async def read(self, key: str) -> Versioned | None:
        """A key, not older than the call. Raises StoreUnavailable."""
        row = await self._row(key)
        return versioned(row) if row else None

    async def _row(self, key: str) -> Json | None:
        """What etcd has of a key. Raises StoreUnavailable."""
        rows: list[Json] = (await self._read("kv/range", {"key": self._name(key)})).get("kvs", [])
        return rows[0] if rows else None

    async def _read(self, path: str, body: Json) -> Json:
        """The answer to a request that may be repeated. Raises StoreUnavailable, EtcdRefused."""
        try:
            return await self._client.ask(path, body)
        except Unanswered as error:
            raise StoreUnavailable(str(error)) from error

    async def changes(self, revision: int) -> AsyncIterator[Sequence[KeyChange]]:
        """All changes after a revision, in order. Raises ChangesForgotten, StoreUnavailable."""
        request = self._range(self._prefix) | {"start_revision": revision + 1}
        async with aclosing(self._watching.watch(request)) as answers:  # type: ignore[type-var]
            async for answer in answers:
                if "compact_revision" in answer:
                    raise ChangesForgotten(f"etcd has compacted revision {revision}")
                if answer.get("canceled"):
                    raise StoreUnavailable(f"etcd has ended the watch: {answer.get('cancel_reason')}")
                changes = [self._change(event) for event in answer.get("events", ())]
                if changes:
                    yield changes

    # -- writing ---------------------------------------------------------------------------------------------

    async def attempt(self, attempt: Attempt) -> int | None:
        """Write. Raises Unanswered, and StoreUnavailable if nothing was sent."""
        body = {
            "compare": [
                {
                    "key": self._name(key),
                    "target": "MOD",
                    "mod_revision": max(version, NEVER),
                    "result": "EQUAL",
                }
                for key, version in attempt.expected.items()
            ],
            "success": [self._operation(attempt, key, value) for key, value in attempt.changes.items()],
        }
        try:
            answer = await self._client.ask("kv/txn", body)
        except EtcdRefused as error:
            if error.status == NOT_FOUND:  # the lease
                return None
            raise
        return revision_of(answer) if answer.get("succeeded") else None

    def _operation(self, attempt: Attempt, key: str, value: bytes | None) -> Json:
        if value is None:
            return {"request_delete_range": {"key": self._name(key)}}
        lease = attempt.lease if key in attempt.bound else NO_LEASE
        return {"request_put": {"key": self._name(key), "value": encoded(value), "lease": lease}}

    # -- leases ----------------------------------------------------------------------------------------------

    async def grant(self, seconds: float) -> int:
        """A new lease. Raises StoreUnavailable."""
        return int((await self._read("lease/grant", {"TTL": ceil(seconds)}))["ID"])

    async def keep_alive(self, lease: int) -> bool:
        """Renew a lease. False if it has expired. Raises StoreUnavailable."""
        answer = await self._client.ask_any("lease/keepalive", {"ID": lease})
        return int(answer["result"].get("TTL", 0)) > 0

    async def revoke(self, lease: int) -> None:
        """End a lease: the keys that are bound to it go. Raises StoreUnavailable."""
        try:
            await self._read("lease/revoke", {"ID": lease})
        except EtcdRefused as error:
            if error.status != NOT_FOUND:
                raise

    async def lease_seconds_left(self, key: str) -> LeaseLeft | None:
        """By etcd's clock, in whole seconds. Raises StoreUnavailable."""
        row = await self._row(key)
        if row is None or (lease := int(row.get("lease", NO_LEASE))) == NO_LEASE:
            return None
        answer = await self._read("lease/timetolive", {"ID": lease})
        left_seconds = int(answer.get("TTL", 0))
        return LeaseLeft(int(answer["grantedTTL"]), left_seconds) if left_seconds >= 0 else None

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()
        await self._watching.close()

    # -- names and values ------------------------------------------------------------------------------------

    def _name(self, key: str) -> str:
        return encoded(self._prefix + key.encode())

    def _key_in(self, row: Json) -> str:
        return b64decode(row["key"]).removeprefix(self._prefix).decode()

    def _range(self, first: bytes) -> Json:
        """The keys of this cluster from `first` on."""
        end = self._prefix[:-1] + bytes([self._prefix[-1] + 1])
        return {"key": encoded(first), "range_end": encoded(end)}

    def _change(self, event: Json) -> KeyChange:
        row = event["kv"]
        value = None if event.get("type") == "DELETE" else versioned(row).value
        return KeyChange(self._key_in(row), value, int(row["mod_revision"]))


def encoded(content: bytes) -> str:
    """Bytes, as JSON has them."""
    return b64encode(content).decode()


def versioned(row: Json) -> Versioned:
    """The value in a row of etcd's."""
    return Versioned(b64decode(row.get("value", "")), int(row["mod_revision"]))


def revision_of(answer: Json) -> int:
    """etcd's revision when it answered."""
    return int(answer["header"]["revision"])

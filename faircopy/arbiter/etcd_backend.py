"""The arbiter in etcd, for brokers on several machines.

A key of the store is a key of etcd behind a prefix, which is the cluster's own. Versions are etcd's revisions
of modification. Use etcd 3.5.28 or newer: earlier ones had faults with leases and lost updates.

The client is our own. Of those that are published, one says "refused" of a write that was carried out, and
the others know one address only, or hang with a member that is stopped.
"""

from __future__ import annotations

import logging
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from math import ceil

from faircopy.arbiter.backend import (
    NO_LEASE,
    Attempt,
    ChangesForgotten,
    KeyChange,
    LeaseLeft,
    StoreRefused,
    StoreSnapshot,
    StoreUnavailable,
    Unanswered,
)
from faircopy.arbiter.etcd_access import EtcdAccess, EtcdRefused
from faircopy.arbiter.etcd_client import UNKNOWN, EtcdClient, Json
from faircopy.errors import FaircopyError
from faircopy.storage.versioned_map import Versioned

log = logging.getLogger(__name__)

PAGE_KEYS = 5_000
OK, NOT_FOUND = 200, 404
EXHAUSTED = 8
"""gRPC's code if etcd has no space left, or too many requests."""
NEVER = 0  # etcd's revision of a key that has no value, for ABSENT


class EtcdBackend:
    """One process's way to etcd. `prefix` is that of the cluster's keys."""

    def __init__(self, addresses: Sequence[str], prefix: str, access: EtcdAccess | None = None) -> None:
        self._access = access or EtcdAccess()
        self._client = EtcdClient(addresses, self._access)
        self._watching = EtcdClient(addresses, self._access)
        self._prefix = prefix.encode()
        self._could_write = False
        self._logged = ""

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
        """The answer of the first member that answers. Raises as `_once` does."""
        return await self._told(self._client.ask_any(path, body))

    async def _once(self, path: str, body: Json) -> Json:
        """The answer of one member. Raises StoreUnavailable, StoreRefused; EtcdRefused if only the request is
        refused.
        """
        return await self._told(self._client.ask(path, body))

    async def _told(self, asked: Awaitable[Json]) -> Json:
        try:
            return await asked
        except Unanswered as error:
            raise StoreUnavailable(str(error)) from error
        except (EtcdRefused, StoreRefused) as error:
            raise self._refused(error) from error

    async def changes(self, revision: int) -> AsyncIterator[Sequence[KeyChange]]:
        """All changes after a revision, in order. Raises ChangesForgotten, StoreUnavailable."""
        request = self._range(self._prefix) | {"start_revision": revision + 1}
        try:
            async with aclosing(self._watching.watch(request)) as answers:  # type: ignore[type-var]
                async for answer in answers:
                    if "compact_revision" in answer:
                        raise ChangesForgotten(f"etcd has compacted revision {revision}")
                    if answer.get("canceled"):
                        raise EtcdRefused(OK, UNKNOWN, f"the watch ends: {answer.get('cancel_reason')}")
                    changes = [self._change(event) for event in answer.get("events", ())]
                    if changes:
                        yield changes
        except (EtcdRefused, StoreRefused) as error:
            raise self._unavailable(error) from error

    # -- writing ---------------------------------------------------------------------------------------------

    async def attempt(self, attempt: Attempt) -> int | None:
        """Write. Raises Unanswered, and StoreUnavailable, StoreRefused if nothing was written."""
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
        except (EtcdRefused, StoreRefused) as error:
            if is_not_found(error):  # the lease
                return None
            raise self._refused(error) from error
        self._could_write, self._logged = True, ""  # whoever may not is refused before versions are compared
        return revision_of(answer) if answer.get("succeeded") else None

    def _operation(self, attempt: Attempt, key: str, value: bytes | None) -> Json:
        if value is None:
            return {"request_delete_range": {"key": self._name(key)}}
        lease = attempt.lease if key in attempt.bound else NO_LEASE
        return {"request_put": {"key": self._name(key), "value": encoded(value), "lease": lease}}

    # -- leases ----------------------------------------------------------------------------------------------

    async def grant(self, seconds: float) -> int:
        """A new lease. Raises StoreUnavailable."""
        return int((await self._once("lease/grant", {"TTL": ceil(seconds)}))["ID"])

    async def keep_alive(self, lease: int) -> bool:
        """Renew a lease. False if it has expired. Raises StoreUnavailable."""
        try:
            answer = await self._client.ask_any("lease/keepalive", {"ID": lease})
        except (EtcdRefused, StoreRefused) as error:
            raise self._unavailable(error) from error
        return int(answer["result"].get("TTL", 0)) > 0

    async def revoke(self, lease: int) -> None:
        """End a lease: the keys that are bound to it go. Raises StoreUnavailable."""
        try:
            await self._once("lease/revoke", {"ID": lease})
        except (EtcdRefused, StoreRefused) as error:
            if not is_not_found(error):
                raise self._unavailable(error) from error

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

    # -- refusals --------------------------------------------------------------------------------------------

    def _refused(self, error: EtcdRefused | StoreRefused) -> FaircopyError:
        """What to raise for a refusal, after which nothing was written."""
        if isinstance(error, EtcdRefused) and error.code == EXHAUSTED:
            return StoreUnavailable(str(error))
        if (why := self._why(error)) is None:
            return error
        return self._unavailable(error) if self._could_write else StoreRefused(why)

    def _unavailable(self, error: EtcdRefused | StoreRefused) -> StoreUnavailable:
        """What to raise if a session is to try again. Why etcd refuses this client is logged once."""
        why = self._why(error) or ""
        if why and why != self._logged:
            self._logged = why
            log.error("the arbiter refuses this broker, which tries again: %s", why)
        return StoreUnavailable(why or str(error))

    def _why(self, error: EtcdRefused | StoreRefused) -> str | None:
        """Why this client is refused; None if it is only the request."""
        if isinstance(error, StoreRefused):
            return str(error)
        return self._access.why_refused(error.message, self._prefix.decode())

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


def is_not_found(error: FaircopyError) -> bool:
    """Whether etcd refuses since there is no such lease (any more)."""
    return isinstance(error, EtcdRefused) and error.status == NOT_FOUND


def encoded(content: bytes) -> str:
    """Bytes, as JSON has them."""
    return b64encode(content).decode()


def versioned(row: Json) -> Versioned:
    """The value in a row of etcd's."""
    return Versioned(b64decode(row.get("value", "")), int(row["mod_revision"]))


def revision_of(answer: Json) -> int:
    """etcd's revision when it answered."""
    return int(answer["header"]["revision"])

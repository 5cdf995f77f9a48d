"""What a backend of the arbiter does: one attempt at a time, whose outcome may stay unknown.

`arbiter/session.py` makes of it what brokers use (`storage/versioned_map.py`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from faircopy.errors import FaircopyError
from faircopy.storage.versioned_map import Versioned

NO_LEASE = 0


class Unanswered(FaircopyError):
    """A write was sent and not answered. It may have landed, may land later, or never."""


class StoreUnavailable(FaircopyError):
    """The arbiter does not answer. Nothing was written."""


class StoreRefused(FaircopyError):
    """The arbiter does not let this client in, or not at its keys, and won't unless somebody changes
    that. Nothing was written.
    """


class StoreSnapshot(NamedTuple):
    """All keys, as they were at a revision."""

    revision: int
    entries: Mapping[str, Versioned]


class KeyChange(NamedTuple):
    """A key has changed at this revision; `value` is None if it was deleted."""

    key: str
    value: bytes | None
    revision: int


class LeaseLeft(NamedTuple):
    """How long a lease was granted for, and how long it has left unless it is renewed. Both are infinite if
    no clock ends it.
    """

    granted_seconds: float
    left_seconds: float


@dataclass(frozen=True)
class Attempt:
    """A write: all `changes` (None deletes) if each key in `expected` has its version. Keys in `bound` vanish
    with the lease.
    """

    expected: Mapping[str, int]
    changes: Mapping[str, bytes | None]
    bound: frozenset[str] = field(default_factory=frozenset)
    lease: int = NO_LEASE


class Backend(Protocol):
    """A backend. Revisions count the writes of all keys, and a key's version is the revision of its last
    write. Every method but `attempt` may be repeated, and raises StoreUnavailable.

    If the store refuses a client before that one has written anything, StoreRefused is raised by all methods
    but `changes`, `keep_alive` and `revoke`. Whoever could write once may again: StoreUnavailable is raised.
    """

    async def snapshot(self) -> StoreSnapshot:
        """All keys, at a revision that is not older than the call."""

    def changes(self, revision: int) -> AsyncIterator[Sequence[KeyChange]]:
        """All changes after a revision, in order, whenever there are some; the changes of one revision come
        together. Raises ChangesForgotten.
        """

    async def read(self, key: str) -> Versioned | None:
        """A key, not older than the call."""

    async def attempt(self, attempt: Attempt) -> int | None:
        """Try to write. Returns the revision, or None if a version is another one. Raises Unanswered, and
        StoreUnavailable only if nothing was sent.
        """

    async def grant(self, seconds: float) -> int:
        """A new lease."""

    async def keep_alive(self, lease: int) -> bool:
        """Renew a lease. False if it has expired."""

    async def revoke(self, lease: int) -> None:
        """End a lease: the keys that are bound to it go."""

    async def lease_seconds_left(self, key: str) -> LeaseLeft | None:
        """What is left of the lease that a key is bound to. None if there is no key, or no lease."""

    async def close(self) -> None:
        """Let go of what the backend holds."""


class ChangesForgotten(FaircopyError):
    """The backend has forgotten changes that were asked for: a snapshot says what is there now."""

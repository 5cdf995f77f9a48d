"""A broker's copy of the cluster store. It may be old; it never goes back, and it is as the store was at some
revision, never half of a write.

Pure.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

from faircopy.cluster.backend import KeyChange, StoreSnapshot
from faircopy.cluster.store import Versioned

Changed = Callable[[str, Versioned | None], None]
"""Called with a key and what it has now; None if it is deleted."""


class StoreCopy:
    """The keys and values as of `revision`."""

    def __init__(self) -> None:
        self.revision = 0
        self._entries: dict[str, Versioned] = {}
        self._keys: list[str] = []
        self._watchers: list[tuple[str, Changed]] = []

    def get(self, key: str) -> Versioned | None:
        """The value of a key, or None."""
        return self._entries.get(key)

    def scan(self, prefix: str) -> dict[str, Versioned]:
        """All keys with this prefix, in order."""
        start = bisect_left(self._keys, prefix)
        there = takewhile(lambda key: key.startswith(prefix), self._keys[start:])
        return {key: self._entries[key] for key in there}

    def watch(self, prefix: str, changed: Changed) -> Callable[[], None]:
        """Call `changed` for each key with this prefix that changes from now on. Returns what ends that."""
        watcher = (prefix, changed)
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def take(self, snapshot: StoreSnapshot) -> None:
        """Be as the snapshot is, unless that is older. Watchers are told of what has changed since."""
        if snapshot.revision < self.revision:
            return
        gone = [key for key in self._keys if key not in snapshot.entries]
        changed = [key for key, value in snapshot.entries.items() if self._entries.get(key) != value]
        self.revision = snapshot.revision
        self._entries = dict(snapshot.entries)
        self._keys = sorted(self._entries)
        self._tell([*gone, *changed])

    def apply(self, events: Sequence[KeyChange]) -> None:
        """Follow the changes of whole revisions, in order. What is known already is skipped."""
        new = [event for event in events if event.revision > self.revision]
        for event in new:
            self._change(event)
        if new:
            self.revision = new[-1].revision
            self._tell(dict.fromkeys(event.key for event in new))

    def _change(self, event: KeyChange) -> None:
        is_there = event.key in self._entries
        if event.value is not None:
            self._entries[event.key] = Versioned(event.value, event.revision)
            if not is_there:
                insort(self._keys, event.key)
        elif is_there:
            del self._entries[event.key]
            del self._keys[bisect_left(self._keys, event.key)]

    def _tell(self, keys: Iterable[str]) -> None:
        for key in keys:
            for prefix, changed in list(self._watchers):
                if key.startswith(prefix):
                    changed(key, self._entries.get(key))

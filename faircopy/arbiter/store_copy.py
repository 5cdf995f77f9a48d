"""A broker's copy of the arbiter's store. It may be old; it never goes back, and it is as the store was at
some revision, never half of a write.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from faircopy.arbiter.backend import KeyChange, StoreSnapshot
from faircopy.storage.versioned_map import SortedEntries, Versioned

Changed = Callable[[str, Versioned | None], None]
"""Called with a key and what it has now; None if it is deleted."""


class StoreCopy:
    """The keys and values as of `revision`."""

    def __init__(self) -> None:
        self.revision = 0
        self._entries = SortedEntries()
        self._watchers: list[tuple[str, Changed]] = []

    def get(self, key: str) -> Versioned | None:
        """The value of a key, or None."""
        return self._entries.get(key)

    def scan(self, prefix: str) -> dict[str, Versioned]:
        """All keys with this prefix, in order."""
        return self._entries.scan(prefix)

    def watch(self, prefix: str, changed: Changed) -> Callable[[], None]:
        """Call `changed` for each key with this prefix that changes from now on. Returns what ends that."""
        watcher = (prefix, changed)
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def take(self, snapshot: StoreSnapshot) -> None:
        """Be as the snapshot is, unless that is older. Watchers are told of what has changed since."""
        if snapshot.revision < self.revision:
            return
        before, self._entries = self._entries, SortedEntries()
        self.revision = snapshot.revision
        for key in sorted(snapshot.entries):
            value, version = snapshot.entries[key]
            self._entries.apply({key: value}, version)
        gone = [key for key in before if self._entries.get(key) is None]
        changed = [key for key, value in snapshot.entries.items() if before.get(key) != value]
        self._tell([*gone, *changed])

    def apply(self, events: Sequence[KeyChange]) -> None:
        """Follow the changes of whole revisions, in order. What is known already is skipped."""
        new = [event for event in events if event.revision > self.revision]
        for event in new:
            self._entries.apply({event.key: event.value}, event.revision)
        if new:
            self.revision = new[-1].revision
            self._tell(dict.fromkeys(event.key for event in new))

    def _tell(self, keys: Iterable[str]) -> None:
        for key in keys:
            for prefix, changed in list(self._watchers):
                if key.startswith(prefix):
                    changed(key, self._entries.get(key))

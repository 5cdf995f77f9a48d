"""The state store with LMDB's promise: a transaction is durable as a whole, or not there at all."""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from faircopy.storage.failures import WriteFailure
from faircopy.storage.state_store import TABLES, Change, Delete, DeletePrefix, DeleteRange, Put, StateStore
from tests.simulation.lying_disk import Crash
from tests.simulation.threads import SimulatedThreads


class Table:
    """Bytes to bytes, sorted."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.values: dict[bytes, bytes] = {}

    def put(self, key: bytes, value: bytes) -> None:
        if key not in self.values:
            insort(self.keys, key)
        self.values[key] = value

    def delete(self, key: bytes) -> None:
        if self.values.pop(key, None) is not None:
            del self.keys[bisect_left(self.keys, key)]

    def delete_while(self, first: bytes, wanted: Callable[[bytes], bool]) -> None:
        at = end = bisect_left(self.keys, first)
        while end < len(self.keys) and wanted(self.keys[end]):
            del self.values[self.keys[end]]
            end += 1
        del self.keys[at:end]


class Contents:
    """The durable contents: they survive the broker."""

    def __init__(self) -> None:
        self.tables = {name: Table() for name in TABLES}


class SimulatedStore(StateStore):
    """Replaces `StateStore`. `before_write` is called before each write, and may raise."""

    def __init__(
        self,
        contents: Contents,
        loop: asyncio.AbstractEventLoop,
        chosen: random.Random,
        before_write: Callable[[], None],
        *,
        is_slow: bool = False,
    ) -> None:
        self._contents = contents
        self._waiting = deque()
        self._before_write = before_write
        self._chosen = chosen
        self._writer = SimulatedThreads(loop, 1, chosen, is_slow=is_slow)

    def get(self, table: str, key: bytes) -> bytes | None:
        return self._contents.tables[table].values.get(key)

    def scan(self, table: str, prefix: bytes, first: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        found = self._contents.tables[table]
        # Like a read transaction: it does not see later writes.
        at = bisect_left(found.keys, first if first is not None else prefix)
        rows = []
        while at < len(found.keys) and found.keys[at].startswith(prefix):
            rows.append((found.keys[at], found.values[found.keys[at]]))
            at += 1
        return iter(rows)

    def floor(self, table: str, prefix: bytes, key: bytes) -> tuple[bytes, bytes] | None:
        found = self._contents.tables[table]
        at = bisect_right(found.keys, key) - 1
        if at < 0 or not found.keys[at].startswith(prefix):
            return None
        return found.keys[at], found.values[found.keys[at]]

    def _write(self, decisions: Sequence[Callable[[], Iterable[Change]]]) -> None:
        changes = [change for decide in decisions for change in decide()]
        try:
            self._before_write()
        except Crash:
            # The machine stops during the commit, which may or may not have happened.
            if self._chosen.random() < 0.5:
                self._apply_all(changes)
            raise
        except OSError as error:
            raise WriteFailure(f"writing to the state store: {error}") from error
        self._apply_all(changes)

    def _apply_all(self, changes: list[Change]) -> None:
        for change in changes:
            table = self._contents.tables[change.table]
            match change:
                case Put(_, key, value):
                    table.put(key, value)
                case Delete(_, key):
                    table.delete(key)
                case DeletePrefix(_, prefix):
                    table.delete_while(prefix, partial(begins_with, prefix))
                case DeleteRange(_, first, end):
                    table.delete_while(first, partial(is_below, end))

    def close(self) -> None:
        pass


def begins_with(prefix: bytes, key: bytes) -> bool:
    return key.startswith(prefix)


def is_below(end: bytes, key: bytes) -> bool:
    return key < end

"""Histories that are written as they happen, so that a kill -9 takes nothing of them.

A transaction is written anew whenever more is known of it; of the lines of one (they share process and begin) the last
counts. Until its commit is asked for it has certainly no effect, and its line says so; from then until the answer it is
unknown. So whenever its process is killed, what its last line says is true.
"""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.checker.history import Offset, Operation, Read, Result, Send, Transaction, read_history, write_history
from tests.soak.stage import now


class Recorder:
    """Writes one file, from any thread. `ended` counts how transactions of a group and plain sends ended."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("x")
        self._lock = threading.Lock()
        self.ended: Counter[str] = Counter()

    def write(self, operation: Operation) -> None:
        with self._lock:
            write_history([operation], self._file)
            self._file.flush()

    def close(self) -> None:
        self._file.close()

    def count(self, transaction: Transaction) -> None:
        with self._lock:
            self.ended["plain" if transaction.group is None else transaction.result.value] += 1


class Attempt:
    """A transaction, a plain send or a commit of offsets while it goes on; it is recorded before anything is done."""

    def __init__(self, recorder: Recorder, process: str, group: str | None, sends: Iterable[Send] = ()) -> None:
        self._recorder = recorder
        self.transaction = Transaction(process, group, now(), None, now(), Result.FAILED, list(sends))
        recorder.write(self.transaction)

    def _note(self, transaction: Transaction) -> None:
        self.transaction = replace(transaction, ended=now())
        self._recorder.write(self.transaction)

    def ask_commit(self, reads: Iterable[Read] = (), offsets: Iterable[Offset] = ()) -> None:
        """From now on it may have an effect."""
        self._note(
            replace(
                self.transaction,
                commit_asked=now(),
                result=Result.UNKNOWN,
                reads=list(reads),
                offsets=list(offsets),
            )
        )

    def end(self, result: Result, sends: list[Send] | None = None) -> None:
        """It is known how it ended; `sends` with the offsets that the broker told."""
        self._note(replace(self.transaction, result=result, sends=sends or self.transaction.sends))
        self._recorder.count(self.transaction)


def read_recorded(paths: Iterable[Path]) -> list[Operation]:
    """All operations of these files, each file's in its order, a transaction where it began."""
    operations: list[Operation] = []
    numbers: dict[tuple[str, float], int] = {}
    for path in paths:
        # What follows the last newline was being written when its process was killed.
        for operation in read_history(io.StringIO(path.read_text().rpartition("\n")[0])):
            key = (operation.process, operation.begun) if isinstance(operation, Transaction) else None
            if key is None:
                operations.append(operation)
            elif key in numbers:
                operations[numbers[key]] = operation
            else:
                numbers[key] = len(operations)
                operations.append(operation)
    return operations

"""Histories that are written as they happen, so that a kill -9 loses nothing of them.

A transaction is written again whenever more is known about it. Of all lines of one transaction (they share
the process and the time when it began), the last counts. Until its commit is requested, the transaction
certainly has no effect, and its line says so. From then until the answer, its outcome is unknown. So whenever
its process is killed, its last line is true.
"""

from __future__ import annotations

import io
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.checker.history import (
    Offset,
    Operation,
    Read,
    Result,
    Send,
    Transaction,
    read_history,
    write_history,
)
from tests.soak.stage import now


class Recorder:
    """Writes one file, from any thread; `ended` counts outcomes of group transactions, and plain sends."""

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
    """A transaction, plain send or commit of offsets while it goes on. It is recorded before it acts."""

    def __init__(
        self, recorder: Recorder, process: str, group: str | None, sends: Iterable[Send] = ()
    ) -> None:
        self._recorder = recorder
        self.transaction = Transaction(process, group, now(), None, now(), Result.FAILED, list(sends))
        recorder.write(self.transaction)

    def _note(self, transaction: Transaction) -> None:
        self.transaction = replace(transaction, ended=now())
        self._recorder.write(self.transaction)

    def ask_commit(self, reads: Iterable[Read] = (), offsets: Iterable[Offset] = ()) -> None:
        """Record that from now on it may have an effect."""
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
        """Record how it ended; `sends` have the offsets that the broker returned."""
        self._note(replace(self.transaction, result=result, sends=sends or self.transaction.sends))
        self._recorder.count(self.transaction)


def read_recorded(paths: Iterable[Path]) -> list[Operation]:
    """All operations in these files, in the order of each file; a transaction counts where it began."""
    operations: list[Operation] = []
    numbers: dict[tuple[str, float], int] = {}
    for path in paths:
        # What follows the last newline is a line that its process was killed in.
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

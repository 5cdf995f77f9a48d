"""What the clients of a simulation did and saw, as it becomes a history."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from faircopy.wire.error_codes import ErrorCode
from tests.checker.history import (
    Committed,
    End,
    Final,
    KeyCommitted,
    Loss,
    Offset,
    Operation,
    Poll,
    Result,
    Send,
    Snapshot,
    Transaction,
)
from tests.simulation.producer import Refused


@dataclass
class Attempt:
    """One transaction or plain send under way. If it never finishes, its result stays unknown. The broker may
    forget a transactional id that has been idle for `forgotten_after` seconds.
    """

    process: str
    group: str | None
    begun: float
    commit_asked: float | None = None
    ended: float | None = None
    result: Result = Result.UNKNOWN
    sends: list[Send] = field(default_factory=list)
    offsets: list[Offset] = field(default_factory=list)
    key: int | None = None
    given_up: float | None = None
    forgotten_after: float = math.inf

    def finish(self, result: Result, now: float) -> None:
        self.result, self.ended = result, now

    def refused(self, error: Refused, now: float) -> None:
        """A request of it was refused: that may say that the broker has given it up. Not if its timeout or
        another instance had ended it, and its transactional id has been idle since, until it was forgotten.
        """
        may_be_forgotten = now - self.begun > self.forgotten_after
        if error.gives_up and not (error.code is ErrorCode.INVALID_TXN_STATE and may_be_forgotten):
            self.given_up = now

    def operation(self, now: float) -> Transaction:
        """Its operation in a history. An unfinished one lasts until `now`."""
        return Transaction(
            self.process,
            self.group,
            self.begun,
            self.commit_asked,
            self.ended if self.ended is not None else now,
            self.result,
            list(self.sends),
            offsets=list(self.offsets),
            key=self.key,
            given_up=self.given_up,
        )


def with_offsets(sends: list[Send], base_offset: int) -> list[Send]:
    """The messages of a batch with their offsets. For a batch written long ago, the broker returns none."""
    if base_offset < 0:
        return sends
    return [send._replace(offset=base_offset + number) for number, send in enumerate(sends)]


class Record:
    """All that the clients of one run did and saw."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.polls: list[Poll] = []
        self.told: list[End | Committed | KeyCommitted] = []
        self.finals: list[Final] = []
        self.snapshots: list[Snapshot] = []

    def history(self, now: float, losses: Iterable[float]) -> list[Operation]:
        """All operations, in order of their start. `losses`: when what was not synced was lost."""
        lost = [Loss(time) for time in losses]
        transactions = [attempt.operation(now) for attempt in self.attempts]
        return [*transactions, *lost, *self.polls, *self.told, *self.snapshots, *self.finals]

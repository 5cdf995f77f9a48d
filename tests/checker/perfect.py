"""Histories of a broker that makes no mistakes, for tests of the checker."""

from __future__ import annotations

import random

from tests.checker.history import (
    Committed,
    End,
    Final,
    KeyCommitted,
    Loss,
    Offset,
    Operation,
    Poll,
    Read,
    Result,
    Send,
    Snapshot,
    Transaction,
)

PARTITIONS = ["a-0", "a-1", "b-0"]
GROUPS = ["red", "green"]
PRODUCERS = 4
CONSUMERS = 2
POLL_CHANCE = 0.3
SNAPSHOT_CHANCE = 0.05
ABORT_CHANCE = 0.1
UNKNOWN_CHANCE = 0.05
PLAIN_CHANCE = 0.2
KEY_CHANCE = 0.3


class PerfectBroker:
    """Carries out one operation after another. The same seed gives the same history."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._logs: dict[str, list[int]] = {partition: [] for partition in PARTITIONS}
        self._positions = {
            (consumer, partition): 0 for consumer in range(CONSUMERS) for partition in PARTITIONS
        }
        self._assignments = [0] * CONSUMERS
        self._plain_ends = dict.fromkeys(PARTITIONS, (0, 0))  # of the last plain send: its end, its messages
        self._values = 0
        self._committed = -1
        self._key = 0
        self._now = 0.0
        self.operations: list[Operation] = []

    def run(self, transactions: int, snapshot_chance: float = SNAPSHOT_CHANCE) -> list[Operation]:
        """A whole history of `transactions` transactions. Each snapshot holds everything written so far, but
        if it may divide plain sends, the last messages of one may be missing.
        """
        for _ in range(transactions):
            self._transaction()
            if self._random.random() < POLL_CHANCE:
                self._poll()
            if self._random.random() < snapshot_chance:
                self._snapshot()
            if self._random.random() < POLL_CHANCE:
                self._ask()
        self._snapshot()
        self.operations += [
            Final(partition, 0, len(log), self._reads(partition, 0)) for partition, log in self._logs.items()
        ]
        return self.operations

    def _tick(self) -> float:
        self._now += self._random.random()
        return self._now

    def _transaction(self) -> None:
        is_plain = self._random.random() < PLAIN_CHANCE
        process = f"producer-{self._random.randrange(PRODUCERS)}"
        group = None if is_plain else self._random.choice(GROUPS)
        begun, asked = self._tick(), self._tick()
        reads = self._latest() if not is_plain and self._random.random() < POLL_CHANCE else []
        messages = self._random.randint(1, 4)
        partitions = (
            [self._random.choice(PARTITIONS)] * messages
            if is_plain
            else [self._random.choice(PARTITIONS) for _ in range(messages)]
        )
        values = [self._next_value() for _ in partitions]
        result = self._result()
        # Some transactions with an unknown result took effect.
        is_applied = result is Result.OK or (result is Result.UNKNOWN and self._random.random() < 0.5)
        if is_applied:
            for partition, value in zip(partitions, values, strict=True):
                self._logs[partition].append(value)
        offsets = (
            [] if is_plain or self._random.random() < 0.5 else [Offset("readers", "a-0", self._next_value())]
        )
        if offsets and is_applied:
            self._committed = offsets[0].offset
        sends = [Send(*pair) for pair in zip(partitions, values, strict=True)]
        if is_plain and result is Result.OK:
            first = len(self._logs[partitions[0]]) - messages
            sends = [send._replace(offset=offset) for offset, send in enumerate(sends, first)]
        if is_plain and is_applied:
            self._plain_ends[partitions[0]] = len(self._logs[partitions[0]]), messages
        is_given_up = group is not None and result is Result.FAILED and self._random.random() < 0.5
        if is_given_up:
            self.operations.append(Loss(self._tick()))
        key = None if is_plain or self._random.random() >= KEY_CHANCE else self._next_key(is_applied)
        was_asked = result is not Result.FAILED or self._random.random() < 0.5
        self.operations.append(
            Transaction(
                process,
                group,
                begun,
                asked if was_asked else None,
                self._tick(),
                result,
                sends,
                reads,
                offsets,
                key,
                self._tick() if is_given_up else None,
            )
        )
        if key is not None and is_applied:
            self.operations.append(KeyCommitted(str(group), key, self._tick()))

    def _next_key(self, is_applied: bool) -> int:
        """The key that a transaction writes for: that of the last one, unless it was committed."""
        key = self._key
        self._key += is_applied
        return key

    def _result(self) -> Result:
        draw = self._random.random()
        if draw < ABORT_CHANCE:
            return Result.FAILED
        return Result.UNKNOWN if draw < ABORT_CHANCE + UNKNOWN_CHANCE else Result.OK

    def _next_value(self) -> int:
        self._values += 1
        return self._values

    def _reads(self, partition: str, first: int, most: int | None = None) -> list[Read]:
        end = None if most is None else first + most
        return [
            Read(partition, offset, value)
            for offset, value in enumerate(self._logs[partition][first:end], first)
        ]

    def _latest(self) -> list[Read]:
        partition = self._random.choice(PARTITIONS)
        return self._reads(partition, max(len(self._logs[partition]) - 2, 0))

    def _poll(self) -> None:
        consumer = self._random.randrange(CONSUMERS)
        if self._random.random() < 0.1:  # a rebalance: it starts again somewhere
            self._assignments[consumer] += 1
            for partition, log in self._logs.items():
                self._positions[consumer, partition] = self._random.randint(0, len(log))
        reads: list[Read] = []
        for partition in self._random.sample(PARTITIONS, 2):
            first = self._positions[consumer, partition]
            found = self._reads(partition, first, self._random.randint(1, 20))
            self._positions[consumer, partition] = first + len(found)
            reads += found
        self.operations.append(Poll(f"consumer-{consumer}", self._assignments[consumer], self._tick(), reads))

    def _ask(self) -> None:
        partition = self._random.choice(PARTITIONS)
        self.operations.append(End(partition, self._tick(), len(self._logs[partition])))
        self.operations.append(Committed("readers", "a-0", self._tick(), self._tick(), self._committed))

    def _snapshot(self) -> None:
        divides_plain = self._random.random() < 0.5
        reads: list[Read] = []
        for partition in ("a-0", "a-1"):
            end, messages = self._plain_ends[partition]
            has_plain_end = divides_plain and end == len(self._logs[partition])
            left_out = self._random.randint(0, messages) if has_plain_end else 0
            reads += self._reads(partition, 0, len(self._logs[partition]) - left_out)
        self.operations.append(Snapshot("a", self._tick(), reads, divides_plain))

"""The checker finds every anomaly of a history, and explains each in a line.

The anomalies are those of Jepsen's Kafka tests (Kyle Kingsbury, "Redpanda 21.10.1", 2022). Rules are stricter
where faircopy promises more: no gaps (P3), no interleaved transactions (G0), one order for each group (P5),
whole snapshots, open transactions that outlive the broker (P9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from tests.checker.anomalies import (
    answers,
    consumers,
    cycles,
    keys,
    open_transactions,
    places,
    tables,
    visibility,
)
from tests.checker.facts import Facts
from tests.checker.history import Operation


class Anomaly(Enum):
    """The anomalies that must never be found."""

    INCONSISTENT_OFFSETS = "inconsistent offsets"
    DUPLICATE = "duplicate"
    PHANTOM = "phantom"
    ABORTED_READ = "aborted read (G1a)"
    UNCOMMITTED_READ = "uncommitted read"
    TORN_TRANSACTION = "torn transaction"
    LOST_WRITE = "lost write"
    UNSEEN = "unseen"
    VANISHED = "vanished"
    POLL_SKIP = "poll skip"
    NON_MONOTONIC_POLL = "non-monotonic poll"
    WRITE_CYCLE = "write cycle (G0)"
    READ_CYCLE = "write and read cycle (G1c)"
    GROUP_ORDER = "group order"
    SEND_ORDER = "send order"
    OFFSET_GAP = "offset gap"
    SNAPSHOT_TEAR = "snapshot tear"
    SNAPSHOT_GAP = "snapshot gap"
    END_BEFORE_COMMIT = "end before a commit"
    OFFSET_LOST = "committed offset lost"
    OFFSET_PHANTOM = "committed offset that nobody committed"
    KEY_TWICE = "key committed twice"
    KEY_LOST = "committed key lost"
    GIVEN_UP = "given up without a loss"


class Verdict(Enum):
    """`UNKNOWN`: nothing was found, but the history ends before everything was read."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Finding(NamedTuple):
    """One anomaly, with the values, transactions and offsets that show it."""

    anomaly: Anomaly
    explanation: str

    def __str__(self) -> str:
        return f"{self.anomaly.value}: {self.explanation}"


class Checked(NamedTuple):
    """The result of a check."""

    verdict: Verdict
    findings: list[Finding]


def check(operations: Iterable[Operation]) -> Checked:
    """All findings of a history. Takes time and memory linear in it."""
    facts = Facts(operations)
    findings = [Finding(anomaly, explanation) for anomaly, find in CHECKS for explanation in find(facts)]
    if findings:
        return Checked(Verdict.INVALID, findings)
    return Checked(Verdict.VALID if facts.is_complete else Verdict.UNKNOWN, [])


CHECKS: list[tuple[Anomaly, Callable[[Facts], Iterator[str]]]] = [
    (Anomaly.INCONSISTENT_OFFSETS, places.inconsistent_offsets),
    (Anomaly.DUPLICATE, places.duplicates),
    (Anomaly.PHANTOM, places.phantoms),
    (Anomaly.ABORTED_READ, visibility.aborted_reads),
    (Anomaly.UNCOMMITTED_READ, visibility.uncommitted_reads),
    (Anomaly.TORN_TRANSACTION, visibility.torn_transactions),
    (Anomaly.LOST_WRITE, visibility.lost_writes),
    (Anomaly.UNSEEN, visibility.unseen),
    (Anomaly.VANISHED, visibility.vanished),
    (Anomaly.POLL_SKIP, consumers.poll_skips),
    (Anomaly.NON_MONOTONIC_POLL, consumers.non_monotonic_polls),
    (Anomaly.WRITE_CYCLE, cycles.write_cycles),
    (Anomaly.READ_CYCLE, cycles.read_cycles),
    (Anomaly.GROUP_ORDER, cycles.group_orders),
    (Anomaly.SEND_ORDER, places.send_orders),
    (Anomaly.OFFSET_GAP, places.offset_gaps),
    (Anomaly.SNAPSHOT_TEAR, tables.snapshot_tears),
    (Anomaly.SNAPSHOT_GAP, tables.snapshot_gaps),
    (Anomaly.END_BEFORE_COMMIT, answers.ends_before_commits),
    (Anomaly.OFFSET_LOST, answers.lost_offsets),
    (Anomaly.OFFSET_PHANTOM, answers.phantom_offsets),
    (Anomaly.KEY_TWICE, keys.keys_twice),
    (Anomaly.KEY_LOST, keys.lost_keys),
    (Anomaly.GIVEN_UP, open_transactions.given_up),
]

"""What became of transactions, by what their client was told and what is in the log.

Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Told(StrEnum):
    """What the client says of a transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The client ended with a fatal error, or was fenced, and can't say."""


@dataclass
class Attempt:
    """A transaction of an application: the messages that it gave to its client, and how that ended."""

    messages: list[str] = field(default_factory=list)
    told: Told = Told.UNKNOWN


@dataclass(frozen=True)
class Verdict:
    """How many transactions there were, and how many of them broke a promise.

    `torn`: some of its messages are in the log, and others are not. `lost`: its client was told that it is
    committed, and nothing of it is there. `undead`: its client was told that it is aborted, and all of it is
    there. `repeated`: a message is there twice.
    """

    committed: int
    aborted: int
    unknown: int
    torn: int
    lost: int
    undead: int
    repeated: int

    @property
    def transactions(self) -> int:
        """All of them."""
        return self.committed + self.aborted + self.unknown

    @property
    def broken(self) -> int:
        """How many broke a promise; one with two faults counts twice."""
        return self.torn + self.lost + self.undead + self.repeated


def judge(attempts: Iterable[Attempt], log: Iterable[str]) -> Verdict:
    """Compare what clients were told with the messages that a reader of committed data finds."""
    found = Counter(log)
    counts: Counter[str] = Counter()
    for attempt in attempts:
        counts[attempt.told] += 1
        present = sum(1 for message in attempt.messages if found[message])
        if 0 < present < len(attempt.messages):
            counts["torn"] += 1
        elif attempt.told is Told.COMMITTED and attempt.messages and not present:
            counts["lost"] += 1
        elif attempt.told is Told.ABORTED and present:
            counts["undead"] += 1
        counts["repeated"] += any(found[message] > 1 for message in attempt.messages)
    return Verdict(
        counts[Told.COMMITTED], counts[Told.ABORTED], counts[Told.UNKNOWN],
        counts["torn"], counts["lost"], counts["undead"], counts["repeated"],
    )  # fmt: skip

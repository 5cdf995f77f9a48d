"""The verdict finds what is lost, repeated, torn or out of order."""

from __future__ import annotations

import pytest

from tests.arbiter.failover.clients import MESSAGES, TRANSACTIONS, Outcome, Place, Read, Unit
from tests.arbiter.failover.figures import Round, Row, rows_of
from tests.arbiter.failover.verdict import wrong

ACKED, ABORTED, UNKNOWN = Outcome
SENT = [
    *(Unit(TRANSACTIONS, number, number, number + 0.5, ACKED) for number in (1, 2)),
    Unit(TRANSACTIONS, 3, 3, 3.5, ABORTED),
    Unit(TRANSACTIONS, 4, 4, 4.5, UNKNOWN, wanted=False),
    *(Unit(MESSAGES, number, number, number + 0.5, ACKED) for number in (1, 2)),
    Unit(MESSAGES, 3, 3, 3.5, UNKNOWN, wanted=False),
]


def reads(*values: str, epoch: int = 1) -> list[Read]:
    return [Read(offset, value, epoch) for offset, value in enumerate(values)]


def seen() -> dict[Place, list[Read]]:
    """All is well, and what is unknown is not there."""
    return {
        (TRANSACTIONS, 0): reads("1.0", "1.2", "2.0", "2.2"),
        (TRANSACTIONS, 1): reads("1.1", "1.3", "2.1", "2.3"),
        (MESSAGES, 0): reads("1", "2"),
    }


def test_what_is_unknown_is_there_or_not() -> None:
    assert list(wrong(SENT, seen())) == []
    there = seen()
    there[TRANSACTIONS, 0] += [Read(9, "4.0", 1), Read(10, "4.2", 1)]
    there[TRANSACTIONS, 1] += [Read(9, "4.1", 1), Read(10, "4.3", 1)]
    there[MESSAGES, 0] += [Read(9, "3", 1)]
    assert list(wrong(SENT, there)) == []


@pytest.mark.parametrize(
    ("place", "values", "found"),
    [
        ((MESSAGES, 0), ["1"], "2 was acknowledged, and is lost"),
        ((MESSAGES, 0), ["1", "2", "2"], "more than once"),
        ((MESSAGES, 0), ["2", "1"], "1 is there after 2"),
        ((MESSAGES, 0), ["1", "2", "7"], "7 was never sent"),
        ((TRANSACTIONS, 0), ["1.0", "1.2"], "2 was acknowledged, and is lost"),
        ((TRANSACTIONS, 0), ["1.0", "1.2", "2.0"], "2 is not whole"),
        ((TRANSACTIONS, 0), ["1.0", "1.2", "2.0", "2.2", "2.2"], "2 is not whole"),
        ((TRANSACTIONS, 0), ["1.0", "1.2", "2.0", "2.2", "3.0", "3.2"], "3 was aborted"),
        ((TRANSACTIONS, 0), ["1.0", "1.2", "2.0", "2.2", "4.0", "4.2"], "4 is in one partition only"),
        ((TRANSACTIONS, 0), ["2.0", "2.2", "1.0", "1.2"], "1 is there after 2"),
    ],
)
def test_what_is_wrong_is_found(place: Place, values: list[str], found: str) -> None:
    assert found in "\n".join(wrong(SENT, seen() | {place: reads(*values)}))


def test_leader_epochs_and_offsets_never_fall() -> None:
    there = seen()
    there[MESSAGES, 0] = [Read(0, "1", 2), Read(0, "2", 1)]
    assert len(list(wrong(SENT, there))) == 2


def test_a_pause_is_the_longest_time_without_an_ack_around_a_fault() -> None:
    units = [Unit(MESSAGES, number, when, when, ACKED) for number, when in enumerate((1, 2, 6, 7, 17))]
    units.append(Unit(TRANSACTIONS, 1, 3, 4, ABORTED, wanted=False))
    units.append(Unit(TRANSACTIONS, 2, 3, 4, ABORTED))
    assert rows_of([Round("kill", 2.5, 6.5, 1)], units) == [Row("kill", 1, (0, 0), (4, 4), 1, 1, 0)]

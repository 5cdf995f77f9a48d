"""What a history says of a broker that is put back, as the checker reads it."""

from __future__ import annotations

from tests.backup.as_of import as_of
from tests.checker.check import Verdict, check
from tests.checker.history import Final, Read, Result, Send, Transaction

ASKED, MADE = 10.0, 20.0


def test_what_was_under_way_may_be_missing_and_others_have_its_offsets_then() -> None:
    """It began before the backup was made, and was told its offset after that."""
    under_way = Transaction("a", "a", 15.0, 19.0, 25.0, Result.OK, [Send("p", 1, 0)])
    later = Transaction("b", "b", 30.0, 31.0, 32.0, Result.OK, [Send("p", 2, 0)])
    end = Final("p", 0, 1, [Read("p", 0, 2)])
    assert check([*as_of([under_way], ASKED, MADE), later, end]) == (Verdict.VALID, [])


def test_what_was_acknowledged_before_must_be_there() -> None:
    before = Transaction("a", "a", 5.0, 6.0, 7.0, Result.OK, [Send("p", 1, 0)])
    end = Final("p", 0, 0, [])
    assert check([*as_of([before], ASKED, MADE), end]).verdict is Verdict.INVALID

"""What is appended to many journals and not written yet is counted, and not added up again and again."""

from __future__ import annotations

import random
from typing import Any

from faircopy.journal.watermarks import Watermarks
from faircopy.replication.unwritten import Unwritten
from tests.seeds import seed_for

MANY = 1_000


class SomeJournal:
    """A journal that counts how often it is looked at."""

    def __init__(self, number: int) -> None:
        self.identity = number.to_bytes(20, "big")
        self.looked_at = 0
        self._marks = Watermarks(is_synced_first=True)

    @property
    def watermarks(self) -> Watermarks:
        self.looked_at += 1
        return self._marks

    def append(self, size: int) -> None:
        self._marks.appended += size

    def write(self, size: int) -> None:
        self._marks.note_written(min(self._marks.written + size, self._marks.appended))

    @property
    def ahead(self) -> int:
        return self._marks.appended - self._marks.written


def test_it_is_the_sum_over_all_journals() -> None:
    chosen = random.Random(seed_for("unwritten"))
    journals: list[Any] = [SomeJournal(number) for number in range(5)]
    unwritten = Unwritten()
    for _ in range(2_000):
        journal = chosen.choice(journals)
        match chosen.randrange(10):
            case 0:
                unwritten.forget(journal.identity)
                journal.write(journal.ahead)  # nothing more comes of it, until something is appended
            case 1 | 2 | 3 | 4:
                journal.append(chosen.randrange(100))
                journal.write(chosen.choice([0, 1_000]))  # some is written at once
                unwritten.note(journal)
            case _:
                journal.write(chosen.randrange(100))
                unwritten.note_moved(journal.identity)
        assert unwritten.size == sum(each.ahead for each in journals)
        assert len(unwritten) == sum(each.ahead > 0 for each in journals)


def test_only_the_journal_that_has_moved_is_looked_at() -> None:
    journals: list[Any] = [SomeJournal(number) for number in range(MANY)]
    unwritten = Unwritten()
    for each in journals:
        each.append(10)
        unwritten.note(each)
    for each in journals:
        each.write(10)
        unwritten.note_moved(each.identity)
    assert (unwritten.size, len(unwritten)) == (0, 0)
    assert max(each.looked_at for each in journals) == 2

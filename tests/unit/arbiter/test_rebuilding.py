"""A record is made again from a directory, unless another one knows more, or nothing has to be made."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from faircopy.arbiter.backend import Attempt, Unanswered
from faircopy.arbiter.directory_note import Directory, DirectoryNote
from faircopy.arbiter.joining import Applicant, Incarnation, Known, joined
from faircopy.arbiter.rebuilding import EPOCHS_SKIPPED, CannotRebuild, Found, Rebuilt, rebuilt, write
from faircopy.arbiter.record import NOBODY, Grade, SetRecord, decode
from faircopy.arbiter.registration import RECORD, known_from
from tests.arbiter.memory_backend import MemoryBackend, MemoryServer, Troubles
from tests.arbiter.test_session import in_virtual_time

SET_ID = "the set's id"
NOTE = DirectoryNote(SET_ID, is_member=True, broker=1, last=5, tokens=("five",), epoch=12, in_sync={1: 5})
CHOSEN = Found("/data", NOTE, 12)
FIFTH, SIXTH = Incarnation(5, "five"), Incarnation(6, "six")
NOTHING = Known(None, {})
RECORD_THERE = SetRecord(SET_ID, (1,), 1, 5, 12, {1: 5}, frozenset({1}))


def test_a_lost_record_is_made_of_what_the_directory_knows() -> None:
    made = rebuilt(CHOSEN, [], NOTHING, {})
    epoch = 12 + EPOCHS_SKIPPED
    assert made.record == SetRecord(SET_ID, (1,), 1, NOBODY, epoch, {1: 5}, frozenset({1}))
    assert (made.broker, made.life, made.loses) == (1, FIFTH, "")
    directory = Directory(NOTE, is_empty=False, epoch=12, grade=Grade.DRAFTS)
    who = Applicant("orders", 1, "/data", makes_set=False)
    next_life = joined(who, directory, Known(made.record, {1: made.life}))
    assert next_life.in_sync == {1: 6}, "its directory comes in"


def test_the_epoch_is_greater_than_all_that_anybody_knows() -> None:
    led = Found("/data", NOTE, 40)
    assert rebuilt(led, [], NOTHING, {}).record.epoch == 40 + EPOCHS_SKIPPED
    newer = Known(SetRecord(SET_ID, (1,), 1, 6, 90, {1: 6}), {1: SIXTH})
    assert rebuilt(led, [], newer, {}).record.epoch == 90 + EPOCHS_SKIPPED


def test_an_older_copy_says_what_it_loses() -> None:
    made = rebuilt(CHOSEN, [], Known(None, {1: SIXTH}), {})
    assert "/data is an older copy (life 5 of broker 1; the arbiter knows 6)" in made.loses
    assert (made.record.in_sync, made.record.drafts, made.record.left) == ({}, frozenset(), {1: 12})
    assert made.life == Incarnation(6, "five"), "no life has the same number again"


def test_another_copy_with_the_same_number_of_lives_is_an_older_one() -> None:
    made = rebuilt(CHOSEN, [], Known(None, {1: Incarnation(5, "of a copy")}), {})
    assert made.loses


def test_a_life_that_was_asked_for_last_is_no_older_copy() -> None:
    """The start was cut short after the arbiter had begun its life."""
    asked = CHOSEN._replace(note=NOTE._replace(tokens=("five", "six")))
    assert not rebuilt(asked, [], Known(None, {1: SIXTH}), {}).loses


def test_an_arbiter_that_knows_fewer_lives_was_restored() -> None:
    known = Known(SetRecord(SET_ID, (1,), 1, 3, 9, {1: 3}), {1: Incarnation(3, "three")})
    made = rebuilt(CHOSEN, [], known, {})
    assert (made.record.in_sync, made.life, made.loses) == ({1: 5}, FIFTH, "")


REFUSED: dict[str, Callable[[], Rebuilt]] = {
    "/data belongs to no replica set": lambda: rebuilt(Found("/data", DirectoryNote(), 12), [], NOTHING, {}),
    "broker 1 of the set is registered at the arbiter": lambda: rebuilt(CHOSEN, [], NOTHING, {1: object()}),
    "the arbiter's record fits /data: nothing has to be rebuilt": lambda: rebuilt(
        CHOSEN, [], Known(RECORD_THERE, {1: FIFTH}), {}
    ),
    "/newer has heard of epoch 13, and /data only of 12": lambda: rebuilt(
        CHOSEN, [Found("/newer", NOTE._replace(epoch=13), 7)], NOTHING, {}
    ),
    "the arbiter's record is of another set": lambda: rebuilt(
        CHOSEN, [], Known(replace(RECORD_THERE, set_id="another"), {1: FIFTH}), {}
    ),
    "/newer has heard of epoch 14, and /data only of 12": lambda: rebuilt(
        CHOSEN, [Found("/newer", NOTE, 14)], NOTHING, {}
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why: str) -> None:
    with pytest.raises(CannotRebuild, match=why):
        REFUSED[why]()


def test_directories_that_know_no_more_do_not_matter() -> None:
    others = [
        Found("/same", NOTE, 12),
        Found("/another set", NOTE._replace(set_id="another", epoch=99), 99),
    ]
    assert rebuilt(CHOSEN, others, NOTHING, {}).record.epoch == 12 + EPOCHS_SKIPPED


def test_a_record_that_is_older_than_the_directory_is_made_again() -> None:
    known = Known(RECORD_THERE, {1: FIFTH})
    newer = CHOSEN._replace(note=NOTE._replace(epoch=13))
    assert rebuilt(newer, [], known, {}).record.epoch == 13 + EPOCHS_SKIPPED


# -- writing it ----------------------------------------------------------------------------------------------


class Deaf(MemoryBackend):
    """Its writes are not answered."""

    async def attempt(self, attempt: Attempt) -> int | None:
        raise Unanswered("no answer")


def written(
    server: MemoryServer, backend: type[MemoryBackend] = MemoryBackend, *, late: bool = False
) -> None:
    """Write the record; if it is `late`, something has changed meanwhile."""

    async def main() -> None:
        entries = dict(server.entries)
        if late:
            server.write(Attempt({}, {"brokers/1": b"{}"}))
        await write(backend(server, random.Random(1), Troubles()), rebuilt(CHOSEN, [], NOTHING, {}), entries)
        await asyncio.sleep(0)

    in_virtual_time(main)


def test_the_record_and_the_life_are_written() -> None:
    server = MemoryServer()
    written(server)
    assert decode(server.entries[RECORD].value).epoch == 12 + EPOCHS_SKIPPED
    assert known_from(server.entries).newest == {1: FIFTH}
    assert json.loads(server.entries["incarnations/1"].value) == {"number": 5, "token": "five"}


def test_a_set_that_changes_meanwhile_is_looked_at_again() -> None:
    server = MemoryServer()
    with pytest.raises(CannotRebuild, match="the set has changed at the arbiter meanwhile"):
        written(server, late=True)
    assert RECORD not in server.entries


def test_a_write_that_is_not_answered_may_have_landed() -> None:
    with pytest.raises(CannotRebuild, match="the record may be made or not: look again with"):
        written(MemoryServer(), Deaf)

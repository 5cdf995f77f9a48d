"""Who may follow in a replica set, with which directory, and how a set of several replicas is made."""

from __future__ import annotations

import pytest

from faircopy.arbiter.directory_note import Directory, DirectoryNote
from faircopy.arbiter.joining import (
    Applicant,
    Incarnation,
    Known,
    RegistrationRefused,
    is_follower,
    joined,
)
from faircopy.arbiter.record import NOBODY, Grade, SetRecord

SET_ID = "a set"
RECORD = SetRecord(SET_ID, (1, 2, 3), 1, 5, 9, {1: 5}, frozenset({1}))
LEADERS = Incarnation(5, "of the leader")
OWN = Incarnation(3, "own")
KNOWN = Known(RECORD, {1: LEADERS, 2: OWN}, {1, 2})


def applicant(broker: int, replicas: tuple[int, ...] = (), *, makes_set: bool = False) -> Applicant:
    return Applicant("orders", broker, "/data", makes_set, replicas)


def directory(
    broker: int = 2, token: str = "own", *, set_id: str = SET_ID, epoch: int = 9, is_empty: bool = False
) -> Directory:
    """A directory that has been in a set, with the last life of this broker."""
    note = DirectoryNote(set_id, True, broker, 3, (token,), epoch)
    return Directory(note, is_empty, epoch, Grade.DRAFTS)


EMPTY = Directory(DirectoryNote(), True, 0, Grade.DRAFTS)
OF_NO_SET = Directory(DirectoryNote(), False, 4, Grade.DRAFTS)


def test_only_replicas_that_are_not_in_sync_follow() -> None:
    assert [broker for broker in range(5) if is_follower(broker, RECORD)] == [2, 3]


@pytest.mark.parametrize(
    ("broker", "its"),
    [
        (3, EMPTY),
        (2, EMPTY),
        (2, directory()),
        (3, directory(3, "another start's")),
        (2, directory(1, LEADERS.token)),
        (2, directory(1, "of an older life")),
    ],
    ids=["new", "came back empty", "its own", "never lived", "a copy of the leader's", "an older copy"],
)
def test_who_may_follow(broker: int, its: Directory) -> None:
    """The record stays as it is: nobody who follows can be elected."""
    assert joined(applicant(broker), its, KNOWN) == RECORD


@pytest.mark.parametrize(
    ("its", "known", "why"),
    [
        (OF_NO_SET, KNOWN, "has data that never belonged to the set"),
        (directory(set_id="another"), KNOWN, "belongs to the replica set with the id another"),
        (directory(epoch=10), KNOWN, "has heard of epoch 10"),
        (directory(token="an older one"), KNOWN, "is an older copy of the directory of broker 2"),
        (directory(1, LEADERS.token), KNOWN._replace(living={2}), "start broker 1 with the directory itself"),
        (directory(3, "of the third"), KNOWN, "was the directory of broker 3"),
    ],
)
def test_who_may_not_follow(its: Directory, known: Known, why: str) -> None:
    with pytest.raises(RegistrationRefused, match=why):
        joined(applicant(2), its, known)


def test_the_first_replica_makes_the_set() -> None:
    noted = EMPTY._replace(note=DirectoryNote(SET_ID))
    made = joined(applicant(1, (1, 2, 3), makes_set=True), noted, Known(None, {}))
    assert (made.replicas, made.leader, made.leader_incarnation) == ((1, 2, 3), 1, NOBODY)
    assert dict(made.in_sync) == {1: 1} and made.drafts == {1}
    alone = joined(applicant(1, makes_set=True), noted, Known(None, {}))
    assert alone.replicas == (1,)
    with pytest.raises(RegistrationRefused, match="start broker 1 with --new-set first"):
        joined(applicant(2, (1, 2, 3), makes_set=True), noted, Known(None, {}))


def test_the_replicas_of_a_set_stay() -> None:
    joined(applicant(2, (1, 2, 3)), directory(), KNOWN)
    with pytest.raises(RegistrationRefused, match="has the replicas 1, 2, 3, and this start names 1, 2, 4"):
        joined(applicant(2, (1, 2, 4)), directory(), KNOWN)


def test_nobody_else_is_elected() -> None:
    assert RECORD.next_leader({1: 5, 2: 4, 3: 8}) is None
    assert RECORD.next_leader({2: 4, 3: 8}) is None
    assert SetRecord(SET_ID, (1, 2, 3), 1, 5, 9, {1: 6}).next_leader({1: 6, 2: 4, 3: 8}) == 1

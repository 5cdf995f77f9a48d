"""Which members have to have something before it is durable, and who may become one. One rule each."""

from __future__ import annotations

import pytest

from faircopy.arbiter.record import IllegalChange
from faircopy.journal.watermarks import EVERYWHERE
from faircopy.replication.in_sync import NOTHING
from faircopy.replication.life import Life
from tests.unit.replication.leader import OWN, VERSION, B, C, Leader, P, Q, record_of

# -- positions -----------------------------------------------------------------------------------------------


def test_all_members_have_to_have_it() -> None:
    leader = Leader(record_of(OWN, B, C))
    assert leader.bounds == (NOTHING, NOTHING)
    leader.hears(B, written=90, synced=80)
    assert leader.bounds == (NOTHING, NOTHING), "a majority is not enough"
    leader.hears(C, written=70, synced=60)
    assert leader.bounds == (60, 70)


def test_who_is_not_in_sync_is_not_waited_for() -> None:
    leader = Leader(record_of(OWN, B))
    leader.hears(B, 90, 80)
    leader.hears(C, 7, 6)
    assert leader.bounds == (80, 90)


def test_who_has_lost_drafts_is_not_waited_for_with_drafts() -> None:
    leader = Leader(record_of(OWN, B, C, drafts={1, 2}))
    leader.hears(B, 90, 80)
    leader.hears(C, 70, 60)
    assert leader.bounds == (60, 90)


def test_written_is_enough_where_the_page_cache_is() -> None:
    leader = Leader(record_of(OWN, B), is_synced_first=False)
    leader.hears(B, 90, 80)
    assert leader.bounds == (90, 90)


def test_each_journal_has_positions_of_its_own() -> None:
    leader = Leader(record_of(OWN, B))
    leader.hears(B, 90, 80, P)
    leader.hears(B, 70, 60, Q)
    assert [leader.in_sync.replicated(journal) for journal in (P, Q)] == [80, 60]


def test_a_set_with_too_few_makes_nothing_durable() -> None:
    leader = Leader(record_of(OWN, B), min_in_sync=3)
    leader.hears(B, 90, 80)
    assert leader.bounds == (NOTHING, NOTHING)


def test_too_few_with_drafts_let_no_drafts_be_acked() -> None:
    leader = Leader(record_of(OWN, B, drafts={1}))
    leader.hears(B, 90, 80)
    assert leader.bounds == (80, NOTHING)


def test_a_set_of_one_waits_for_nobody() -> None:
    assert Leader(record_of(OWN), min_in_sync=1).bounds == (EVERYWHERE, EVERYWHERE)
    assert Leader(record_of(OWN), min_in_sync=2).bounds == (NOTHING, NOTHING)


def test_another_life_of_the_leader_is_not_the_leader() -> None:
    assert Leader(record_of(Life(1, 58)), min_in_sync=1).bounds == (NOTHING, NOTHING)


# -- acks ----------------------------------------------------------------------------------------------------


def test_an_ack_takes_nothing_back() -> None:
    leader = Leader(record_of(OWN, B))
    leader.hears(B, 90, 80)
    leader.hears(B, 85, 82)
    assert leader.bounds == (82, 90)


@pytest.mark.parametrize("other", [Life(2, 30), Life(2, 32)])
def test_an_ack_of_another_life_does_not_count(other: Life) -> None:
    leader = Leader(record_of(OWN, B))
    leader.hears(other, 90, 80)
    assert leader.bounds == (NOTHING, NOTHING)


def test_a_new_life_begins_with_nothing() -> None:
    leader = Leader(record_of(OWN, B))
    leader.hears(B, 90, 80)
    later = Life(2, 32)
    leader.hears(later, 50, 40)
    leader.in_sync.read(record_of(OWN, later), VERSION + 1)
    assert leader.bounds == (40, 50)
    leader.hears(B, 95, 95)
    assert leader.bounds == (40, 50), "a late ack of the life that is over"


def test_acks_of_journals_that_are_deleted_are_ignored() -> None:
    leader = Leader(record_of(OWN, B))
    leader.acks.close(P)
    leader.hears(B, 90, 80)
    assert list(leader.acks.journals) == [Q]
    leader.acks.open(P)
    assert leader.bounds == (NOTHING, NOTHING)


# -- which sets count ----------------------------------------------------------------------------------------


def test_who_is_about_to_be_added_counts_already() -> None:
    leader = Leader(record_of(OWN, B))
    leader.hears(B, 90, 80)
    leader.hears(C, 70, 60)
    leader.promises(50, 55)
    changed = leader.in_sync.add(C, leader.promised)
    assert changed.in_sync == dict([OWN, B, C])
    assert leader.bounds == (60, 70)


def test_a_set_with_too_few_counts_as_long_as_it_may_be_in_force() -> None:
    leader = Leader(record_of(OWN))
    leader.hears(B, 90, 80)
    leader.in_sync.add(B, leader.promised)
    assert leader.bounds == (NOTHING, NOTHING)
    leader.in_sync.read(record_of(OWN, B), VERSION + 1)
    assert leader.bounds == (80, 90)


def test_who_is_about_to_be_removed_counts_still() -> None:
    leader = Leader(record_of(OWN, B, C))
    leader.hears(B, 90, 80)
    assert leader.in_sync.remove(3).in_sync == dict([OWN, B])
    assert leader.bounds == (NOTHING, NOTHING)
    leader.in_sync.read(record_of(OWN, B), VERSION + 1)
    assert leader.bounds == (80, 90)


def test_one_joins_a_leader_alone() -> None:
    """What the leader had not made durable yet, it waits for from now on."""
    leader = Leader(record_of(OWN), min_in_sync=1)
    leader.hears(B, 90, 80)
    leader.promises(80, 90)
    leader.in_sync.add(B, leader.promised)
    assert leader.bounds == (80, 90)


def test_the_bound_goes_back_when_somebody_joins() -> None:
    """B has acked ahead of the leader's own fsync, which is at 50. C has 60. What the leader syncs after that
    is durable only once C has it, too.
    """
    leader = Leader(record_of(OWN, B))
    leader.hears(B, 100, 100)
    own_synced = 50
    assert min(own_synced, leader.in_sync.replicated(P)) == 50
    leader.hears(C, 60, 60)
    leader.promises(50, 50)
    leader.in_sync.add(C, leader.promised)
    own_synced = 100
    assert min(own_synced, leader.in_sync.replicated(P)) == 60


def test_a7_an_unchanged_version_proves_nothing() -> None:
    """The write of C was not answered, and the record is as it was. It lands later."""
    leader = Leader(record_of(OWN, B))
    leader.hears(C, 60, 60)
    leader.in_sync.add(C, leader.promised)
    leader.hears(B, 90, 90)
    leader.in_sync.read(record_of(OWN, B), VERSION)
    assert leader.bounds == (60, 60)


def test_a7_a_higher_version_settles_it() -> None:
    leader = Leader(record_of(OWN, B))
    leader.hears(C, 60, 60)
    leader.in_sync.add(C, leader.promised)
    leader.hears(B, 90, 90)
    leader.in_sync.read(record_of(OWN, B), VERSION + 1)
    assert leader.bounds == (90, 90)


def test_an_older_copy_says_nothing() -> None:
    leader = Leader(record_of(OWN, B))
    leader.hears(B, 90, 90)
    leader.in_sync.read(record_of(OWN), VERSION - 1)
    assert leader.bounds == (90, 90)


def test_a8_one_change_at_a_time() -> None:
    leader = Leader(record_of(OWN, B), min_in_sync=1)
    leader.in_sync.add(C, leader.promised)
    with pytest.raises(IllegalChange, match="another change is under way"):
        leader.in_sync.remove(2)
    with pytest.raises(IllegalChange, match="another change is under way"):
        leader.in_sync.add(C, leader.promised)
    leader.in_sync.read(record_of(OWN, B, C), VERSION + 1)
    assert leader.in_sync.remove(2).in_sync == dict([OWN, C])


# -- who may be added, who removed ---------------------------------------------------------------------------


def test_who_lacks_nothing_may_join() -> None:
    leader = Leader(record_of(OWN, B))
    leader.promises(durable=50, drafts=70)
    leader.hears(C, 70, 50)
    assert leader.in_sync.may_join(C, leader.promised)


@pytest.mark.parametrize(("written", "synced"), [(70, 49), (69, 50)], ids=["durable", "drafts"])
def test_who_lacks_something_in_one_journal_may_not(written: int, synced: int) -> None:
    leader = Leader(record_of(OWN, B))
    leader.promises(durable=50, drafts=70)
    leader.hears(C, 70, 50, P)
    leader.hears(C, written, synced, Q)
    assert not leader.in_sync.may_join(C, leader.promised)
    with pytest.raises(IllegalChange, match="broker 3 in its life 88 lacks what is durable"):
        leader.in_sync.add(C, leader.promised)
    assert leader.in_sync.sets.all == (record_of(OWN, B),)


def test_written_is_enough_to_join_where_the_page_cache_is() -> None:
    leader = Leader(record_of(OWN, B), is_synced_first=False)
    leader.promises(durable=70, drafts=70)
    leader.hears(C, 70, 50)
    assert leader.in_sync.may_join(C, leader.promised)


def test_a9_acks_of_an_earlier_life_let_no_later_one_join() -> None:
    leader = Leader(record_of(OWN, B))
    leader.promises(50, 50)
    leader.hears(C, 60, 60)
    later = Life(3, 89)
    assert not leader.in_sync.may_join(later, leader.promised)
    leader.hears(later, 60, 60)
    assert leader.in_sync.add(later, leader.promised).in_sync[3] == 89


def test_a14_nobody_is_removed_if_too_few_stay() -> None:
    leader = Leader(record_of(OWN, B))
    with pytest.raises(IllegalChange, match="only 2 are in sync"):
        leader.in_sync.remove(2)
    assert leader.in_sync.sets.all == (record_of(OWN, B),)


def test_what_is_refused_is_not_under_way() -> None:
    leader = Leader(record_of(OWN, B, C))
    with pytest.raises(IllegalChange, match="leads"):
        leader.in_sync.remove(1)
    leader.in_sync.remove(2)

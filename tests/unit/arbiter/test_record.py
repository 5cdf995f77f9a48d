"""The record of a replica set: whatever happens to its brokers, who may lead has all that is durable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from faircopy.arbiter.record import NOBODY, Grade, HandedOver, IllegalChange, SetRecord, decode, encode

BROKERS = (1, 2, 3)
FIRST = SetRecord("set", BROKERS, 1, 11, 4, {1: 11, 2: 12, 3: 13}, frozenset(BROKERS))

broker = some.sampled_from([*BROKERS, 4])
life = some.integers(11, 14)
Change = Callable[[SetRecord], SetRecord]
changes: some.SearchStrategy[Change] = some.one_of(
    some.builds(lambda b: lambda r: r.elect(b), broker),
    some.builds(lambda b: lambda r: r.hand_over(b, "token"), broker),
    some.just(lambda r: r.resign()),
    some.builds(lambda b, i: lambda r: r.recover(b, i), broker, life),
    some.builds(lambda b, i: lambda r: r.elect_unclean(b, i), broker, life),
    some.builds(lambda b, i: lambda r: r.add(b, i), broker, life),
    some.builds(lambda b: lambda r: r.remove(b, 2), broker),
    some.builds(lambda b, i: lambda r: r.stay_in(b, i), broker, life),
    some.builds(lambda b: lambda r: r.take_out(b), broker),
    some.builds(lambda b, i, g: lambda r: r.join(b, i, g), broker, life, some.sampled_from(Grade)),
    some.just(lambda r: r.settle()),
)


@given(some.lists(changes, max_size=30))
def test_any_changes(made: list[Change]) -> None:
    record = FIRST
    for change in made:
        before = record
        try:
            record = change(before)
        except IllegalChange:
            continue
        assert decode(encode(record)) == record
        assert record.replicas == BROKERS
        assert set(record.in_sync) <= set(BROKERS)
        assert record.drafts <= set(record.in_sync)
        assert not set(record.in_sync) & set(record.left)
        assert record.epoch - before.epoch in (0, 1)
        is_new = record.epoch > before.epoch
        assert record.unclean_epoch in (before.unclean_epoch, record.epoch)
        if is_new and record.unclean_epoch == before.unclean_epoch:
            assert record.in_sync == before.in_sync, "an election changes nobody's standing"
            assert before.in_sync[record.leader] == record.leader_incarnation
        if record.handed_over is not None and is_new:
            assert record.handed_over == HandedOver(before.epoch, "token")
        if not is_new:
            assert record.leader == before.leader
            assert record.leader_incarnation in (before.leader_incarnation, NOBODY)
            assert record.handed_over == before.handed_over


def test_a_leader_never_shrinks_the_set_below_what_writes_need() -> None:
    two = FIRST.remove(3, 2)
    with pytest.raises(IllegalChange, match="only 2 are in sync"):
        two.remove(2, 2)
    assert two.take_out(2).in_sync == {1: 11}


def test_who_was_restarted_leads_again_only_if_nobody_else_can() -> None:
    assert FIRST.next_leader({1: 11}) is None, "it leads"
    assert FIRST.next_leader({2: 12, 3: 13}) == 2
    restarted = FIRST.stay_in(1, 21)
    assert not restarted.is_led({1: 21}), "an epoch belongs to one life (A6)"
    assert restarted.next_leader({1: 21, 3: 13}) == 3
    assert restarted.next_leader({1: 21}) == 1
    assert restarted.elect(1) == replace(FIRST, leader_incarnation=21, epoch=5, in_sync={1: 21, 2: 12, 3: 13})
    assert FIRST.next_leader({1: 21}) is None, "it has not said whether it lost something"
    assert FIRST.resign().next_leader({1: 11, 2: 12}) == 2


def test_if_all_have_lost_something_all_are_awaited() -> None:
    nobody = FIRST.take_out(1).take_out(3).take_out(2)
    assert nobody.next_leader({1: 21, 2: 22, 3: 23}) is None
    assert nobody.waits_for({1: 21, 3: 23}) == {2}
    assert nobody.waits_for({1: 21, 2: 22, 3: 23}) == set()
    recovered = nobody.recover(3, 23)
    assert (recovered.leader, recovered.epoch, recovered.unclean_epoch) == (3, 5, 5)
    assert recovered.in_sync == {3: 23}
    assert recovered.elect(3).unclean_epoch == 5, "replicas of before epoch 5 start over, however late"
    with pytest.raises(IllegalChange, match="there are replicas in sync"):
        recovered.recover(1, 21)


def test_a_handover_names_its_attempt() -> None:
    handed = FIRST.hand_over(2, "a")
    assert handed.handed_over == HandedOver(4, "a")
    assert handed.elect(3).handed_over is None, "any other election voids what was told (A10)"
    with pytest.raises(IllegalChange, match="leads already"):
        FIRST.hand_over(1, "a")


def test_nobody_waits_for_whom_a_later_leader_has_done_without() -> None:
    three_left = FIRST.take_out(3)
    assert three_left.left == {3: 4}
    assert three_left.add(3, 23).left == {}
    later = three_left.elect(2)
    assert later.left == {3: 4}, "it has not passed its barrier yet, as far as the record tells"
    alone = later.remove(1, 1)
    assert alone.left == {}
    assert alone.take_out(2).waits_for({1: 21, 2: 22}) == set()


def test_whoever_lacks_drafts_leads_only_if_nobody_has_them() -> None:
    lacking = FIRST.join(2, 22, Grade.DURABLE)
    assert lacking.in_sync == {1: 11, 2: 22, 3: 13}
    assert lacking.drafts == {1, 3}
    assert lacking.next_leader({2: 22, 3: 13}) == 3
    assert lacking.next_leader({2: 22}) is None, "somebody has all drafts, and may come back"
    nobody_has_them = lacking.join(1, 21, Grade.DURABLE).join(3, 23, Grade.DURABLE)
    assert nobody_has_them.next_leader({2: 22}) == 2
    led = nobody_has_them.elect(2)
    assert led.grade() is Grade.DURABLE
    assert led.settle().grade() is Grade.DRAFTS


def test_the_grade_of_a_leader_is_that_of_its_life() -> None:
    assert FIRST.join(1, 21, Grade.DRAFTS).elect(1).grade() is Grade.DRAFTS
    sole = replace(FIRST, replicas=(1,), in_sync={1: 11}, drafts=frozenset({1}))
    gone = sole.join(1, 21, Grade.UNKNOWN)
    assert (gone.in_sync, gone.drafts, gone.left) == ({}, frozenset(), {1: 4})
    assert gone.recover(1, 21).grade() is Grade.UNKNOWN
    assert gone.join(1, 22, Grade.DRAFTS) == gone, "what was lost stays lost until somebody has recovered"


def test_a_directory_may_change_its_broker() -> None:
    sole = SetRecord("set", (1,), 1, 11, 4, {1: 11}, frozenset({1}))
    moved = sole.move(1, 2)
    assert moved == replace(sole, replicas=(2,), in_sync={2: NOBODY}, drafts=frozenset({2}))
    assert moved.next_leader({2: 1}) is None, "its life has not joined yet"
    assert moved.join(2, 1, Grade.DRAFTS).next_leader({2: 1}) == 2
    with pytest.raises(IllegalChange, match="broker 2 is a replica already"):
        FIRST.move(1, 2)
    with pytest.raises(IllegalChange, match="broker 4 is no replica"):
        FIRST.move(4, 5)

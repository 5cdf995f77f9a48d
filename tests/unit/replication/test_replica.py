"""The journals of a follower, rule by rule."""

from __future__ import annotations

import asyncio

import pytest

from faircopy.journal.options import Durability
from faircopy.replication.errors import BadCopy, Refused
from faircopy.replication.frames import BadMessage
from faircopy.replication.messages import AckedJournal, AlignedJournal, MarkedJournal
from faircopy.replication.replica import UNWRITTEN_BYTES_MAX
from faircopy.storage.epoch_history import UNKNOWN_EPOCHS
from tests.unit.replication.follower import Follower, payloads_in, run
from tests.unit.replication.leaders_journal import LeadersJournal, P, Q

UNKNOWN = b"u" * 20
MIB = 1 << 20


def leaders(*payloads: bytes, identity: bytes = P) -> LeadersJournal:
    journal = LeadersJournal(identity)
    for payload in payloads:
        journal.add(payload)
    return journal


async def holding(follower: Follower, journal: LeadersJournal) -> None:
    """Let the follower have all of a journal."""
    await follower.link(journal)
    await follower.replica.take(journal.data())
    await follower.synced(journal.identity)


# -- comparing -----------------------------------------------------------------------------------------------


def test_a_journal_is_opened_once_and_says_what_it_has() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one", b"two")
        assert await follower.link(there) == [AlignedJournal(P, 0, 0, 0)]
        await follower.replica.take(there.data())
        follower.replica.mark(MarkedJournal(P, 60))
        assert await follower.link(there) == [AlignedJournal(P, there.end, there.end, 60)]
        assert follower.opened == [P]
        assert payloads_in(follower.journals[P]) == [b"one", b"two"]

    run(scene)


def test_a_new_process_finds_what_it_has() -> None:
    there = leaders(b"one", b"two")

    async def first(follower: Follower) -> None:
        await holding(follower, there)

    async def second(follower: Follower) -> None:
        assert await follower.link(there) == [AlignedJournal(P, there.end, there.end, 0)]

    run(second, run(first))


def test_a_comparison_waits_for_what_the_link_before_has_brought() -> None:
    """So that it counts at once: whoever has synced all that it has need not sync again for this."""

    async def scene(follower: Follower) -> None:
        there = leaders(bytes(1000))
        await follower.link(there)
        await follower.replica.take(there.data())
        assert follower.journals[P].watermarks.synced == 0
        [aligned] = await follower.link(there)
        assert aligned.synced == there.end

    run(scene)


def test_where_the_page_cache_is_enough_it_waits_for_no_fsync() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(bytes(1000))
        await follower.link(there)
        await follower.replica.take(there.data())
        assert await follower.link(there) == [AlignedJournal(P, there.end, 0, 0)]

    run(scene, durability=Durability.OS)


def test_a_leader_that_lacks_something_is_refused() -> None:
    async def scene(follower: Follower) -> None:
        await holding(follower, leaders(b"one", b"two"))
        older = leaders(b"one")
        with pytest.raises(
            Refused, match="ends at position 134 here, and at 67 in the leader: the leader lac"
        ):
            await follower.link(older)
        assert payloads_in(follower.journals[P]) == [b"one", b"two"]

    run(scene)


def test_a_leader_that_lacks_what_is_durable_elsewhere_is_refused() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one")
        await holding(follower, there)
        follower.replica.mark(MarkedJournal(P, there.end + 1))
        with pytest.raises(Refused, match="durable up to position 68, and ends at 67 in the leader"):
            await follower.link(there)

    run(scene)


def test_who_lacks_what_is_reclaimed_must_be_made_anew() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one", b"two")
        start = there.entries[1].position
        follower.replica.begin_link()
        with pytest.raises(Refused, match=r"at position 0 .* begins at 67 .* Copy the leader's"):
            await follower.replica.align(there.compared(start))
        await holding(follower, leaders(b"one"))
        follower.replica.begin_link()
        assert (await follower.replica.align(there.compared(start))).end == start

    run(scene)


def test_a_leader_of_another_history_is_refused() -> None:
    async def scene(follower: Follower) -> None:
        mine, there = LeadersJournal(), LeadersJournal()
        for journal, epoch in ((mine, 5), (there, 6)):
            journal.add(epoch=3)
            journal.add(epoch=epoch)
        await holding(follower, mine)
        second = mine.entries[1].position
        with pytest.raises(Refused, match=rf"position {second} on \(leader epochs here: 3 from 0, 5 from 71"):
            await follower.link(there)

    run(scene)


def test_what_is_unknown_of_a_history_is_not_compared() -> None:
    async def scene(follower: Follower) -> None:
        mine, there = LeadersJournal(), LeadersJournal()
        for journal, epoch in ((mine, 5), (there, 6)):
            journal.add(epoch=epoch)
        await holding(follower, mine)
        follower.replica.begin_link()
        await follower.replica.align(there.compared()._replace(epochs=()))
        follower.journals[P].epochs = UNKNOWN_EPOCHS
        await follower.link(there)

    run(scene)


def test_a_journal_is_compared_once_in_a_link() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one")
        await follower.link(there)
        with pytest.raises(BadMessage, match=f"journal {P.hex()} is compared twice"):
            await follower.replica.align(there.compared())
        await follower.link(there)

    run(scene)


def test_a_journal_that_can_not_be_opened_is_asked_for_again_by_the_next_link() -> None:
    async def scene(follower: Follower) -> None:
        for times in (1, 2):
            with pytest.raises(Refused, match=f"{UNKNOWN.hex()} can't be opened here: this broker has no"):
                await follower.link(leaders(identity=UNKNOWN))
            assert follower.opened == times * [UNKNOWN]

    run(scene)


def test_an_opening_goes_on_when_its_link_has_ended() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one")
        link = asyncio.ensure_future(follower.link(there))
        await asyncio.sleep(0)
        link.cancel()
        await asyncio.wait([link])
        assert link.cancelled() and follower.journals == {}
        await follower.link(there)
        assert follower.opened == [P]

    run(scene)


# -- taking --------------------------------------------------------------------------------------------------


def test_entries_are_appended_when_they_are_whole() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one", b"two")
        there.begin_segment(99)
        there.add(b"three")
        await follower.link(there)
        for at in range(there.end):
            await follower.replica.take(there.data(at, at + 1))
        assert follower.journals[P].watermarks.appended == there.end
        await follower.synced(P)
        assert payloads_in(follower.journals[P]) == there.payloads
        assert follower.journals[P].epochs == there.epochs

    run(scene)


def test_data_of_a_journal_that_was_not_compared_in_this_link() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one")
        await follower.link(leaders(identity=Q))
        for _ in range(2):
            with pytest.raises(BadMessage, match=f"data of journal {P.hex()}, which was not compared"):
                await follower.replica.take(there.data())
            await follower.link(there)
            follower.replica.begin_link()
        assert follower.journals[P].watermarks.appended == 0

    run(scene)


@pytest.mark.parametrize("wrong", [0, 1, 133, 135, 201])
def test_a_gap_and_a_repetition_are_refused(wrong: int) -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one", b"two", b"333", b"444")
        await follower.link(there)
        await follower.replica.take(there.data(0, 134))
        with pytest.raises(BadMessage, match=f"for position {wrong}, not 134"):
            await follower.replica.take(there.data(wrong))
        await follower.replica.take(there.data(134))
        assert follower.journals[P].watermarks.appended == there.end

    run(scene)


def test_a_gap_within_an_entry_is_refused() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one")
        await follower.link(there)
        await follower.replica.take(there.data(0, 50))
        for wrong in (0, 49, 51):
            with pytest.raises(BadMessage, match=f"for position {wrong}, not 50"):
                await follower.replica.take(there.data(wrong))

    run(scene)


def test_one_entry_is_incomplete_at_a_time() -> None:
    async def scene(follower: Follower) -> None:
        one, other = leaders(b"one"), leaders(b"two", identity=Q)
        await follower.link(one, other)
        await follower.replica.take(one.data(0, 65))
        with pytest.raises(BadMessage, match="within an entry"):
            await follower.replica.take(other.data())

    run(scene)


def test_what_is_left_of_an_entry_ends_with_its_link() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one", b"two")
        await follower.link(there)
        await follower.replica.take(there.data(0, 100))
        assert (await follower.link(there))[0].end == there.entries[0].end
        await follower.replica.take(there.data(there.entries[0].end))
        assert follower.journals[P].watermarks.appended == there.end

    run(scene)


def test_what_comes_before_a_bad_entry_is_kept() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one", b"two")
        await follower.link(there)
        bad = there.data()._replace(content=there.content[:-1] + b"!")
        with pytest.raises(BadCopy, match="position 67"):
            await follower.replica.take(bad)
        assert await follower.synced(P) == 67

    run(scene)


def test_an_entry_of_an_older_leader_can_not_follow() -> None:
    async def scene(follower: Follower) -> None:
        there, older = LeadersJournal(), LeadersJournal()
        there.add(epoch=3)
        for epoch in (2, 2):
            older.add(epoch=epoch)
        await holding(follower, there)
        with pytest.raises(BadCopy, match=rf"position 71 of journal {P.hex()} can't follow: .*epoch 3"):
            await follower.replica.take(older.data(71))

    run(scene)


def test_an_entry_of_a_newer_version_is_refused() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one")
        there.add(b"two", kind=200)
        await follower.link(there)
        with pytest.raises(Refused, match="a newer version leads"):
            await follower.replica.take(there.data())
        assert await follower.synced(P) == 67

    run(scene)


def test_what_is_taken_is_synced_without_being_asked() -> None:
    """Nothing is kept for each message that waits for that, either."""

    async def scene(follower: Follower) -> None:
        there = leaders(*(b"x" for _ in range(50)))
        await follower.link(there)
        for entry in there.entries:
            await follower.replica.take(there.data(entry.position, entry.end))
        assert await follower.synced(P) == there.end
        assert not follower.journals[P]._commit._when_durable and not follower.replica._unwritten

    run(scene)


# -- back pressure -------------------------------------------------------------------------------------------


async def feed(follower: Follower, *journals: LeadersJournal) -> None:
    """Send one entry of each journal in turns."""
    for turn in range(len(journals[0].entries)):
        for journal in journals:
            entry = journal.entries[turn]
            await follower.replica.take(journal.data(entry.position, entry.end))


def test_on_a_full_disk_it_waits_with_little_in_memory() -> None:
    async def scene(follower: Follower) -> None:
        journals = [leaders(*(bytes(MIB // 8) for _ in range(30)), identity=each) for each in (P, Q)]
        await follower.link(*journals)
        follower.disk.free_bytes = 0
        feeding = asyncio.ensure_future(feed(follower, *journals))
        await asyncio.sleep(60)
        appended = [journal.watermarks.appended for journal in follower.journals.values()]
        assert UNWRITTEN_BYTES_MAX < sum(appended) <= UNWRITTEN_BYTES_MAX + MIB // 4
        assert min(appended) > 0 and not feeding.done()
        follower.disk.free_bytes = None
        await feeding
        assert [await follower.synced(each) for each in (P, Q)] == [journal.end for journal in journals]

    run(scene)


def test_a_journal_that_is_deleted_is_not_waited_for() -> None:
    async def scene(follower: Follower) -> None:
        large = leaders(bytes(UNWRITTEN_BYTES_MAX))
        await follower.link(large)
        follower.disk.free_bytes = 0
        taking = asyncio.ensure_future(follower.replica.take(large.data()))
        await asyncio.sleep(60)
        assert not taking.done()
        follower.journals[P].abandon()
        follower.replica.forget(P)
        await taking

    run(scene)


def test_a_comparison_does_not_wait_for_a_journal_that_is_deleted() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one")
        await follower.link(there)
        follower.disk.free_bytes = 0
        await follower.replica.take(there.data())
        comparing = asyncio.ensure_future(follower.link(there))
        await asyncio.sleep(60)
        assert not comparing.done()
        follower.replica.forget(P)
        with pytest.raises(Refused, match="is deleted here"):
            await comparing
        follower.disk.free_bytes = None

    run(scene)


# -- what has moved ------------------------------------------------------------------------------------------


def test_what_is_written_and_what_is_synced_is_told() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one", b"two")
        await follower.link(there)
        acked: list[AckedJournal] = []
        follower.on_moved = lambda: acked.extend(follower.replica.take_moved())
        await follower.replica.take(there.data(0, 67))
        await asyncio.sleep(0)  # a thread is about to make the file, so the second entry waits
        await follower.replica.take(there.data(67))
        assert follower.acked() == {} and acked == []
        assert await follower.synced(P) == there.end
        assert acked[:2] == [AckedJournal(P, 67, 0), AckedJournal(P, there.end, 0)]
        assert acked[-1] == AckedJournal(P, there.end, there.end)
        assert follower.acked() == {}

    run(scene)


def test_journals_that_were_not_compared_in_this_link_are_not_acked() -> None:
    async def scene(follower: Follower) -> None:
        there = leaders(b"one")
        await follower.link(there)
        await follower.replica.take(there.data())
        while follower.journals[P].watermarks.written == 0:
            await follower.tick()
        follower.replica.begin_link()
        await follower.synced(P)
        assert follower.acked() == {} and follower.moves == 1

    run(scene)


def test_what_has_moved_in_several_journals_comes_at_once() -> None:
    async def scene(follower: Follower) -> None:
        journals = [leaders(b"one", identity=each) for each in (P, Q)]
        await follower.link(*journals)
        for journal in journals:
            await follower.replica.take(journal.data())
            await follower.synced(journal.identity)
        assert follower.acked() == {each: AckedJournal(each, 67, 67) for each in (P, Q)}

    run(scene)


# -- marks, deletions ----------------------------------------------------------------------------------------


def test_a_mark_never_falls() -> None:
    async def scene(follower: Follower) -> None:
        await follower.link(leaders())
        for durable in (50, 90, 70):
            follower.replica.mark(MarkedJournal(P, durable))
        assert follower.replica.mark_of(P) == 90

    run(scene)


def test_marks_of_unknown_journals_take_no_memory() -> None:
    async def scene(follower: Follower) -> None:
        follower.replica.mark(MarkedJournal(P, 90))
        assert follower.replica.mark_of(P) == 0
        await follower.link(leaders())
        assert follower.replica.mark_of(P) == 0

    run(scene)


def test_what_still_comes_of_a_deleted_journal_is_ignored() -> None:
    """The leader may have sent it before it knew."""

    async def scene(follower: Follower) -> None:
        there, other = leaders(b"one", b"two"), leaders(b"other", identity=Q)
        await follower.link(there, other)
        await follower.replica.take(there.data(0, 67))
        await follower.synced(P)
        await follower.replica.take(there.data(67, 100))
        follower.replica.mark(MarkedJournal(P, 90))
        follower.replica.forget(P)
        await follower.replica.take(other.data())
        await follower.replica.take(there.data(100))
        await follower.synced(Q)
        assert follower.replica.mark_of(P) == 0 and list(follower.acked()) == [Q]
        with pytest.raises(BadMessage, match="compared twice"):
            await follower.replica.align(there.compared())
        await follower.link(other)
        with pytest.raises(BadMessage, match="not compared"):
            await follower.replica.take(there.data(100))

    run(scene)

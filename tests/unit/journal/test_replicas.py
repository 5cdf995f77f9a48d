"""What replication needs of a journal: a bound of what is durable, news of what has moved, and copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.errors import InvariantViolation
from faircopy.journal.entry import Kind, TransactionId
from faircopy.journal.errors import DamagedJournal, JournalFull, Misplaced, NotEnoughReplicas
from faircopy.journal.journal import Journal
from faircopy.journal.options import Durability
from faircopy.journal.reading import Recovered, read_entries
from faircopy.journal.watermarks import EVERYWHERE
from faircopy.storage.epoch_history import Epochs
from faircopy.storage.failures import NoSpace
from tests.unit.journal.copying import copy, crc_of
from tests.unit.journal.journal_bench import IDENTITY, Bench, flip, itself, only_segment, recover, run

WRITER = TransactionId(4, 2, 9)


@pytest.mark.parametrize("durability", Durability)
def test_nothing_is_durable_before_the_replicas_have_it(tmp_path: Path, durability: Durability) -> None:
    async def test(bench: Bench) -> None:
        journal = bench.journal(is_replicated=True)
        recover(journal, 0, lambda _: None)
        told: list[int] = []
        ends = []
        for number in range(3):
            ends.append(journal.append(Kind.PLAIN, b"x", fold=itself).end)
            journal.when_durable(lambda number=number: told.append(number))  # type: ignore[misc]
        await bench.idle()
        assert (journal.watermarks.synced == ends[-1]) == (durability is Durability.FSYNC)
        assert told == [] and journal.watermarks.durable == 0
        journal.note_replicated(ends[1] - 1, EVERYWHERE)
        assert told == [0]
        journal.note_replicated(ends[1], EVERYWHERE)
        assert told == [0, 1]
        journal.note_replicated(EVERYWHERE, EVERYWHERE)
        assert told == [0, 1, 2]
        journal.note_replicated(0, 0)
        assert journal.watermarks.durable == ends[-1]
        journal.append(Kind.PLAIN, b"x", fold=itself)
        journal.when_durable(lambda: told.append(3))
        await bench.idle()
        assert told == [0, 1, 2]

    run(tmp_path, test, durability)


def test_drafts_are_kept_once_the_replicas_have_them(tmp_path: Path) -> None:
    """Replicas only get what is fsynced here, so whoever waits for them asks for that."""

    async def test(bench: Bench) -> None:
        journal = bench.journal(is_replicated=True)
        recover(journal, 0, lambda _: None)
        told: list[int] = []
        ends = []
        for number in range(3):
            ends.append(journal.append(Kind.DRAFT, b"x", fold=itself).end)
            journal.when_kept(lambda number=number: told.append(number))  # type: ignore[misc]
        await bench.idle()
        assert journal.watermarks.synced == ends[-1]
        journal.note_replicated(EVERYWHERE, 0)
        assert told == [] and journal.watermarks.kept == 0
        journal.note_replicated(0, ends[1])
        assert told == [0, 1]
        journal.note_replicated(0, 0)
        assert told == [0, 1] and journal.watermarks.kept == ends[1]
        journal.note_replicated(0, EVERYWHERE)
        await journal.kept()
        assert told == [0, 1, 2]

    run(tmp_path, test)


def test_replicas_may_be_ahead_of_the_disk(tmp_path: Path) -> None:
    """They may have what this broker has not yet synced itself."""

    async def test(bench: Bench) -> None:
        journal = bench.journal(is_replicated=True)
        recover(journal, 0, lambda _: None)
        end = journal.append(Kind.PLAIN, b"x", fold=itself).end
        journal.note_replicated(end, 0)
        assert journal.watermarks.durable == 0
        await journal.durable()
        assert journal.watermarks.durable == end

    run(tmp_path, test)


def test_after_a_restart_the_replicas_are_asked_again(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        end = journal.append(Kind.PLAIN, b"x", fold=itself).end
        await journal.durable()
        again = bench.journal(is_replicated=True)
        recover(again, 0, lambda _: None)
        assert (again.watermarks.synced, again.watermarks.durable) == (end, 0)

    run(tmp_path, test)


@pytest.mark.parametrize("size", [10, 1 << 17], ids=["written on the loop", "written by a thread"])
def test_who_listens_hears_that_something_was_written_and_synced(tmp_path: Path, size: int) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        journal.append(Kind.DRAFT, bytes(size), fold=itself)
        await journal.kept()
        assert bench.moved == [IDENTITY]
        await bench.idle()
        assert bench.moved == [IDENTITY] and journal.watermarks.synced == 0
        journal.append(Kind.PLAIN, bytes(size), fold=itself)
        await journal.durable()
        # A thread may sync the draft before the other entry is written.
        assert len(bench.moved) >= 3 and set(bench.moved) == {IDENTITY}

    run(tmp_path, test)


# -- copies --------------------------------------------------------------------------------------------------


async def led(bench: Bench, epochs: tuple[int, ...]) -> list[Recovered]:
    """The entries of a journal in which each of these epochs has written two."""
    journal = bench.journal()
    recover(journal, 0, lambda _: None)
    for epoch in epochs:
        journal.leader_epoch = epoch
        journal.append(Kind.DRAFT, b"draft of %d" % epoch, fold=itself, records=3, transaction=WRITER)
        journal.append(Kind.DISCARD, fold=itself, previous=0, transaction=WRITER)
        await journal.durable()
    return list(read_entries(journal.segments, 0))


def test_a_copy_is_the_same_entry_under_a_header_of_its_own(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        entries = await led(bench, (3, 7))
        mine = Bench(tmp_path / "copy")
        mine.new_salt = lambda: 99  # type: ignore[method-assign]
        follower = mine.journal(leader_epoch=5)
        follower.open_raw(0)
        for each in entries:
            copy(follower, each)
            await follower.durable()
        found = list(read_entries(follower.segments, 0))
        assert [bytes(each.payload) for each in found] == [bytes(each.payload) for each in entries]
        assert [each.entry._replace(durable=0) for each in found] == [
            each.entry._replace(durable=0) for each in entries
        ]
        # Each one's own: the leader synced twice, this replica after each entry.
        assert [each.entry.durable for each in found] == [each.entry.position for each in entries]
        assert [each.entry.durable for each in found] != [each.entry.durable for each in entries]
        assert follower.epochs == Epochs.of([(3, 0), (7, entries[2].entry.position)])
        assert only_segment(tmp_path / "copy").read_bytes() != only_segment(tmp_path).read_bytes()
        mine.disk.close()

    run(tmp_path, test)


def test_a_copy_that_does_not_follow_is_refused(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        first, second, third, _ = await led(bench, (3, 7))
        mine = Bench(tmp_path / "copy")
        follower = mine.journal()
        follower.open_raw(0)
        with pytest.raises(Misplaced, match=r"ends at position 0 in leader epoch 0: an entry of epoch 3 for"):
            copy(follower, second)
        copy(follower, first)
        for wrong in (first, third):
            with pytest.raises(Misplaced):
                copy(follower, wrong)
        with pytest.raises(Misplaced, match="in leader epoch 3: an entry of epoch 2"):
            copy(follower, Recovered(second.entry._replace(leader_epoch=2), second.payload))
        with pytest.raises(InvariantViolation):
            follower.append_copy(second.entry, b"longer", crc_of(b"longer"))
        copy(follower, second)
        copy(follower, third)
        await follower.durable()
        assert follower.watermarks.appended == third.entry.end
        mine.disk.close()

    run(tmp_path, test)


def test_what_was_opened_raw_is_folded_later(tmp_path: Path) -> None:
    """With what came meanwhile; the checkpoint says from where on."""

    async def test(bench: Bench) -> None:
        entries = await led(bench, (3, 7))
        mine = Bench(tmp_path / "copy")
        follower = mine.journal()
        follower.open_raw(0)
        for each in entries[:3]:
            copy(follower, each)
        await follower.durable()

        later = mine.journal()
        later.open_raw(entries[1].entry.position, Epochs.of([(3, 0)]))
        assert later.epochs == Epochs.of([(3, 0), (7, entries[2].entry.position)])
        assert later.watermarks.appended == entries[2].entry.end
        copy(later, entries[3])
        await later.durable()
        later.leader_epoch = 8
        folded: list[int] = []
        recover(later, entries[1].entry.position, lambda each: folded.append(each.entry.position))
        assert folded == [each.entry.position for each in entries[1:]]
        later.append(Kind.PLAIN, b"as the leader", fold=itself)
        await later.durable()
        assert later.epochs.newest == 8
        mine.disk.close()

    run(tmp_path, test)


def test_what_rots_after_a_raw_opening_is_damage(tmp_path: Path) -> None:
    """It was sound before, so it is no torn tail: nothing is cut."""

    async def test(bench: Bench) -> None:
        entries = await led(bench, (3,))
        journal = bench.journal()
        journal.open_raw(0)
        flip(only_segment(tmp_path), 64 + entries[1].entry.position + 4)
        with pytest.raises(DamagedJournal, match="up to which it was sound: restore"):
            recover(journal, 0, lambda _: None)
        cut_short = only_segment(tmp_path).read_bytes()[: 64 + entries[1].entry.position]
        only_segment(tmp_path).write_bytes(cut_short)
        with pytest.raises(DamagedJournal, match="up to which it was sound: restore"):
            recover(journal, 0, lambda _: None)
        assert only_segment(tmp_path).read_bytes() == cut_short

    run(tmp_path, test)


# -- epochs --------------------------------------------------------------------------------------------------


def test_a_journal_knows_the_epochs_of_its_entries_by_position(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        entries = await led(bench, (3, 7, 8))
        starts = [(epoch, entries[2 * n].entry.position) for n, epoch in enumerate((3, 7, 8))]
        journal = bench.journal(leader_epoch=9)
        recover(journal, 0, lambda _: None)
        assert journal.epochs == Epochs.of(starts)
        # A checkpoint has those up to its position only: a crash may take the rest.
        assert journal.epochs_below(starts[2][1]) == Epochs.of(starts[:2])
        assert journal.epochs_below(starts[2][1] + 1) == Epochs.of(starts)
        resumed = bench.journal(leader_epoch=9)
        recover(resumed, starts[2][1], lambda _: None, journal.epochs_below(starts[2][1]))
        assert resumed.epochs == journal.epochs

    run(tmp_path, test)


def test_epochs_go_with_the_files_that_have_them(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        ends = []
        for epoch in (3, 7, 8):
            journal.leader_epoch = epoch
            ends.append(journal.append(Kind.PLAIN, bytes(1 << 20), fold=itself).end)  # a file of its own
            await journal.durable()
        journal.reclaim(ends[0])
        assert journal.epochs == Epochs.of([(7, ends[0]), (8, ends[1])])
        journal.reclaim(ends[2])
        assert journal.epochs == Epochs.of([(8, ends[1])])

    run(tmp_path, test)


def test_an_entry_of_an_older_epoch_can_not_follow(tmp_path: Path) -> None:
    async def test(bench: Bench) -> None:
        journal = await with_a_fallen_epoch(bench)
        kept = [each.entry.position for each in read_entries(journal.segments, 0)]
        with pytest.raises(DamagedJournal, match=r"can't follow .*leader epoch 2 after 3"):
            bench.recovered()
        passed_over: list[DamagedJournal] = []
        folded: list[int] = []
        repaired = bench.journal(passed_over, leader_epoch=4)
        recover(repaired, 0, lambda each: folded.append(each.entry.position))
        assert folded == [kept[0], kept[2]] and len(passed_over) == 1
        assert repaired.epochs == Epochs.of([(3, 0)])

    run(tmp_path, test)


async def with_a_fallen_epoch(bench: Bench) -> Journal:
    journal = bench.journal()
    recover(journal, 0, lambda _: None)
    for epoch in (3, 2, 3):
        journal.leader_epoch = epoch
        journal.epochs = Epochs.of([(epoch, 0)])  # it does not notice
        journal.append(Kind.PLAIN, b"x", fold=itself)
    await journal.durable()
    return journal


@pytest.mark.parametrize("epoch", [6, 7])
def test_nobody_leads_under_an_epoch_that_was_used(tmp_path: Path, epoch: int) -> None:
    async def test(bench: Bench) -> None:
        await led(bench, (3, 7))
        with pytest.raises(DamagedJournal, match=f"entries of leader epoch 7, but the next epoch is {epoch}"):
            recover(bench.journal(leader_epoch=epoch), 0, lambda _: None)
        bench.journal(leader_epoch=epoch).open_raw(0)  # who follows has entries of the leader's epoch
        recover(bench.journal(leader_epoch=8), 0, lambda _: None)

    run(tmp_path, test)


# -- too few replicas ----------------------------------------------------------------------------------------


def test_nothing_new_is_accepted_while_replicas_are_missing(tmp_path: Path) -> None:
    """As on a full disk; but decisions, and what frees space, go on."""

    async def test(bench: Bench) -> None:
        journal, _ = bench.recovered()
        space = journal.space
        journal.ensure_space()
        space.elsewhere = NotEnoughReplicas("the replica set lacks broker 3")
        for ensure in (journal.ensure_space, journal.ensure_replicas):
            with pytest.raises(NotEnoughReplicas, match=r"^the replica set lacks broker 3$"):
                ensure()
        journal.ensure_reserve()
        space.elsewhere = NoSpace("the disk of a follower is nearly full")
        with pytest.raises(JournalFull, match="nearly full"):
            journal.ensure_space()
        journal.ensure_replicas()
        space.elsewhere = None
        journal.ensure_space()

    run(tmp_path, test)

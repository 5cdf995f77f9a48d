"""What a leader sends over one link, and what it believes of what it hears."""

from __future__ import annotations

import asyncio

import pytest

from faircopy.errors import FaircopyError
from faircopy.journal.reading import read_entries
from faircopy.replication.errors import LinkLost, Refused, RefusedByPeer
from faircopy.replication.feeder import COMPARED_ROWS_MAX, in_messages
from faircopy.replication.frames import FRAME_BYTES_MAX, BadMessage
from faircopy.replication.message_format import encode
from faircopy.replication.messages import (
    AckedJournal,
    Acks,
    AlignedJournal,
    Alignment,
    ComparedJournal,
    Comparison,
    EndOfEpoch,
    Marks,
    Message,
    Refusal,
)
from faircopy.replication.soundness import CONTENT_BYTES_MAX
from tests.unit.replication.feeding import TIMING, Leader, P, Q, Script, append, run_feeding
from tests.unit.replication.linked import EPOCH


async def begin(leader: Leader, script: Script, end: int = 0) -> None:
    """Begin a link on which one journal is compared and aligned."""
    leader.feed()
    await script.compared()
    script.align(P, end)


async def settled() -> None:
    """Let all happen that happens at once. The first heartbeat comes later."""
    await asyncio.sleep(TIMING.heartbeat_seconds / 2)


def test_all_journals_are_compared_first_the_empty_ones_too() -> None:
    async def test(leader: Leader, script: Script) -> None:
        journal, _ = await leader.open(P), await leader.open(Q)
        end = append(journal, 100).end
        journal.when_kept(lambda: None)
        await settled()
        leader.feed()
        compared = await script.compared()
        assert [each.identity for each in compared.journals] == [P, Q] and compared.is_last
        assert compared.journals[0][1:] == (0, end, (EndOfEpoch(EPOCH, end),))
        assert compared.journals[1][1:] == (0, 0, ())
        assert not leader.feeder.has_compared_all
        script.align(P)
        await settled()
        assert not leader.feeder.has_compared_all
        script.align(Q)
        await settled()
        assert leader.feeder.has_compared_all

    run_feeding(test)


def test_journals_with_many_epochs_are_compared_in_several_messages() -> None:
    def journal(number: int, epochs: int) -> ComparedJournal:
        ends = tuple(EndOfEpoch(epoch, 0) for epoch in range(epochs))
        return ComparedJournal(bytes([number]) * 20, 0, 0, ends)

    few, many = [journal(number, 1) for number in range(5)], journal(9, COMPARED_ROWS_MAX - 3)
    assert list(in_messages([])) == []
    assert list(in_messages(few)) == [few]
    assert list(in_messages([few[0], many, *few[1:]])) == [[few[0], many], few[1:]]
    for some in in_messages([few[0], many, *few[1:]]):
        assert len(encode(Comparison(tuple(some), is_last=True))) < FRAME_BYTES_MAX / 2


def test_the_follower_gets_what_it_lacks_in_pieces_of_the_leaders_files() -> None:
    async def test(leader: Leader, script: Script) -> None:
        journal = await leader.open(P)
        first = append(journal, 100)
        large, last = append(journal, 2 * CONTENT_BYTES_MAX), append(journal, 100)
        journal.when_kept(lambda: None)
        await settled()
        await begin(leader, script, first.end)
        pieces = [await script.data()]
        while pieces[-1].position + len(pieces[-1].content) < last.end:
            pieces.append(await script.data())
        assert [len(each.content) for each in pieces] == [
            CONTENT_BYTES_MAX, CONTENT_BYTES_MAX, large.length - 2 * CONTENT_BYTES_MAX, last.length
        ]  # fmt: skip
        position = first.end
        for piece in pieces:
            assert piece.position == position and piece.seed == journal.segments.holding(position).seed
            position += len(piece.content)
        assert b"".join(each.content for each in pieces[:3])[64:] == bytes(
            next(each.payload for each in read_entries(journal.segments, large.position))
        )

    run_feeding(test)


def test_only_what_is_synced_is_sent() -> None:
    """Else a leader that loses power could lack what its follower has."""

    async def test(leader: Leader, script: Script) -> None:
        journal = await leader.open(P)
        await begin(leader, script)
        first = append(journal, 100)
        journal.when_kept(lambda: None)
        assert len((await script.data()).content) == first.length
        append(journal, 100)
        await settled()
        assert journal.watermarks.written > journal.watermarks.synced == first.end
        script.ack(P, first.end, first.end)
        assert await script.marks() == {P: first.end}
        journal.when_kept(lambda: None)
        assert (await script.data()).position == first.end

    run_feeding(test)


def test_an_ack_makes_durable_and_the_follower_is_told_so_once() -> None:
    async def test(leader: Leader, script: Script) -> None:
        journal = await leader.open(P)
        told = []
        end = append(journal, 100).end
        journal.when_kept(lambda: told.append("kept"))
        journal.when_durable(lambda: told.append("durable"))
        await begin(leader, script)
        await script.data()
        await settled()
        assert told == []
        script.ack(P, end, 0)
        await settled()
        assert told == ["kept"]
        script.ack(P, end, end)
        assert await script.marks() == {P: end}
        assert told == ["kept", "durable"]
        script.ack(P, end, end)
        script.say(Acks((), is_short=True))
        await settled()
        assert leader.feeder.is_short and leader.heard == [P, P, P, P]
        append(journal, 1)
        journal.when_kept(lambda: None)
        await script.data()  # and no mark before

    run_feeding(test)


def test_what_is_durable_is_told_with_the_heartbeat_and_not_with_each_ack() -> None:
    """Each message wakes the follower, and nothing waits for it to know."""

    async def test(leader: Leader, script: Script) -> None:
        journal = await leader.open(P)
        ends = [append(journal, 100).end, append(journal, 100).end]
        journal.when_durable(lambda: None)
        await begin(leader, script)
        await script.data()
        for end in ends:
            script.ack(P, end, end)
            await asyncio.sleep(TIMING.heartbeat_seconds / 10)
            assert journal.watermarks.durable == end
        assert await script.marks() == {P: ends[-1]}

    run_feeding(test)


def test_journals_that_come_later_are_compared_and_those_that_go_are_forgotten() -> None:
    async def test(leader: Leader, script: Script) -> None:
        await begin(leader, script)
        later = await leader.open(Q)
        leader.feeder.note_moved(Q)
        assert [each.identity for each in (await script.compared()).journals] == [Q]
        leader.led.close(Q)
        leader.feeder.note_moved(Q)
        script.align(Q)
        script.ack(Q, 0, 0)
        await settled()
        assert leader.feeder.has_compared_all and not leader.ended.done()
        assert later.watermarks.durable == 0

    async def with_one(leader: Leader, script: Script) -> None:
        await leader.open(P)
        await test(leader, script)

    run_feeding(with_one)


def test_each_side_is_heard_of_while_nothing_happens() -> None:
    async def test(leader: Leader, script: Script) -> None:
        await leader.open(P)
        await begin(leader, script)
        began = leader.loop.time()
        for _ in range(3):
            assert isinstance(await script._link.receive(), Marks)
            script.say(Acks((), is_short=False))
        assert leader.loop.time() - began <= 4 * TIMING.heartbeat_seconds
        with pytest.raises(LinkLost, match="nothing has come for 5 s"):
            await leader.ended

    run_feeding(test)


def why_it_ends(*said: Message, start: int = 0) -> FaircopyError:
    """Why the link ends when a follower says this after a COMPARE of a journal with 164 bytes, that begins at
    `start`.
    """
    found = []

    async def test(leader: Leader, script: Script) -> None:
        journal = await leader.open(P, start)
        append(journal, 100)
        journal.when_kept(lambda: None)
        await settled()
        leader.feed()
        await script.compared()
        for message in said:
            script.say(message)
        with pytest.raises(FaircopyError) as error:
            await leader.ended
        found.append(error.value)

    run_feeding(test)
    return found[0]


def aligned(identity: bytes, end: int, mark: int) -> Alignment:
    return Alignment((AlignedJournal(identity, end, end, mark),), is_last=True)


@pytest.mark.parametrize(
    ("said", "kind", "why"),
    [
        ([aligned(P, 165, 0)], Refused, "has it up to 165 and knows it to be durable up to 0"),
        ([aligned(P, 0, 165)], Refused, "or is an older copy"),
        ([Refusal("it has another history")], RefusedByPeer, "refuses: it has another history"),
        ([aligned(P, 0, 0), aligned(P, 0, 0)], BadMessage, "nobody has asked for it"),
        ([Acks((AckedJournal(P, 0, 0),), is_short=False)], BadMessage, "an ack of journal"),
        ([aligned(P, 0, 0), Acks((AckedJournal(P, 165, 0),), is_short=False)], BadMessage, "up to 165"),
        ([Comparison((), is_last=True)], BadMessage, "a Comparison, which no follower sends"),
    ],
)
def test_what_a_follower_can_not_say_ends_the_link(
    said: list[Message], kind: type[FaircopyError], why: str
) -> None:
    error = why_it_ends(*said)
    assert isinstance(error, kind) and why in str(error)


def test_no_other_journal_is_compared_before_the_first_one_is_there() -> None:
    """It says where the follower has to keep them."""

    async def test(leader: Leader, script: Script) -> None:
        first, _ = await leader.open(P), await leader.open(Q)
        end = append(first, 100).end
        first.when_kept(lambda: None)
        await settled()
        leader.feed(first=P)
        assert [each.identity for each in (await script.compared()).journals] == [P]
        script.align(P)
        append(first, 100)
        first.when_kept(lambda: None)
        assert (await script.data()).position == 0
        assert (await script.data()).position == end
        script.ack(P, end - 1, 0)
        await settled()
        script.ack(P, end, 0)
        assert [each.identity for each in (await script.compared()).journals] == [Q]

    run_feeding(test)

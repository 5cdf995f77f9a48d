"""Who feeds a follower, what it answers, and why a link ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from faircopy.replication.errors import LinkLost, refusal_of
from faircopy.replication.following import UNPROVEN_LINKS_MAX, Followed, Following, Needs
from faircopy.replication.frames import LENGTH_BYTES, BadMessage
from faircopy.replication.life import Life
from faircopy.replication.message_format import decode, encode
from faircopy.replication.messages import (
    AckedJournal,
    Acks,
    AlignedJournal,
    Alignment,
    Challenge,
    Comparison,
    Hello,
    MarkedJournal,
    Marks,
    Message,
    Refusal,
)
from faircopy.replication.replica import UNWRITTEN_BYTES_MAX
from faircopy.replication.timing import Timing
from tests.unit.replication.follower import Follower, payloads_in
from tests.unit.replication.follower import run as run_follower
from tests.unit.replication.leaders_journal import LeadersJournal, P, Q
from tests.unit.replication.memory_link import MemoryLink, prove

TIMING = Timing(heartbeat_seconds=1.0, silence_seconds=4.0, handshake_seconds=2.0)
A_MOMENT = 0.3
WALL_MS = 1_790_000_000_000
HEARTBEAT = Marks(1, 12, {}, ())
LEADER = "broker 1 in its life 57, which leads in epoch 12"
UNPROVEN = "a link to this follower was closed before it was proven:"


def hello(broker: int = 1, incarnation: int = 57, epoch: int = 12) -> Hello:
    return Hello(bytes(16), broker, incarnation, epoch, 2, bytes(32))


class Bench:
    """A follower, its following, and what it has told the broker."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.is_short = False
        self.marks: list[Marks] = []
        needs = Needs(prove, lambda: self.is_short, self.marks.append, lambda: WALL_MS)
        self.following = Following(follower.replica, needs, TIMING)
        follower.on_moved = self.following.journals_moved

    async def connect(self, *messages: Message | Exception) -> MemoryLink:
        """A new connection, over which all of this comes at once."""
        link = MemoryLink()
        link.arrive(*messages)
        self.following.accept(link)
        await asyncio.sleep(A_MOMENT)
        return link

    @property
    def leader(self) -> Life | None:
        about = self.following.about()
        return about.leader if about is not None else None


@pytest.fixture(autouse=True)
def _all_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "faircopy.replication")


def run(scene: Callable[[Bench], Awaitable[None]]) -> None:
    async def play(follower: Follower) -> None:
        bench = Bench(follower)
        await scene(bench)
        await bench.following.close()

    run_follower(play)


def leaders(*payloads: bytes, identity: bytes = P) -> LeadersJournal:
    journal = LeadersJournal(identity)
    for payload in payloads:
        journal.add(payload)
    return journal


def compare(*journals: LeadersJournal, is_last: bool = True) -> Comparison:
    return Comparison(tuple(each.compared() for each in journals), is_last)


# -- what it answers -----------------------------------------------------------------------------------------


def test_a_leader_is_followed() -> None:
    async def scene(bench: Bench) -> None:
        there = leaders(b"one", b"two")
        link = await bench.connect(hello(), compare(there))
        assert link.heard() == [Alignment((AlignedJournal(P, 0, 0, 0),), True)]
        link.arrive(there.data())
        await asyncio.sleep(A_MOMENT)
        *_, last = link.heard()
        assert last == Acks((AckedJournal(P, there.end, there.end),), False)
        assert payloads_in(bench.follower.journals[P]) == [b"one", b"two"]
        assert bench.following.about() == Followed(Life(1, 57), 12, WALL_MS, there.end)

    run(scene)


@pytest.mark.parametrize("is_last", [False, True])
def test_journals_are_aligned_in_their_order_a_thousand_at_a_time(is_last: bool) -> None:
    async def scene(bench: Bench) -> None:
        names = [number.to_bytes(20, "big") for number in range(2001)]
        bench.follower.known |= set(names)
        link = await bench.connect(
            hello(), compare(*(leaders(identity=each) for each in reversed(names)), is_last=is_last)
        )
        alignments: list[Alignment] = []
        while sum(len(each.journals) for each in alignments) < len(names):
            await asyncio.sleep(A_MOMENT)
            alignments += [each for each in link.heard() if isinstance(each, Alignment)]
        assert [len(each.journals) for each in alignments] == [1000, 1000, 1]
        assert [each.is_last for each in alignments] == [False, False, is_last]
        assert [row.identity for each in alignments for row in each.journals] == names[::-1]

    run(scene)


def test_any_number_of_comparisons_at_any_time() -> None:
    async def scene(bench: Bench) -> None:
        one, other = leaders(b"one"), leaders(b"other", identity=Q)
        link = await bench.connect(hello(), compare(is_last=False), compare(one, is_last=True), one.data())
        alignments = [each for each in link.heard() if isinstance(each, Alignment)]
        assert alignments == [Alignment((), False), Alignment((AlignedJournal(P, 0, 0, 0),), True)]
        link.arrive(compare(other, is_last=False), other.data())
        await asyncio.sleep(A_MOMENT)
        alignment, *_, last = link.heard()
        assert alignment == Alignment((AlignedJournal(Q, 0, 0, 0),), False)
        assert last == Acks((AckedJournal(Q, other.end, other.end),), False)

    run(scene)


def test_marks_are_kept_and_told() -> None:
    async def scene(bench: Bench) -> None:
        marks = Marks(1, 12, {1: 57}, (MarkedJournal(P, 9), MarkedJournal(Q, 8)))
        await bench.connect(hello(), compare(leaders(b"one"), leaders(b"two", identity=Q)), marks)
        assert bench.marks == [marks]
        assert [bench.follower.replica.mark_of(each) for each in (P, Q)] == [9, 8]

    run(scene)


def test_many_journals_are_acked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(bench: Bench) -> None:
        link = await bench.connect(hello())
        rows = [AckedJournal(number.to_bytes(20, "big"), 9, 8) for number in range(4097)]
        moved = [rows]
        monkeypatch.setattr(bench.follower.replica, "take_moved", lambda: moved.pop() if moved else [])
        bench.following.journals_moved()
        await asyncio.sleep(A_MOMENT)
        assert link.heard() == [Acks(tuple(rows[:4096]), False), Acks(tuple(rows[4096:]), False)]

    run(scene)


def test_an_ack_comes_at_once_and_with_each_heartbeat() -> None:
    async def scene(bench: Bench) -> None:
        link = await bench.connect(hello())
        assert link.sent == [Acks((), False)]
        await asyncio.sleep(3 * TIMING.heartbeat_seconds)
        assert link.sent == 4 * [Acks((), False)]

    run(scene)


def test_a_shortage_is_told_at_once() -> None:
    async def scene(bench: Bench) -> None:
        link = await bench.connect(hello())
        for is_short in (True, False):
            bench.is_short = is_short
            bench.following.shortage_changed()
            await asyncio.sleep(A_MOMENT)
            assert link.sent[-1] == Acks((), is_short)
        assert len(link.sent) == 3

    run(scene)


# -- who feeds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "later", [hello(2, 31, 13), hello(1, 58, 12), hello()], ids=["epoch", "life", "same"]
)
def test_a_leader_that_is_not_older_takes_the_place_of_the_present_one(later: Hello) -> None:
    async def scene(bench: Bench) -> None:
        there = leaders(b"one", b"two")
        former = await bench.connect(hello(), compare(there), there.data(0, 100))
        link = await bench.connect(later, compare(there))
        assert former.is_aborted and not link.is_aborted
        assert bench.leader == Life(later.broker, later.incarnation)
        assert AlignedJournal(P, 67, 67, 0) in link.heard()[0].journals  # type: ignore[union-attr]
        link.arrive(there.data(67))
        await asyncio.sleep(A_MOMENT)
        assert payloads_in(bench.follower.journals[P]) == there.payloads

    run(scene)


@pytest.mark.parametrize("earlier", [hello(2, 99, 11), hello(1, 56, 12)], ids=["epoch", "life"])
@pytest.mark.parametrize("is_there_still", [True, False])
def test_an_older_leader_is_refused(earlier: Hello, is_there_still: bool) -> None:
    """Also when the newer one has lost its link."""

    async def scene(bench: Bench) -> None:
        link = await bench.connect(hello())
        if not is_there_still:
            link.arrive(LinkLost("cut"))
            await asyncio.sleep(A_MOMENT)
        older = await bench.connect(earlier, compare(leaders(b"old")))
        assert older.is_aborted and link.is_aborted != is_there_still
        assert older.heard() == [Refusal("a leader of epoch 12 was followed here: this one is deposed")]
        assert bench.leader == (Life(1, 57) if is_there_still else None)
        assert bench.follower.opened == []

    run(scene)


def test_the_present_link_has_ended_before_the_next_one_begins() -> None:
    """Even if it waits for the disk; and of several that wait, the newest comes."""

    async def scene(bench: Bench) -> None:
        large = leaders(bytes(UNWRITTEN_BYTES_MAX), b"more")
        bench.follower.disk.free_bytes = 0
        former = await bench.connect(hello(), compare(large), *pieces(large))
        middle = MemoryLink()
        middle.arrive(hello(epoch=13))
        bench.following.accept(middle)
        link = await bench.connect(hello(epoch=14))
        assert former.is_aborted and middle.is_aborted and not link.is_aborted
        assert bench.leader == Life(1, 57) and middle.heard() == []
        bench.follower.disk.free_bytes = None
        link.arrive(compare(large))
        await asyncio.sleep(TIMING.silence_seconds / 2)
        assert [each for each in link.heard() if isinstance(each, Alignment)]

    run(scene)


@pytest.mark.parametrize("ticks", range(5))
def test_nothing_of_the_link_before_comes_after_the_next_one_has_begun(ticks: int) -> None:
    async def scene(bench: Bench) -> None:
        there = leaders(b"one")
        await bench.connect(hello(), compare(there))  # opens the journal, so that nothing waits later
        former, link = await bench.connect(hello()), MemoryLink()
        link.arrive(hello(epoch=13), compare(there))
        bench.following.accept(link)
        for _ in range(ticks):
            await asyncio.sleep(0)
        former.arrive(compare(there), there.data())
        await asyncio.sleep(TIMING.silence_seconds / 2)
        end = bench.follower.journals[P].watermarks.appended
        assert link.heard() == [Alignment((AlignedJournal(P, end, end, 0),), True)]

    run(scene)


def pieces(journal: LeadersJournal, size: int = 1 << 18) -> list[Message]:
    return [journal.data(at, at + size) for at in range(0, journal.end, size)]


# -- who is not proven ---------------------------------------------------------------------------------------


def test_a_few_that_are_not_proven_may_wait() -> None:
    async def scene(bench: Bench) -> None:
        links = [await bench.connect() for _ in range(UNPROVEN_LINKS_MAX)]
        assert (await bench.connect(hello())).is_aborted
        links[0].arrive(hello())
        await asyncio.sleep(A_MOMENT)
        assert bench.leader == Life(1, 57)
        assert not (await bench.connect()).is_aborted
        assert (await bench.connect()).is_aborted

    async def quickly(bench: Bench) -> None:
        timing = Timing(1.0, 60.0, 60.0)
        needs = Needs(prove, lambda: False, bench.marks.append, lambda: WALL_MS)
        bench.following = Following(bench.follower.replica, needs, timing)
        await scene(bench)

    run(quickly)


def test_who_proves_nothing_has_a_while(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(bench: Bench) -> None:
        links = [await bench.connect() for _ in range(2)]
        assert not any(link.is_aborted for link in links)
        await asyncio.sleep(TIMING.handshake_seconds)
        assert all(link.is_aborted for link in links)
        assert [link.sent for link in links] == [[], []]
        assert not bench.following._tasks
        assert not any([(await bench.connect()).is_aborted for _ in range(UNPROVEN_LINKS_MAX)])

    run(scene)
    assert logged(caplog) == [
        "a link to this follower was closed before it was proven: it has proven nothing within 2 s"
    ]


def test_a_stranger_is_told_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(bench: Bench) -> None:
        for _ in range(2):
            link = await bench.connect(Challenge(bytes(32)))
            assert link.is_aborted and link.sent == []

    run(scene)
    assert logged(caplog) == [
        "a link to this follower was closed before it was proven: Challenge is no HELLO"
    ]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, but for the beginnings of links."""
    return [each.getMessage() for each in caplog.records if not each.getMessage().startswith("following")]


# -- how a link ends -----------------------------------------------------------------------------------------

BAD_PAYLOAD = leaders(b"one").data()._replace(content=leaders(b"one").content[:-1] + b"!")


def of_a_newer_version() -> LeadersJournal:
    journal = leaders()
    journal.add(kind=200)
    return journal


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([Acks((), False)], "Acks is nothing that a leader sends"),
        ([BadMessage("a message of the unknown type 9")], "a message of the unknown type 9"),
        ([leaders(b"one").data()], "which was not compared"),
        ([compare(leaders(b"one")), BAD_PAYLOAD], "the payload's CRC"),
        ([compare(leaders(identity=b"u" * 20))], "can't be opened here: this broker has no such topic"),
        ([compare(of_a_newer_version()), of_a_newer_version().data()], "a newer version leads"),
    ],
    ids=["wrong message", "no message", "bad message", "bad copy", "unknown", "newer"],
)
def test_a_leader_that_does_wrong_is_told_why(
    messages: list[Message], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(bench: Bench) -> None:
        link = await bench.connect(hello(), *messages)
        assert link.is_aborted and bench.following.about() is None
        *_, refusal = link.sent
        assert isinstance(refusal, Refusal) and why in refusal.reason
        again = await bench.connect(hello())
        assert not again.is_aborted

    run(scene)
    first, *_ = logged(caplog)
    assert (
        first.startswith("not following broker 1 in its life 57, which leads in epoch 12: ") and why in first
    )
    assert sum(why in line for line in logged(caplog)) == 1


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (LinkLost("the connection was reset"), "the connection was reset"),
        (Refusal("you are\nno member"), r"it refuses this broker: 'you are\nno member'"),
    ],
    ids=["lost", "refused"],
)
def test_the_end_of_a_link_is_logged_once(
    message: Message | Exception, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(bench: Bench) -> None:
        link = await bench.connect(hello())
        link.arrive(message)
        await asyncio.sleep(A_MOMENT)
        assert link.is_aborted and link.heard() == []

    run(scene)
    assert logged(caplog) == [f"no longer following {LEADER}: {why}"]


def test_a_leader_may_be_silent_for_a_while_only(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(bench: Bench) -> None:
        link = await bench.connect(hello())
        for _ in range(3):
            await asyncio.sleep(TIMING.silence_seconds - 2 * A_MOMENT)
            assert not link.is_aborted
            link.arrive(HEARTBEAT)
        await asyncio.sleep(TIMING.silence_seconds + A_MOMENT)
        assert link.is_aborted

    run(scene)
    assert len(logged(caplog)) == 1 and logged(caplog)[0].endswith("nothing came for 4 s")


def test_waiting_for_the_disk_is_not_the_silence_of_the_leader() -> None:
    async def scene(bench: Bench) -> None:
        large = leaders(bytes(UNWRITTEN_BYTES_MAX), b"more")
        bench.follower.disk.free_bytes = 0
        link = await bench.connect(hello(), compare(large), *pieces(large))
        await asyncio.sleep(10 * TIMING.silence_seconds)
        assert not link.is_aborted and len(link.sent) > 30
        bench.follower.disk.free_bytes = None
        await asyncio.sleep(TIMING.silence_seconds / 2)
        assert bench.follower.journals[P].watermarks.appended == large.end

    run(scene)


def test_a_leader_that_takes_no_acks_is_sent_one_at_a_time() -> None:
    async def scene(bench: Bench) -> None:
        there = leaders(*(b"x" for _ in range(100)))
        link = await bench.connect(hello(), compare(there))
        link.get_stuck()
        sent = len(link.sent)
        for entry in there.entries:
            link.arrive(there.data(entry.position, entry.end))
            await asyncio.sleep(0.05)
        assert len(link.sent) == sent + 1
        link.abort()
        link.get_free()

    run(scene)


def test_a_bug_ends_the_link_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_marks: Marks) -> None:
        raise ZeroDivisionError("a bug")

    async def with_a_bug(bench: Bench) -> None:
        needs = Needs(prove, lambda: False, broken, lambda: WALL_MS)
        bench.following = Following(bench.follower.replica, needs, TIMING)
        link = await bench.connect(hello(), HEARTBEAT)
        assert link.is_aborted and link.sent[-1] == Refusal("a bug")
        assert not (await bench.connect(hello())).is_aborted

    run(with_a_bug)
    assert logged(caplog)[0].endswith("a bug") and caplog.records[1].exc_info


def test_closing_ends_everything(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(bench: Bench) -> None:
        links = [await bench.connect(hello()), await bench.connect(), MemoryLink(), MemoryLink()]
        bench.following.accept(links[2])
        await bench.following.close()
        bench.following.accept(links[3])
        assert all(link.is_aborted for link in links)
        assert bench.following.about() is None

    run(scene)
    assert logged(caplog) == [f"no longer following {LEADER}: this broker stops"]


def test_a_reason_fits_into_its_message() -> None:
    for error, reason in (
        (BadMessage("a" + "ß" * 600), "a" + "ß" * 499),
        (BadMessage("a\udcff"), "a\\udcff"),
        (BadMessage(), "BadMessage"),
    ):
        assert refusal_of(error) == Refusal(reason) == decode(encode(refusal_of(error))[LENGTH_BYTES:])

"""How a link begins: who is taken, who is refused, and what a stranger is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from faircopy.errors import FaircopyError
from faircopy.replication.errors import LinkLost, Refused, Stranger
from faircopy.replication.frames import BadMessage
from faircopy.replication.handshake import Own, call_follower, receive_leader
from faircopy.replication.life import Life
from faircopy.replication.link import Link
from faircopy.replication.messages import Challenge, Data, Hello, Marks, Refusal
from faircopy.replication.proof import Challenges, Role, prove
from tests.unit.replication.linked import EPOCH, FOLLOWER, LEADER, LEVEL, own, run_linked

Side = Callable[[Link], Awaitable[Any]]


def calls(caller: Own | None = None) -> Side:
    return lambda link: call_follower(link, caller or own(LEADER), EPOCH, FOLLOWER)


def receives(follower: Own | None = None, newest_epoch: int = EPOCH) -> Side:
    return lambda link: receive_leader(link, follower or own(FOLLOWER), lambda: newest_epoch)


def outcomes(leader: Side, follower: Side) -> tuple[Any, Any]:
    """What comes of both sides: what they return, or why they end. Who ends so closes the connection."""
    found: list[Any] = []

    async def side(link: Link, work: Side) -> Any:
        try:
            return await work(link)
        except Refused as error:
            link.refuse(error)
            return error
        except FaircopyError as error:
            link.abort()
            return error

    async def test(near: Link, far: Link) -> None:
        async with asyncio.timeout(60):
            found.extend(await asyncio.gather(side(near, leader), side(far, follower)))

    run_linked(test)
    return found[0], found[1]


def test_both_learn_who_the_other_is() -> None:
    led, hello = outcomes(calls(), receives())
    assert led is None
    assert Life(hello.broker, hello.incarnation) == LEADER and hello.epoch == EPOCH


def test_large_frames_pass_once_both_are_proven() -> None:
    data = Data(b"j" * 20, 0, 7, bytes(200_000))

    async def feed(link: Link) -> None:
        await calls()(link)
        link.send(data)
        await link.receive()

    async def take(link: Link) -> None:
        await receives()(link)
        assert await link.receive() == data
        link.send(Refusal("x" * 900))

    assert outcomes(feed, take) == (None, None)


@pytest.mark.parametrize(
    ("follower", "said"),
    [
        (own(FOLLOWER, set_id=bytes(16)), "belongs to the set"),
        (own(FOLLOWER, secret=b"another secret, as long"), "the same --secret-file"),
        (own(Life(2, 32)), "means another life than broker 2 in its life 32"),
        (own(Life(3, 31)), "means another life"),
    ],
)
def test_a_leader_that_does_not_mean_this_follower_is_a_stranger(follower: Own, said: str) -> None:
    led, followed = outcomes(calls(), receives(follower))
    assert isinstance(followed, Stranger) and said in str(followed)
    assert isinstance(led, LinkLost) and "its log may say why" in str(led)


@pytest.mark.parametrize(
    "answer", [{"broker": 3}, {"incarnation": 32}, {"epoch": EPOCH + 1}, {"set_id": bytes(16)}]
)
def test_a_follower_that_is_another_one_is_a_stranger(answer: dict[str, Any]) -> None:
    """It knows the secret, and proves it."""

    async def another(link: Link) -> None:
        mine = Challenge(bytes(32))
        link.send(mine)
        theirs = await link.receive()
        assert isinstance(theirs, Challenge)
        await link.receive()
        hello = own(FOLLOWER).hello(EPOCH)._replace(**answer)
        link.send(prove(own(FOLLOWER).secret, Role.FOLLOWER, Challenges(theirs, mine), hello, LEADER))

    led, _ = outcomes(calls(), another)
    assert isinstance(led, Stranger)


def test_a_leader_can_be_no_follower() -> None:
    """What it has proven in one role proves nothing in the other: its own HELLO comes back."""

    async def mirror(link: Link) -> None:
        for _ in range(2):
            message = await link.receive()
            link.send(message)

    led, _ = outcomes(calls(), mirror)
    assert isinstance(led, Stranger)


def test_an_older_epoch_is_refused_and_told_so() -> None:
    async def lead(link: Link) -> Any:
        await calls()(link)
        return await link.receive()

    led, followed = outcomes(lead, receives(newest_epoch=EPOCH + 1))
    assert isinstance(followed, Refused)
    assert led == Refusal(
        f"broker 1 in its life 57 leads in epoch {EPOCH}: epoch {EPOCH + 1} has begun since"
    )


def test_another_level_of_the_format_is_refused() -> None:
    led, followed = outcomes(calls(own(LEADER, format_level=LEVEL + 1)), receives())
    for refused in (led, followed):
        assert isinstance(refused, Refused) and "run the same version of faircopy on both" in str(refused)


@pytest.mark.parametrize(
    "first",
    [own(LEADER).hello(EPOCH), Challenge(bytes(32), version=2)],
    ids=["no challenge", "another version"],
)
def test_who_begins_otherwise_is_a_stranger(first: Hello | Challenge) -> None:
    async def odd(link: Link) -> None:
        link.send(first)
        await link.receive()

    assert isinstance(outcomes(odd, receives())[1], Stranger)
    assert isinstance(outcomes(calls(), odd)[0], Stranger)


def test_who_says_something_else_than_who_it_is_is_a_stranger() -> None:
    async def odd(link: Link) -> None:
        link.send(Challenge(bytes(32)))
        link.send(Marks(0, 0, {}, ()))
        await link.receive()

    assert isinstance(outcomes(odd, receives())[1], Stranger)


def test_a_stranger_has_no_large_frame() -> None:
    async def large(link: Link) -> None:
        link.send(Challenge(bytes(32)))
        link.send(Data(b"j" * 20, 0, 7, bytes(200)))
        await link.receive()
        await link.receive()

    led, followed = outcomes(large, receives())
    assert isinstance(followed, BadMessage) and "1 to 128 can be" in str(followed)
    assert isinstance(led, LinkLost)


def test_who_hangs_up_is_lost() -> None:
    async def leaves(link: Link) -> None:
        link.abort()

    assert isinstance(outcomes(leaves, receives())[1], LinkLost)
    assert isinstance(outcomes(calls(), leaves)[0], LinkLost)

"""How a link begins: each side learns that the other is the broker that it should be.

    leader                            follower
      | CHALLENGE -->   <-- CHALLENGE |    at once, both
      | HELLO ----------------------> |    proves that it knows the secret, and means this life of its peer
      | <---------------------- HELLO |    the same the other way
      |                 <-- (REFUSAL) |    if the follower can't follow this leader

Whoever has not proven anything is told nothing but the magic bytes and the version, and costs 128 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from faircopy.replication.errors import LinkLost, Refused, Stranger
from faircopy.replication.life import Life
from faircopy.replication.link import Link
from faircopy.replication.messages import LINK_VERSION, Challenge, Hello, Message
from faircopy.replication.proof import Challenges, Role, is_proven, prove
from faircopy.replication.soundness import PROOF_BYTES

UNPROVEN = bytes(PROOF_BYTES)


class Own(NamedTuple):
    """Who this broker is, to its peers. `set_id`: 16 bytes. `secret`: what all brokers of the set know.
    `format_level`: of the entries in its journals. `new_nonce`: 32 random bytes, each time others.
    """

    set_id: bytes
    life: Life
    format_level: int
    secret: bytes
    new_nonce: Callable[[], bytes]

    def hello(self, epoch: int) -> Hello:
        """What it says of itself on a link of this epoch, without a proof."""
        return Hello(self.set_id, *self.life, epoch, self.format_level, UNPROVEN)


async def call_follower(link: Link, own: Own, epoch: int, follower: Life) -> None:
    """Begin a link as the leader of this epoch, with one life of one follower. Raises Stranger, Refused,
    LinkLost, BadMessage.
    """
    challenges = Challenges(leader := Challenge(own.new_nonce()), await _exchange(link, leader))
    link.send(prove(own.secret, Role.LEADER, challenges, own.hello(epoch), follower))
    await link.drain()
    answer = _hello(await _answer(link))
    _ensure_proven(answer, own, Role.FOLLOWER, challenges)
    if Life(answer.broker, answer.incarnation) != follower or answer.epoch != epoch:
        raise Stranger(f"it is {_named(answer)}, and not {follower}")
    link.trust()
    _ensure_level(answer, own)


async def _answer(link: Link) -> Message:
    """What the follower says once it knows who calls. A follower that takes the caller for a stranger says
    nothing.
    """
    try:
        return await link.receive()
    except LinkLost as error:
        raise LinkLost(f"{error} instead of saying who it is: its log may say why") from error


async def receive_leader(link: Link, own: Own, newest_epoch: Callable[[], int]) -> Hello:
    """Let a leader begin a link. Returns what it said of itself. One of an older epoch than `newest_epoch`,
    the newest that was heard of, is refused (I8). Raises Stranger, Refused, LinkLost, BadMessage.
    """
    challenges = Challenges(await _exchange(link, follower := Challenge(own.new_nonce())), follower)
    hello = _hello(await link.receive())
    _ensure_proven(hello, own, Role.LEADER, challenges)
    leader = Life(hello.broker, hello.incarnation)
    link.send(prove(own.secret, Role.FOLLOWER, challenges, own.hello(hello.epoch), leader))
    link.trust()
    await link.drain()
    if hello.epoch < newest_epoch():
        raise Refused(f"{leader} leads in epoch {hello.epoch}: epoch {newest_epoch()} has begun since")
    _ensure_level(hello, own)
    return hello


async def _exchange(link: Link, own: Challenge) -> Challenge:
    """Send one's own challenge, and take that of the peer."""
    link.send(own)
    await link.drain()
    theirs = await link.receive()
    if not isinstance(theirs, Challenge):
        raise Stranger(f"it begins with a {type(theirs).__name__}")
    if theirs.version != LINK_VERSION:
        raise Stranger(f"it speaks version {theirs.version} of the link, and this broker {LINK_VERSION}")
    return theirs


def _hello(message: Message) -> Hello:
    if not isinstance(message, Hello):
        raise Stranger(f"it sends a {type(message).__name__} where it should say who it is")
    return message


def _ensure_proven(hello: Hello, own: Own, role: Role, challenges: Challenges) -> None:
    if hello.set_id != own.set_id:
        raise Stranger(f"{_named(hello)} belongs to the set {hello.set_id.hex()}, not to {own.set_id.hex()}")
    if not is_proven(own.secret, role, challenges, hello, own.life):
        raise Stranger(
            f"{_named(hello)} does not prove that it knows the secret, or means another life than "
            f"{own.life}: see that both brokers have the same --secret-file"
        )


def _ensure_level(hello: Hello, own: Own) -> None:
    if hello.format_level != own.format_level:
        raise Refused(
            f"{_named(hello)} writes journals of level {hello.format_level}, and {own.life} of level "
            f"{own.format_level}: run the same version of faircopy on both"
        )


def _named(hello: Hello) -> Life:
    return Life(hello.broker, hello.incarnation)

"""The proof in HELLO holds once: for its sender, its receiver, its link and its direction."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.replication.life import Life
from faircopy.replication.messages import Challenge, Hello
from faircopy.replication.proof import Challenges, Role, is_proven, prove
from tests.unit.replication.some_messages import challenges, hellos

SECRET = b"the secret of a set of brokers"
LEADER, FOLLOWER = Life(1, 57), Life(2, 31)
BEGUN = Challenges(Challenge(b"l" * 32), Challenge(b"f" * 32))
HELLO = Hello(b"i" * 16, *LEADER, epoch=12, format_level=2, proof=b"")
PROVEN = prove(SECRET, Role.LEADER, BEGUN, HELLO, FOLLOWER)


def is_taken(
    hello: Hello = PROVEN,
    *,
    secret: bytes = SECRET,
    role: Role = Role.LEADER,
    begun: Challenges = BEGUN,
    receiver: Life = FOLLOWER,
) -> bool:
    """Whether the follower of this link takes a HELLO of its leader, if nothing else is said."""
    return is_proven(secret, role, begun, hello, receiver)


def test_who_knows_the_secret_is_proven() -> None:
    assert is_taken()
    assert PROVEN._replace(proof=b"") == HELLO


def test_another_secret_proves_nothing() -> None:
    assert not is_taken(secret=SECRET + b"!")


def test_a_proof_is_not_sent_back() -> None:
    """The follower's HELLO is no leader's, nor the other way round, even if all else were the same."""
    assert not is_taken(role=Role.FOLLOWER)


def test_a_proof_holds_on_one_link() -> None:
    other = Challenge(b"o" * 32)
    assert not is_taken(begun=BEGUN._replace(leader=other))
    assert not is_taken(begun=BEGUN._replace(follower=other))
    assert not is_taken(begun=Challenges(BEGUN.follower, BEGUN.leader))


def test_a_link_is_not_made_to_speak_an_older_version() -> None:
    assert not is_taken(begun=BEGUN._replace(leader=BEGUN.leader._replace(version=0)))


@pytest.mark.parametrize(
    "other",
    [
        PROVEN._replace(set_id=b"j" * 16),
        PROVEN._replace(broker=3),
        PROVEN._replace(incarnation=58),
        PROVEN._replace(epoch=13),
        PROVEN._replace(format_level=1),
    ],
    ids=["set", "broker", "incarnation", "epoch", "format level"],
)
def test_a_proof_holds_for_each_field(other: Hello) -> None:
    assert not is_taken(other)


@pytest.mark.parametrize("receiver", [Life(3, 31), Life(2, 32)])
def test_a_proof_holds_for_one_receiver(receiver: Life) -> None:
    assert not is_taken(receiver=receiver)


@given(st.binary(min_size=16, max_size=80), st.sampled_from(Role), challenges, challenges, hellos)
def test_whatever_is_proven_is_taken(
    secret: bytes, role: Role, leader: Challenge, follower: Challenge, hello: Hello
) -> None:
    begun = Challenges(leader, follower)
    proven = prove(secret, role, begun, hello, FOLLOWER)
    assert is_taken(proven, secret=secret, role=role, begun=begun)
    assert not is_taken(proven._replace(proof=bytes(32)), secret=secret, role=role, begun=begun)


def test_a_secret_that_can_be_guessed_proves_nothing() -> None:
    with pytest.raises(ValueError, match="the secret has 15 bytes"):
        prove(b"x" * 15, Role.LEADER, BEGUN, HELLO, FOLLOWER)

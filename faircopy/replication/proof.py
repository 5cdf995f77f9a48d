"""The proof in HELLO that its sender knows the set's secret: an HMAC-SHA256, whose key is the secret, over

     0  label                     16 bytes  "faircopy link 1" and a zero
    16  role                      u8        1: the sender is the leader; 2: the follower
    17  CHALLENGE of the leader   47 bytes  its frame
    64  CHALLENGE of the follower 47 bytes  its frame
   111  HELLO                     71 bytes  its frame, with zeros in the place of the proof
   182  peer                      12 bytes  the broker and the incarnation that HELLO is meant for

So it holds on this link alone (the nonces), in this direction alone (the role), and for nobody else: another
set, epoch or life on either side has another proof. The leader knows whom it means by the registration in
which it found the follower's address. The follower answers the leader's HELLO.

Pure.
"""

from __future__ import annotations

import hmac
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from faircopy.replication.life import Life
from faircopy.replication.message_format import encode
from faircopy.replication.messages import Challenge, Hello
from faircopy.replication.soundness import PROOF_BYTES

SECRET_BYTES_MIN = 16
LABEL = b"faircopy link 1\0"
_ROLE = Struct("<B")
_PEER = Struct("<IQ")


class Role(IntEnum):
    """Which end of a link somebody is."""

    LEADER = 1
    FOLLOWER = 2


class Challenges(NamedTuple):
    """How both ends of a link began."""

    leader: Challenge
    follower: Challenge


def prove(secret: bytes, role: Role, challenges: Challenges, hello: Hello, peer: Life) -> Hello:
    """`hello`, with the proof of a sender in this role, for one life of one peer. Raises ValueError if a
    field can't be sent, or if the secret is short enough to be guessed.
    """
    if len(secret) < SECRET_BYTES_MIN:
        raise ValueError(f"the secret has {len(secret)} bytes: it needs {SECRET_BYTES_MIN} at least")
    parts = (
        LABEL,
        _ROLE.pack(role),
        encode(challenges.leader),
        encode(challenges.follower),
        encode(hello._replace(proof=bytes(PROOF_BYTES))),
        _PEER.pack(*peer),
    )
    return hello._replace(proof=hmac.digest(secret, b"".join(parts), "sha256"))


def is_proven(secret: bytes, role: Role, challenges: Challenges, hello: Hello, receiver: Life) -> bool:
    """Whether the sender of `hello`, in this role, knows the secret and means this receiver. Raises
    ValueError as `prove` does.
    """
    expected = prove(secret, role, challenges, hello, receiver)
    return hmac.compare_digest(expected.proof, hello.proof)

"""What brokers say on a link from the leader of a replica set to a follower.

A link carries all journals of the set. It lives in one epoch and between two lives, so only HELLO names those
(I8). A journal is named by the 20 bytes of its identity, a position counts its bytes.

| message | class | from |
|---|---|---|
| CHALLENGE | `Challenge` | both |
| HELLO | `Hello` | both |
| COMPARE | `Comparison` | leader |
| ALIGNED | `Alignment` | follower |
| DATA | `Data` | leader |
| ACK | `Acks` | follower |
| MARK | `Marks` | leader |
| REFUSAL | `Refusal` | both |

See docs/CLUSTER.md, Replication; soundness.py has what holds within a message, message_format.py its bytes.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

LINK_VERSION = 1


class Challenge(NamedTuple):
    """The first message of each side. `nonce`: 32 random bytes, which the proof of the other side covers."""

    nonce: bytes
    version: int = LINK_VERSION


class Hello(NamedTuple):
    """Who the sender is: set (a UUID's 16 bytes), broker, its life, the link's epoch, the format level of its
    journals. `proof`: 32 bytes, that it knows the secret (proof.py).
    """

    set_id: bytes
    broker: int
    incarnation: int
    epoch: int
    format_level: int
    proof: bytes


class EndOfEpoch(NamedTuple):
    """A leader epoch of a journal, and the position at which its entries end."""

    epoch: int
    end: int


class ComparedJournal(NamedTuple):
    """A journal of the leader: the oldest position that it still has, its leader epochs in order, its end."""

    identity: bytes
    start: int
    end: int
    epochs: tuple[EndOfEpoch, ...]


class Comparison(NamedTuple):
    """Some journals of the leader; `is_last`: with them, all are named."""

    journals: tuple[ComparedJournal, ...]
    is_last: bool


class AlignedJournal(NamedTuple):
    """A journal of the follower, which is a prefix of the leader's now: its end, up to where it is synced,
    and its mark: the highest durable position that it has ever heard of, which may lie beyond the end.
    """

    identity: bytes
    end: int
    synced: int
    mark: int


class Alignment(NamedTuple):
    """Some journals of the follower; `is_last`: with them, all that were compared are named."""

    journals: tuple[AlignedJournal, ...]
    is_last: bool


class Data(NamedTuple):
    """Bytes of the leader's file, from `position` of the journal on; they may end within an entry. `seed`:
    that of the segment, with which the headers' CRCs are made.
    """

    identity: bytes
    position: int
    seed: int
    content: bytes | bytearray | memoryview


class AckedJournal(NamedTuple):
    """Up to where the follower has a journal in its files, and up to where on its disk."""

    identity: bytes
    written: int
    synced: int


class Acks(NamedTuple):
    """The follower's journals that have moved. `is_short`: its disk is nearly full."""

    journals: tuple[AckedJournal, ...]
    is_short: bool


class MarkedJournal(NamedTuple):
    """Up to where a journal is durable in the set."""

    identity: bytes
    durable: int


class Marks(NamedTuple):
    """The journals whose durable position has moved; without any, the leader's heartbeat.

    `clock_ms`: the set's steady clock. `epoch`, `in_sync` (lives by broker): of the record that the leader
    knows to be in force.
    """

    clock_ms: int
    epoch: int
    in_sync: Mapping[int, int]
    journals: tuple[MarkedJournal, ...]


class Refusal(NamedTuple):
    """Why the sender closes the link, for the log of the other side. Only a proven peer is told."""

    reason: str


Message = Challenge | Hello | Comparison | Alignment | Data | Acks | Marks | Refusal

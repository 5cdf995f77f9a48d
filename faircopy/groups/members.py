"""The inputs and effects of the membership machine, as values.

A *ticket* is a number that the shell gives to a request that may have to wait. An effect names the ticket
that it answers. All times are milliseconds of a monotonic clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from faircopy.groups.group_metadata import GroupMetadata, MemberMetadata
from faircopy.wire.error_codes import ErrorCode

MEMBER_BYTES = 1_024
"""What a member counts for in addition to its own data, and what an id that was given away counts for."""

PROTOCOL_BYTES = 128
"""What a protocol counts for in addition to its name and metadata."""

Protocols = tuple[tuple[str, bytes], ...]
"""Names of assignment strategies, in order of preference, each with the member's metadata for it."""


class GroupLimits(NamedTuple):
    """The limits that apply to all groups."""

    initial_rebalance_delay_ms: int = 100
    session_timeout_min_ms: int = 6_000
    session_timeout_max_ms: int = 1_800_000
    members_max: int = 1_000
    bytes_max: int = 16 << 20
    all_bytes_max: int = 128 << 20


class HeldMemory:
    """The memory of all groups of a process: the number of groups with members, and about how many bytes."""

    def __init__(self) -> None:
        self.groups = 0
        self.bytes = 0


class JoinRequest(NamedTuple):
    """A JoinGroup. The member gets `fresh_member_id` if `member_id` is empty.

    With `needs_known_id` (from version 4 on), a member without an id gets one, and has to join again with it
    (KIP-394). With `can_skip_assignment` (from version 9 on), a leader can be told that the present
    assignment stays (KIP-814). Nobody reads the `reason` (KIP-800), but it takes memory while the member
    waits.
    """

    ticket: int
    member_id: str
    fresh_member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    needs_known_id: bool
    can_skip_assignment: bool
    reason: str = ""

    @property
    def names(self) -> set[str]:
        """The assignment strategies that the member can use."""
        return {name for name, _ in self.protocols}

    @property
    def held_bytes(self) -> int:
        """About how much memory its member takes."""
        texts = (
            self.instance_id or "",
            self.client_id,
            self.client_host,
            self.protocol_type,
            self.reason,
        )
        said = sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in self.protocols)
        return MEMBER_BYTES + said + sum(map(len, texts))


class Identity(NamedTuple):
    """Who a member claims to be. A client in no group has `generation` -1 and an empty id."""

    member_id: str
    instance_id: str | None
    generation: int

    @property
    def is_anonymous(self) -> bool:
        """Whether it belongs to a client in no group (one that uses `assign`)."""
        return self.generation < 0 and not self.member_id and self.instance_id is None


class SyncRequest(NamedTuple):
    """A SyncGroup. `assignments`, by member id, come from the leader. Null protocols are not compared."""

    ticket: int
    identity: Identity
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class JoinedMember(NamedTuple):
    """A member, as the leader is told about it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    """The answer to a JoinGroup. Only the leader gets `members`. With `skip_assignment`, the present
    assignment stays.
    """

    error: ErrorCode
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str = ""
    leader_id: str = ""
    members: Sequence[JoinedMember] = ()
    skip_assignment: bool = False


class SyncAnswer(NamedTuple):
    """The answer to a SyncGroup."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class AnswerJoin(NamedTuple):
    """Effect: answer the JoinGroup with this ticket."""

    ticket: int
    answer: JoinAnswer


class AnswerSync(NamedTuple):
    """Effect: answer the SyncGroup with this ticket."""

    ticket: int
    answer: SyncAnswer


class WakeAt(NamedTuple):
    """Effect: call `Group.tick` at this time or a little later. Replaces the group's earlier WakeAt."""

    at_ms: int


class StoreGroup(NamedTuple):
    """Effect: store the group durably, then call `Group.stored` with the number. Numbers only grow."""

    number: int
    metadata: GroupMetadata


Effect = AnswerJoin | AnswerSync | WakeAt | StoreGroup


@dataclass(slots=True)
class Member:
    """A member of a group.

    At `deadline_ms` the member is considered dead; it is None while the member waits for our answer. `is_new`
    holds until its first join is answered. `is_synced` holds once it has asked for its assignment in the
    present generation.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    deadline_ms: int | None = None
    join_ticket: int | None = None
    sync_ticket: int | None = None
    assignment: bytes = b""
    is_new: bool = True
    is_synced: bool = False
    said_bytes: int = 0

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes."""
        return self.said_bytes + len(self.assignment)

    @property
    def names(self) -> set[str]:
        """The assignment strategies that the member can use."""
        return {name for name, _ in self.protocols}

    @property
    def is_static(self) -> bool:
        """Whether it has a group.instance.id, and so keeps its place across restarts (KIP-345)."""
        return self.instance_id is not None

    def metadata(self, protocol_name: str) -> bytes:
        """Its metadata for a protocol; empty if it does not support that protocol."""
        return dict(self.protocols).get(protocol_name, b"")

    def take(self, request: JoinRequest) -> None:
        """Replace what the member said before with what it says now."""
        self.client_id, self.client_host = request.client_id, request.client_host
        self.session_timeout_ms = request.session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms(request)
        self.protocols = request.protocols
        self.said_bytes = request.held_bytes

    @property
    def stored(self) -> MemberMetadata:
        """What survives a restart of the broker."""
        return MemberMetadata(
            self.member_id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.session_timeout_ms,
            self.rebalance_timeout_ms,
            self.protocols,
            self.assignment,
        )


def restored_member(stored: MemberMetadata, now_ms: int) -> Member:
    """Restore a stored member. Its session starts anew."""
    said = sum(PROTOCOL_BYTES + len(name) + len(metadata) for name, metadata in stored.protocols)
    return Member(
        *stored[:7],
        deadline_ms=now_ms + stored.session_timeout_ms,
        assignment=stored.assignment,
        is_new=False,
        is_synced=True,
        said_bytes=MEMBER_BYTES + said,
    )


def new_member(request: JoinRequest, member_id: str) -> Member:
    """The new member that `request` asks for."""
    return Member(
        member_id=member_id,
        instance_id=request.instance_id,
        client_id=request.client_id,
        client_host=request.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        protocols=request.protocols,
    )


def rebalance_timeout_ms(request: JoinRequest) -> int:
    """The rebalance timeout. Requests of version 0 have none, so the session timeout is used."""
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms > 0 else request.session_timeout_ms


def common_protocols(members: Iterable[Member]) -> set[str]:
    """Names of the protocols that all members support; empty if there are no members."""
    names = [member.names for member in members]
    return set.intersection(*names) if names else set()


def elected_protocol(members: Sequence[Member]) -> str:
    """The protocol with the most votes. Each member votes for the first on its list that all members support.

    On a tie, the one that was voted for first.
    """
    candidates = common_protocols(members)
    votes = Counter(next(name for name, _ in m.protocols if name in candidates) for m in members)
    return votes.most_common(1)[0][0]


def is_due(at_ms: int | None, now_ms: int) -> bool:
    """Whether a time in milliseconds has come. None never comes."""
    return at_ms is not None and at_ms <= now_ms

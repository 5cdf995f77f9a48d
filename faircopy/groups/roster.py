"""Who is in a group: its members, the ids of static ones (KIP-345), and ids given to clients that have yet to
join with them (KIP-394). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from faircopy.groups.group_metadata import MemberMetadata
from faircopy.groups.members import (
    MEMBER_BYTES,
    JoinedMember,
    JoinRequest,
    Member,
    common_protocols,
    restored_member,
)
from faircopy.wire.error_codes import ErrorCode


class Roster:
    """`members` are in the order in which they came. `pending` maps ids that were given away to the time, in
    milliseconds, until which they are kept.
    """

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.pending: dict[str, int] = {}
        self.leader_id: str | None = None
        self._static_ids: dict[str, str] = {}  # member id by instance id

    @classmethod
    def restored(cls, stored: Iterable[MemberMetadata], leader_id: str | None, now_ms: int) -> Roster:
        """Restore the stored members. All sessions start anew."""
        roster = cls()
        roster.leader_id = leader_id
        for each in stored:
            roster.add(restored_member(each, now_ms))
        return roster

    # -- coming and going ------------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Add a member."""
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._static_ids[member.instance_id] = member.member_id

    def rename(self, member: Member, member_id: str) -> None:
        """Give a static member another id: it takes the place of its former self."""
        del self.members[member.member_id]
        if self.leader_id == member.member_id:
            self.leader_id = member_id
        member.member_id = member_id
        self.add(member)

    def remove(self, member: Member) -> None:
        """Remove a member. If it was the leader, another one becomes the leader."""
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def drop_overdue(self, now_ms: int) -> None:
        """Forget the ids with which nobody joined in time."""
        for member_id in [i for i, deadline_ms in self.pending.items() if deadline_ms <= now_ms]:
            del self.pending[member_id]

    # -- looking ---------------------------------------------------------------------------------------------

    @property
    def all(self) -> list[Member]:
        """All members."""
        return list(self.members.values())

    @property
    def joined(self) -> list[Member]:
        """The members that have joined the present rebalance."""
        return [member for member in self.members.values() if member.join_ticket is not None]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def held_bytes(self) -> int:
        """About how much memory the members take."""
        return sum(member.held_bytes for member in self.members.values()) + MEMBER_BYTES * len(self.pending)

    def static_member(self, instance_id: str | None) -> Member | None:
        """The member with this instance id."""
        member_id = self._static_ids.get(instance_id) if instance_id is not None else None
        return self.members[member_id] if member_id is not None else None

    def named(self, protocol: str) -> list[JoinedMember]:
        """All members with their metadata for this protocol, as the leader is told."""
        return [JoinedMember(m.member_id, m.instance_id, m.metadata(protocol)) for m in self.members.values()]

    def standing(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """NONE if this is a member whose place was not taken; otherwise the error."""
        if instance_id is not None:
            present_id = self._static_ids.get(instance_id)
            if present_id is not None and present_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if present_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    # -- a joiner --------------------------------------------------------------------------------------------

    def refusal(self, request: JoinRequest, members_max: int) -> ErrorCode:
        """Why a joiner is refused for its identity or for the number of members; NONE if it is not."""
        if request.member_id:
            is_expected = request.member_id in self.pending and request.instance_id not in self._static_ids
            return ErrorCode.NONE if is_expected else self.standing(request.member_id, request.instance_id)
        is_replacement = request.instance_id in self._static_ids
        is_full = len(self.members) + len(self.pending) >= members_max
        return ErrorCode.GROUP_MAX_SIZE_REACHED if is_full and not is_replacement else ErrorCode.NONE

    def growth(self, request: JoinRequest) -> int:
        """By how many bytes the group would grow with this joiner."""
        member_id = request.member_id or self._static_ids.get(request.instance_id or "", "")
        present = self.members.get(member_id)
        if present is not None:
            return request.held_bytes - present.said_bytes
        return request.held_bytes - (MEMBER_BYTES if member_id in self.pending else 0)

    def is_compatible(self, request: JoinRequest, protocol_type: str | None) -> bool:
        """Whether a joiner has a protocol in common with all *other* members."""
        if not request.protocol_type or not request.protocols:
            return False
        former = self.static_member(request.instance_id)
        own_ids = {request.member_id, former.member_id if former is not None else ""}
        others = [member for member in self.members.values() if member.member_id not in own_ids]
        if not others:
            return True
        return request.protocol_type == protocol_type and bool(request.names & common_protocols(others))

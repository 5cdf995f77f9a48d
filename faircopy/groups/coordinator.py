"""The group coordinator: requests about consumer groups in, response bodies out.

Bodies are the same for every version of a request: the codec leaves out what a version lacks.
`membership.Group` makes all decisions about members; an `OffsetStore` keeps the offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from faircopy.groups.administration import GroupAdministration
from faircopy.groups.members import (
    GroupLimits,
    HeldMemory,
    Identity,
    JoinAnswer,
    JoinRequest,
    SyncAnswer,
    SyncRequest,
)
from faircopy.groups.membership import Group
from faircopy.groups.offset_requests import (
    asked_for,
    delete_offsets,
    fetch_offsets,
    no_offsets,
    sort_offsets,
)
from faircopy.groups.offsets import OffsetStore, TopicIds, error_of
from faircopy.groups.registry import CallLater, GroupRegistry, GroupsClosed, NowMs, WhenGone
from faircopy.loop.pace import NO_PACE, Pace
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode

MEMBER_ID_REQUIRED_FROM = 4
"""From this version of JoinGroup on, a new member has to join twice (KIP-394)."""

SKIP_ASSIGNMENT_FROM = 9
"""From this version of JoinGroup on, a leader can be told that the present assignment stays (KIP-814)."""

GROUPS_MAX = 100_000
"""Most groups with members at a time. Whoever joins one more is told to try again."""

STRAY_BYTES_MAX = 64 << 10
"""Most bytes of assignments from a member that is not the leader. They only take memory while it waits."""

NAME_CHARS_MAX = 200
"""How much of the client id goes into a member id."""

Body = dict[str, Any]


class GroupCoordinator:
    """The consumer groups of some offsets partitions. `held` is shared by all coordinators of a process.

    `call_later` and `now_ms` are the only source of time. `fresh_id` returns a string that it never returned
    before. `steady_ms` is the clock of commits, and `topic_ids` knows which partitions exist.
    """

    def __init__(
        self,
        limits: GroupLimits,
        held: HeldMemory,
        offsets: OffsetStore,
        call_later: CallLater,
        now_ms: NowMs,
        fresh_id: Callable[[], str],
        steady_ms: NowMs,
        topic_ids: TopicIds,
    ) -> None:
        self._limits = limits
        self._registry = GroupRegistry(limits, held, offsets, call_later, now_ms)
        self._administration = GroupAdministration(self._registry, offsets)
        self._offsets = offsets
        self._steady_ms = steady_ms
        self._topic_ids = topic_ids
        self._now_ms = now_ms
        self._fresh_id = fresh_id

    def restore(self) -> None:
        """Restore the stored groups, before any request arrives."""
        self._registry.restore()

    def is_active(self, group_id: str) -> bool:
        """Whether a group has members now, or is about to have some."""
        return group_id in self._registry.groups

    def close(self) -> None:
        """Give up these groups: they have another coordinator now, or none. All who wait or ask are told."""
        self._registry.close()

    @property
    def _closed(self) -> ErrorCode:
        return ErrorCode.NOT_COORDINATOR if self._registry.is_closed else ErrorCode.NONE

    # -- members ---------------------------------------------------------------------------------------------

    async def join_group(
        self,
        request: Message,
        version: int,
        client_id: str | None,
        client_host: str,
        when_gone: WhenGone | None = None,
    ) -> Body:
        """JoinGroup. Returns when the rebalance that it takes part in is over."""
        joining = self._join_request(request, version, client_id or "", client_host)
        group = self._registry.find_or_make(request.group_id)
        error = self._join_refusal(group, joining)
        if error:
            return join_body(JoinAnswer(error, request.member_id))
        now_ms = self._now_ms()

        def join(ticket: int) -> list[Any]:
            return group.join(joining._replace(ticket=ticket), now_ms)

        try:
            return join_body(await self._registry.answer(group, join, when_gone))
        except GroupsClosed:
            return join_body(JoinAnswer(ErrorCode.NOT_COORDINATOR, request.member_id))

    def _join_refusal(self, group: Group, joining: JoinRequest) -> ErrorCode:
        if not group.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if error := self._closed or self._unreplicable(group.group_id):
            return error
        is_held = group.group_id in self._registry.groups
        if joining.member_id and not is_held:
            return ErrorCode.UNKNOWN_MEMBER_ID
        growth = group.roster.growth(joining)
        is_full = growth > 0 and self._registry.held.bytes + growth > self._limits.all_bytes_max
        if is_full or (not is_held and self._registry.held.groups >= GROUPS_MAX):
            # When others leave there is room again, so the client may try again. A group rejects what is too
            # much for it alone, and that is final.
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.NONE

    def _join_request(self, request: Message, version: int, client_id: str, client_host: str) -> JoinRequest:
        instance_id = request.group_instance_id or None
        return JoinRequest(
            ticket=0,
            member_id=request.member_id,
            fresh_member_id=f"{(instance_id or client_id)[:NAME_CHARS_MAX]}-{self._fresh_id()}",
            instance_id=instance_id,
            client_id=client_id,
            client_host=client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=tuple((p.name, p.metadata) for p in request.protocols),
            needs_known_id=version >= MEMBER_ID_REQUIRED_FROM,
            can_skip_assignment=version >= SKIP_ASSIGNMENT_FROM,
            reason=request.reason or "",
        )

    async def sync_group(self, request: Message) -> Body:
        """SyncGroup. Returns when the leader has sent the assignment."""
        group, error = self._member_group(request.group_id)
        if group is None:
            return sync_body(SyncAnswer(error))
        asked = (identity_of(request), request.protocol_type, request.protocol_name)
        assignments = {a.member_id: a.assignment for a in request.assignments}
        assigned_bytes = sum(map(len, assignments.values()))
        if request.member_id != group.leader_id and assigned_bytes > STRAY_BYTES_MAX:
            return sync_body(SyncAnswer(ErrorCode.INVALID_REQUEST))
        if assigned_bytes and self._registry.held.bytes + assigned_bytes > self._limits.all_bytes_max:
            return sync_body(SyncAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        now_ms = self._now_ms()

        def sync(ticket: int) -> list[Any]:
            return group.sync(SyncRequest(ticket, *asked, assignments), now_ms)

        try:
            return sync_body(await self._registry.answer(group, sync))
        except GroupsClosed:
            return sync_body(SyncAnswer(ErrorCode.NOT_COORDINATOR))

    async def heartbeat(self, request: Message) -> Body:
        """Heartbeat."""
        group, error = self._member_group(request.group_id)
        if group is not None:
            error = group.heartbeat(identity_of(request), self._now_ms())
        return {"error_code": error}

    async def leave_group(self, request: Message) -> Body:
        """LeaveGroup: one member (before version 3), or many. In a set it returns when that is durable:
        otherwise a new leader could bring back a generation that its members have left (B12).
        """
        if error := self._unreplicable(request.group_id):
            return {"error_code": error, "members": []}
        group, error = self._member_group(request.group_id)
        if request.members and request.group_id and not self._closed:
            left = [self._left_body(request.group_id, m) for m in request.members]
            await self._offsets.replicated(request.group_id)
            return {"error_code": ErrorCode.NONE, "members": left}
        if group is not None:
            error = self._leave(group, request.member_id, None)
            await self._offsets.replicated(request.group_id)
        return {"error_code": error, "members": []}

    def _left_body(self, group_id: str, member: Message) -> Body:
        # Looked up anew for each one: the group disappears with its last member.
        group, error = self._member_group(group_id)
        if group is not None:
            error = self._leave(group, member.member_id, member.group_instance_id or None)
        named = {"member_id": member.member_id, "group_instance_id": member.group_instance_id}
        return {**named, "error_code": error}

    def _leave(self, group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
        error, effects = group.leave(member_id, instance_id, self._now_ms())
        self._registry.run(group, effects)
        return error

    def _unreplicable(self, group_id: str) -> ErrorCode:
        """The refusal of whatever changes a group while other replicas can't be told of that."""
        is_replicable = self._closed or self._offsets.is_replicable(group_id)
        return ErrorCode.NONE if is_replicable else ErrorCode.COORDINATOR_NOT_AVAILABLE

    def _member_group(self, group_id: str) -> tuple[Group | None, ErrorCode]:
        """The group that a member names, or why there is none."""
        if not group_id:
            return None, ErrorCode.INVALID_GROUP_ID
        if self._closed:
            return None, self._closed
        group = self._registry.find(group_id)
        return group, ErrorCode.NONE if group is not None else ErrorCode.UNKNOWN_MEMBER_ID

    # -- offsets ---------------------------------------------------------------------------------------------

    async def offset_commit(self, request: Message, pace: Pace = NO_PACE) -> Body:
        """OffsetCommit. Returns when the offsets are durable."""
        offsets = await sort_offsets(request.topics, self._topic_ids, self._steady_ms(), pace)
        error = self._commit_error(request, is_transactional=False)
        if not error and (accepted := offsets.accepted):
            error = await error_of(self._offsets.commit(request.group_id, accepted))
        return await offsets.answer(request.topics, error, pace)

    def check_txn_offset_commit(self, request: Message) -> ErrorCode:
        """Whether the group lets the sender of a TxnOffsetCommit commit (KIP-447)."""
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        return self._commit_error(request, is_transactional=True)

    def _commit_error(self, request: Message, is_transactional: bool) -> ErrorCode:
        if self._closed:
            return self._closed
        identity = identity_of(request)
        group = self._registry.find(request.group_id)
        if group is not None:
            return group.check_commit(identity, self._now_ms(), is_transactional)
        return ErrorCode.NONE if identity.is_anonymous else ErrorCode.ILLEGAL_GENERATION

    async def fetch_offsets(
        self, group_id: str, topics: Sequence[Message] | None, stable: bool, pace: Pace
    ) -> Body:
        """The answer of OffsetFetch for one group: the offsets of these topics, or of all."""
        is_settled = await self._offsets.settle(group_id)
        if self._closed:
            return no_offsets(topics, self._closed)
        if not is_settled and not stable:
            # A commit is acknowledged but not yet visible, so an older offset would be wrong (P8). With
            # `stable`, unsettled partitions get errors of their own.
            return no_offsets(topics, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return await fetch_offsets(self._offsets, self._topic_ids, group_id, topics, stable, pace)

    async def offset_delete(self, request: Message, pace: Pace = NO_PACE) -> Body:
        """OffsetDelete (KIP-496)."""
        asked = await asked_for(request.topics, pace)
        is_settled = await self._offsets.settle(request.group_id)
        async with self._administration.deleting:
            refusal = ErrorCode.NONE if is_settled else ErrorCode.COORDINATOR_NOT_AVAILABLE
            if error := self._closed or refusal:
                return {"error_code": error, "topics": []}
            group = self._registry.find(request.group_id)
            return await delete_offsets(self._offsets, self._topic_ids, group, request, asked, pace)

    # -- administration --------------------------------------------------------------------------------------

    def describe(self, group_id: str) -> Body:
        """The answer of DescribeGroups for a group, without authorized operations."""
        if self._closed:
            return {"error_code": self._closed, "group_id": group_id, "group_state": "", "protocol_type": "",
                    "protocol_data": "", "members": []}  # fmt: skip
        return self._administration.description(group_id)

    def listing(self, request: Message) -> list[Body]:
        """The answer of ListGroups for the groups here, or for those of the requested states and types."""
        return self._administration.listing(request.states_filter, request.types_filter)

    async def delete(self, group_id: str) -> ErrorCode:
        """Delete a group without members, and its offsets (KIP-229). Durable when done."""
        return self._closed or await self._administration.delete(group_id)


def identity_of(request: Message) -> Identity:
    """The sender of a SyncGroup, Heartbeat, OffsetCommit or TxnOffsetCommit."""
    return Identity(request.member_id, request.group_instance_id or None, request.generation_id)


def join_body(answer: JoinAnswer) -> Body:
    """The body of a JoinGroup response."""
    return {
        "error_code": answer.error,
        "generation_id": answer.generation,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol_name,
        "leader": answer.leader_id,
        "skip_assignment": answer.skip_assignment,
        "member_id": answer.member_id,
        "members": [
            {"member_id": m.member_id, "group_instance_id": m.instance_id, "metadata": m.metadata}
            for m in answer.members
        ],
    }


def sync_body(answer: SyncAnswer) -> Body:
    """The body of a SyncGroup response."""
    return {
        "error_code": answer.error,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol_name,
        "assignment": answer.assignment,
    }

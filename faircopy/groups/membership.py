"""The membership of one consumer group: the classic protocol (KIP-62, KIP-345, KIP-394, KIP-814). Pure.

A rebalance goes through these states:

    EMPTY, STABLE or COMPLETING   --a member comes, goes or changes-->  PREPARING: members are to join again
    PREPARING    --all have joined, or time is up-->  COMPLETING: a new generation; its leader assigns
    COMPLETING   --the leader sends the assignment, and it is durable-->  STABLE

Methods take values and the time, and return effects. A group has one timer: `WakeAt` requests it, and `tick`
then does whatever is overdue. `StoreGroup` stores a stable or empty group, so a restart of the broker causes
no rebalance. Nobody is told an assignment, or a static member's new id, before it is durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from faircopy.errors import invariant
from faircopy.groups.group_metadata import GroupMetadata
from faircopy.groups.group_state import Event, GroupState, state_after
from faircopy.groups.join_wait import JoinWait
from faircopy.groups.members import (
    AnswerJoin,
    AnswerSync,
    Effect,
    GroupLimits,
    Identity,
    JoinAnswer,
    JoinRequest,
    Member,
    SyncAnswer,
    SyncRequest,
    WakeAt,
    elected_protocol,
    is_due,
    new_member,
)
from faircopy.groups.roster import Roster
from faircopy.groups.storing import Storing
from faircopy.wire.error_codes import ErrorCode

NEW_MEMBER_JOIN_MS = 300_000
"""How long a new member may wait for its first rebalance to end. Its client may have come back as another."""

PENDING_MEMBER_MS_MAX = 60_000
"""How long a member id is kept for a client that is to join again with it; at most its session timeout."""


class Group:
    """One group. `members` are in the order in which they came; `generation` only grows."""

    def __init__(self, group_id: str, limits: GroupLimits) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.roster = Roster()
        self._limits = limits
        self._join_wait = JoinWait()
        self._sync_deadline_ms: int | None = None
        self._wake_ms: int | None = None
        self._effects: list[Effect] = []
        self._storing = Storing()
        self._assigning: int | None = None  # the number of the StoreGroup with the generation's assignment

    @classmethod
    def restored(cls, group_id: str, limits: GroupLimits, metadata: GroupMetadata, now_ms: int) -> Group:
        """Restore a stored group: stable, or empty if it has no members. All sessions start anew."""
        group = cls(group_id, limits)
        group.state = GroupState.STABLE if metadata.members else GroupState.EMPTY
        group.generation = metadata.generation
        group.protocol_type, group.protocol_name = metadata.protocol_type, metadata.protocol_name
        group.roster = Roster.restored(metadata.members, metadata.leader_id, now_ms)
        group._storing = Storing(is_kept=True)
        return group

    @property
    def members(self) -> dict[str, Member]:
        """Its members by id, in the order in which they came."""
        return self.roster.members

    @property
    def leader_id(self) -> str | None:
        """The member that makes the assignment."""
        return self.roster.leader_id

    @property
    def is_idle(self) -> bool:
        """Whether this object holds nothing beyond what is stored, so that it may be dropped."""
        is_over = self.state is GroupState.EMPTY and self._storing.is_over
        return (is_over or self.state is GroupState.DEAD) and not self.roster.pending

    @property
    def is_stored(self) -> bool:
        """Whether it is stable or empty, and stored in its present state."""
        is_kept = self._storing.is_kept and self._storing.is_over
        return is_kept and self.state in (GroupState.STABLE, GroupState.EMPTY)

    @property
    def held_bytes(self) -> int:
        """About how much memory its members take."""
        return self.roster.held_bytes

    @property
    def metadata(self) -> GroupMetadata:
        """What survives a restart of the broker."""
        members = tuple(member.stored for member in self.roster.all)
        return GroupMetadata(
            self.generation, self.protocol_type, self.protocol_name, self.roster.leader_id, members
        )

    # -- JoinGroup -------------------------------------------------------------------------------------------

    def join(self, request: JoinRequest, now_ms: int) -> list[Effect]:
        """Take a JoinGroup: its ticket is answered now or by a later effect."""
        error = self._join_error(request)
        if error:
            self._answer_join(request.ticket, JoinAnswer(error, request.member_id))
        elif not request.member_id:
            self._join_without_id(request, now_ms)
        elif request.member_id in self.roster.pending:
            del self.roster.pending[request.member_id]
            self._add(request, request.member_id, now_ms)
        else:
            self._join_again(request, self.members[request.member_id], now_ms)
        return self._taken()

    def _join_error(self, request: JoinRequest) -> ErrorCode:
        """Why a join is refused, or NONE."""
        limits = self._limits
        if not limits.session_timeout_min_ms <= request.session_timeout_ms <= limits.session_timeout_max_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not self.roster.is_compatible(request, self.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        growth = self.roster.growth(request)
        if growth > 0 and self.held_bytes + growth > limits.bytes_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return self.roster.refusal(request, limits.members_max)

    def _join_without_id(self, request: JoinRequest, now_ms: int) -> None:
        fresh = request.fresh_member_id
        former = self.roster.static_member(request.instance_id)
        if former is not None:
            self._replace(former, request, now_ms)
        elif request.needs_known_id and request.instance_id is None:
            self.roster.pending[fresh] = now_ms + min(request.session_timeout_ms, PENDING_MEMBER_MS_MAX)
            self._answer_join(request.ticket, JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, fresh))
        else:
            self._add(request, fresh, now_ms)

    def _add(self, request: JoinRequest, member_id: str, now_ms: int) -> None:
        member = new_member(request, member_id)
        self.roster.add(member)
        self._join_wait.note_member()
        self._await_join(member, request, now_ms)
        self._rebalance(now_ms)

    def _await_join(self, member: Member, request: JoinRequest, now_ms: int) -> None:
        self._dismiss(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.take(request)
        member.join_ticket = request.ticket
        member.deadline_ms = now_ms + NEW_MEMBER_JOIN_MS if member.is_new else None
        self.protocol_type = request.protocol_type
        self.roster.leader_id = self.roster.leader_id or member.member_id

    def _join_again(self, request: JoinRequest, member: Member, now_ms: int) -> None:
        """A member joins with its id. In a running generation, that may change nothing."""
        is_unchanged = member.protocols == request.protocols
        is_leader = member.member_id == self.roster.leader_id
        knows_all = self.state is GroupState.COMPLETING or (self.state is GroupState.STABLE and not is_leader)
        if is_unchanged and knows_all:
            self._answer_join(request.ticket, self._join_answer(member))
            self._keep_alive(member, now_ms)
        else:
            self._await_join(member, request, now_ms)
            self._rebalance(now_ms)

    def _replace(self, member: Member, request: JoinRequest, now_ms: int) -> None:
        """A static member comes back without its id, and takes the place of its former self (KIP-345)."""
        former_leader = self.roster.leader_id
        self._dismiss(member, ErrorCode.FENCED_INSTANCE_ID)
        self.roster.rename(member, request.fresh_member_id)
        member.take(request)
        if self.state is GroupState.STABLE and elected_protocol(self.roster.all) == self.protocol_name:
            answer = self._join_answer(member)
            if request.can_skip_assignment:
                answer = answer._replace(skip_assignment=answer.leader_id == answer.member_id)
            else:
                # With the former leader's id in the answer, a returning leader acts as a follower: the
                # assignment stays. But then nobody watches whether topics get more partitions (KAFKA-13435).
                answer = answer._replace(leader_id=former_leader or "", members=())
            self._storing.hold(self._store(), AnswerJoin(request.ticket, answer))
            self._keep_alive(member, now_ms)
            return
        self._await_join(member, request, now_ms)
        self._rebalance(now_ms)

    # -- the rebalance ---------------------------------------------------------------------------------------

    def _rebalance(self, now_ms: int) -> None:
        """Have all members join again."""
        if self.state is not GroupState.PREPARING:
            self._prepare(now_ms)
        self._complete_if_all_joined(now_ms)

    def _prepare(self, now_ms: int) -> None:
        is_first = self.state is GroupState.EMPTY
        for member in self.roster.all:
            if member.sync_ticket is not None:
                self._answer_sync(member, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
                self._keep_alive(member, now_ms)
        self._go(Event.REBALANCE)
        self._sync_deadline_ms = self._assigning = None
        limit_ms = self.roster.rebalance_timeout_ms
        if is_first:
            self._join_wait.start_first(self._limits.initial_rebalance_delay_ms, limit_ms, now_ms)
        else:
            self._join_wait.start(limit_ms, now_ms)

    def _complete_if_all_joined(self, now_ms: int) -> None:
        is_waiting = self._join_wait.is_for_more or self.roster.pending
        if (
            self.state is GroupState.PREPARING
            and not is_waiting
            and len(self.roster.joined) == len(self.members)
        ):
            self._complete_join(now_ms)

    def _complete_join(self, now_ms: int) -> None:
        """Start the next generation, with those who joined and static members whose session still lasts."""
        for member in self.roster.all:
            if member.join_ticket is None and not member.is_static:
                self._forget(member)
        joined = self.roster.joined
        if self.members and not joined:
            self._join_wait.start(self.roster.rebalance_timeout_ms, now_ms)
            return
        self.generation += 1
        self._join_wait.end()
        if joined:
            self._begin_generation(joined, now_ms)
        else:
            self._go(Event.EMPTIED)
            self.protocol_name = self.roster.leader_id = None
            if self._storing.is_kept:
                self._store()

    def _begin_generation(self, joined: list[Member], now_ms: int) -> None:
        if self.members[self.roster.leader_id or ""].join_ticket is None:
            self.roster.leader_id = joined[0].member_id
        self.protocol_name = elected_protocol(self.roster.all)
        self._go(Event.JOINED)
        self._sync_deadline_ms = now_ms + self.roster.rebalance_timeout_ms
        for member in self.roster.all:
            member.assignment, member.is_synced = b"", False
        for member in joined:
            assert member.join_ticket is not None
            self._answer_join(member.join_ticket, self._join_answer(member))
            member.join_ticket, member.is_new = None, False
            self._keep_alive(member, now_ms)

    def _join_answer(self, member: Member) -> JoinAnswer:
        """The present generation, as told to one of its members."""
        invariant(self.protocol_name is not None, "a generation has a protocol")
        is_leader = member.member_id == self.roster.leader_id
        return JoinAnswer(
            ErrorCode.NONE,
            member.member_id,
            self.generation,
            self.protocol_type,
            self.protocol_name or "",
            self.roster.leader_id or "",
            self.roster.named(self.protocol_name or "") if is_leader else (),
        )

    # -- SyncGroup -------------------------------------------------------------------------------------------

    def sync(self, request: SyncRequest, now_ms: int) -> list[Effect]:
        """Take a SyncGroup: its ticket is answered now or by a later effect."""
        error = self._sync_error(request)
        if error:
            self._effects.append(AnswerSync(request.ticket, SyncAnswer(error)))
            return self._taken()
        member = self.members[request.identity.member_id]
        self._dismiss(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync_ticket, member.is_synced = request.ticket, True
        member.deadline_ms = None
        if self.state is GroupState.STABLE:
            self._hand_out([member], now_ms)
        elif member.member_id == self.roster.leader_id and self._assigning is None:
            self._assign(request.assignments)
        return self._taken()

    def _sync_error(self, request: SyncRequest) -> ErrorCode:
        error = self._identity_error(request.identity)
        if error:
            return error
        if self.state is GroupState.PREPARING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        given = (request.protocol_type, request.protocol_name)
        ours = (self.protocol_type, self.protocol_name)
        if any(a is not None and a != b for a, b in zip(given, ours, strict=True)):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assigned_bytes = sum(len(request.assignments.get(member_id, b"")) for member_id in self.members)
        if assigned_bytes and self.held_bytes + assigned_bytes > self._limits.bytes_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _assign(self, assignments: Mapping[str, bytes]) -> None:
        for member in self.roster.all:
            member.assignment = assignments.get(member.member_id, b"")
        self._assigning = self._store()

    def _assignment_is_stored(self, error: ErrorCode, now_ms: int) -> None:
        self._assigning = None
        waiting = [member for member in self.roster.all if member.sync_ticket is not None]
        if not error:
            self._go(Event.ASSIGNED)
            self._hand_out(waiting, now_ms)
            return
        for member in waiting:
            self._answer_sync(member, SyncAnswer(error))
            self._keep_alive(member, now_ms)
        self._rebalance(now_ms)

    def _hand_out(self, members: Iterable[Member], now_ms: int) -> None:
        for member in members:
            answer = SyncAnswer(ErrorCode.NONE, self.protocol_type, self.protocol_name, member.assignment)
            self._answer_sync(member, answer)
            self._keep_alive(member, now_ms)
        if all(member.is_synced for member in self.roster.all):
            self._sync_deadline_ms = None

    def _sync_time_is_up(self, now_ms: int) -> None:
        """Remove members that joined but never asked for their assignment: they are considered dead."""
        self._sync_deadline_ms = None
        self._remove([m for m in self.roster.all if not m.is_synced], now_ms)

    # -- storing ---------------------------------------------------------------------------------------------

    def _store(self) -> int:
        effect = self._storing.begin(self.metadata)
        self._effects.append(effect)
        return effect.number

    def stored(self, number: int, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Note the end of the StoreGroup of this number. It is durable, or with an error may not be."""
        self._effects += self._storing.end(number, error, now_ms)
        if number == self._assigning:
            self._assignment_is_stored(error, now_ms)
        return self._taken()

    def _store_again(self) -> None:
        self._storing.again_ms = None
        if self.state in (GroupState.EMPTY, GroupState.STABLE):
            self._store()

    # -- Heartbeat, LeaveGroup, commits ----------------------------------------------------------------------

    def heartbeat(self, identity: Identity, now_ms: int) -> ErrorCode:
        """Take a Heartbeat. It has no effects: it only extends a deadline."""
        error = self._identity_error(identity)
        if error:
            return error
        self._keep_alive(self.members[identity.member_id], now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is GroupState.PREPARING else ErrorCode.NONE

    def leave(self, member_id: str, instance_id: str | None, now_ms: int) -> tuple[ErrorCode, list[Effect]]:
        """Remove a member that leaves. Administrators name a static one by its instance id alone."""
        if member_id in self.roster.pending and instance_id is None:
            del self.roster.pending[member_id]
            self._complete_if_all_joined(now_ms)
            return ErrorCode.NONE, self._taken()
        if not member_id and instance_id is not None:
            named = self.roster.static_member(instance_id)
            member_id = named.member_id if named is not None else ""
        error = self.roster.standing(member_id, instance_id)
        if not error:
            self._remove([self.members[member_id]], now_ms)
        return error, self._taken()

    def check_commit(self, identity: Identity, now_ms: int, is_transactional: bool = False) -> ErrorCode:
        """Whether offsets may be committed for this group. A member's commit counts as a heartbeat.

        A client without an identity may commit to a group without members, and in a transaction to any group
        (KIP-447).
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if identity.is_anonymous:
            is_allowed = is_transactional or self.state is GroupState.EMPTY
            return ErrorCode.NONE if is_allowed else ErrorCode.UNKNOWN_MEMBER_ID
        error = self._identity_error(identity)
        if error:
            return error
        if self.state is GroupState.COMPLETING and not is_transactional:
            return ErrorCode.REBALANCE_IN_PROGRESS
        self._keep_alive(self.members[identity.member_id], now_ms)
        return ErrorCode.NONE

    def delete(self) -> ErrorCode:
        """Delete a group that has no members."""
        if self.state is not GroupState.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        self.roster.pending.clear()
        self._go(Event.DELETED)
        return ErrorCode.NONE

    def _identity_error(self, identity: Identity) -> ErrorCode:
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self.roster.standing(identity.member_id, identity.instance_id)
        if error:
            return error
        return ErrorCode.NONE if identity.generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def abandon(self, ticket: int, now_ms: int) -> list[Effect]:
        """Note that the client of a waiting JoinGroup is gone. A member that is new is removed at once."""
        for member in [member for member in self.roster.all if member.join_ticket == ticket]:
            member.join_ticket = None
            if member.is_new:
                self._remove([member], now_ms)
            else:
                self._keep_alive(member, now_ms)
        return self._taken()

    # -- time ------------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> list[Effect]:
        """Do whatever is due."""
        self._wake_ms = None
        self.roster.drop_overdue(now_ms)
        self._remove([m for m in self.roster.all if is_due(m.deadline_ms, now_ms)], now_ms)
        self._complete_if_all_joined(now_ms)
        if is_due(self._join_wait.deadline_ms, now_ms) and not self._join_wait.has_gone_on(now_ms):
            self._complete_join(now_ms)
        if is_due(self._sync_deadline_ms, now_ms):
            self._sync_time_is_up(now_ms)
        if is_due(self._storing.again_ms, now_ms):
            self._store_again()
        return self._taken()

    def _keep_alive(self, member: Member, now_ms: int) -> None:
        """Extend the member's deadline, unless it waits for our answer."""
        if member.join_ticket is None and member.sync_ticket is None:
            member.deadline_ms = now_ms + member.session_timeout_ms

    def _deadlines(self) -> list[int]:
        own = (self._join_wait.deadline_ms, self._sync_deadline_ms, *self.roster.pending.values())
        theirs = (member.deadline_ms for member in self.roster.all)
        store_again_ms = None if self.state is GroupState.DEAD else self._storing.again_ms
        return [at_ms for at_ms in (*own, *theirs, store_again_ms) if at_ms is not None]

    def _taken(self) -> list[Effect]:
        """The effects so far, plus a WakeAt if something is due earlier than the last one requested."""
        earliest_ms = min(self._deadlines(), default=None)
        if earliest_ms is not None and (self._wake_ms is None or earliest_ms < self._wake_ms):
            self._wake_ms = earliest_ms
            self._effects.append(WakeAt(earliest_ms))
        effects, self._effects = self._effects, []
        return effects

    # -- parts -----------------------------------------------------------------------------------------------

    def _go(self, event: Event) -> None:
        self.state = state_after(self.state, event)

    def _remove(self, members: list[Member], now_ms: int) -> None:
        """Remove members, and rebalance those who stay."""
        for member in members:
            self._forget(member)
        if members:
            self._rebalance(now_ms)

    def _forget(self, member: Member) -> None:
        self._dismiss(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self.roster.remove(member)

    def _dismiss(self, member: Member, error: ErrorCode) -> None:
        """Answer what the member still waits for, because it is gone or has asked again."""
        if member.join_ticket is not None:
            self._answer_join(member.join_ticket, JoinAnswer(error, member.member_id))
            member.join_ticket = None
        if member.sync_ticket is not None:
            self._answer_sync(member, SyncAnswer(error))

    def _answer_join(self, ticket: int, answer: JoinAnswer) -> None:
        self._effects.append(AnswerJoin(ticket, answer))

    def _answer_sync(self, member: Member, answer: SyncAnswer) -> None:
        assert member.sync_ticket is not None
        self._effects.append(AnswerSync(member.sync_ticket, answer))
        member.sync_ticket = None

"""The membership of one consumer group: the classic protocol (KIP-62, KIP-345, KIP-394), as a pure state machine.

A rebalance goes round like this:

    EMPTY, STABLE or COMPLETING   --a member comes, goes or changes-->  PREPARING: members are to join again
    PREPARING    --all have joined, or time is up-->  COMPLETING: a new generation; its leader makes the assignment
    COMPLETING   --the leader sends the assignment, and it is durable-->  STABLE

Methods take values and the time, and return effects. There is one timer for a group: it is asked for with `WakeAt`, and
then `tick` looks for whatever is overdue. What a group is when it is stable or empty is stored (`StoreGroup`), so a
restart of the broker is no reason to rebalance: nobody is told of an assignment, or of a static member's new id, before
it is durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto

from faircopy.errors import invariant
from faircopy.groups.group_metadata import GroupMetadata
from faircopy.groups.members import (
    MEMBER_BYTES,
    AnswerJoin,
    AnswerSync,
    Effect,
    GroupLimits,
    Identity,
    JoinAnswer,
    JoinedMember,
    JoinRequest,
    Member,
    SyncAnswer,
    SyncRequest,
    WakeAt,
    common_protocols,
    elected_protocol,
    is_due,
    new_member,
    restored_member,
)
from faircopy.groups.storing import Storing
from faircopy.wire.error_codes import ErrorCode

NEW_MEMBER_JOIN_MS = 300_000
"""So long a new member waits for its first rebalance to end; its client may be gone and come back as another."""

PENDING_MEMBER_MS_MAX = 60_000
"""So long a member id is kept for a client that was told to join again with it, if its session allows as much."""


class Phase(Enum):
    """The phases of a group; values as Kafka's tools show them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Event(Enum):
    """What moves a group from phase to phase."""

    REBALANCE = auto()
    EMPTIED = auto()
    JOINED = auto()
    ASSIGNED = auto()
    DELETED = auto()


TRANSITIONS: Mapping[tuple[Phase, Event], Phase] = {
    (Phase.EMPTY, Event.REBALANCE): Phase.PREPARING,
    (Phase.STABLE, Event.REBALANCE): Phase.PREPARING,
    (Phase.COMPLETING, Event.REBALANCE): Phase.PREPARING,
    (Phase.PREPARING, Event.EMPTIED): Phase.EMPTY,
    (Phase.PREPARING, Event.JOINED): Phase.COMPLETING,
    (Phase.COMPLETING, Event.ASSIGNED): Phase.STABLE,
    (Phase.EMPTY, Event.DELETED): Phase.DEAD,
}


class Group:
    """One group. `members` are in the order in which they came; `generation` only grows."""

    def __init__(self, group_id: str, limits: GroupLimits) -> None:
        self.group_id = group_id
        self.phase = Phase.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, Member] = {}
        self._limits = limits
        self._static_ids: dict[str, str] = {}  # member id by instance id
        self._pending: dict[str, int] = {}  # ids that were given away, and until when they are kept
        self._join_deadline_ms: int | None = None
        self._sync_deadline_ms: int | None = None
        self._initial_left_ms: int | None = None  # by so much the wait of a first rebalance can still grow
        self._member_added = False
        self._wake_ms: int | None = None
        self._effects: list[Effect] = []
        self._storing = Storing()
        self._assigning: int | None = None  # the number of the StoreGroup with the generation's assignment

    @classmethod
    def restored(cls, group_id: str, limits: GroupLimits, metadata: GroupMetadata, now_ms: int) -> Group:
        """A group as it was stored: stable, or empty without members. All sessions begin anew."""
        group = cls(group_id, limits)
        group.phase = Phase.STABLE if metadata.members else Phase.EMPTY
        group.generation = metadata.generation
        group.protocol_type, group.protocol_name = metadata.protocol_type, metadata.protocol_name
        group.leader_id = metadata.leader_id
        group.members = {stored.member_id: restored_member(stored, now_ms) for stored in metadata.members}
        group._static_ids = {m.instance_id: m.member_id for m in group._all() if m.instance_id is not None}
        group._storing = Storing(is_kept=True)
        return group

    @property
    def is_idle(self) -> bool:
        """Whether what is stored of it, if anything is, would do as well as this object."""
        is_over = self.phase is Phase.EMPTY and self._storing.is_over
        return (is_over or self.phase is Phase.DEAD) and not self._pending

    @property
    def is_stored(self) -> bool:
        """Whether it is stable or empty, and stored as it is."""
        is_kept = self._storing.is_kept and self._storing.is_over
        return is_kept and self.phase in (Phase.STABLE, Phase.EMPTY)

    @property
    def held_bytes(self) -> int:
        """Memory that its members take, about."""
        return sum(member.held_bytes for member in self._all()) + MEMBER_BYTES * len(self._pending)

    @property
    def metadata(self) -> GroupMetadata:
        """What outlives a restart of the broker."""
        members = tuple(member.stored for member in self._all())
        return GroupMetadata(self.generation, self.protocol_type, self.protocol_name, self.leader_id, members)

    # -- JoinGroup -----------------------------------------------------------------------------------------------

    def join(self, request: JoinRequest, now_ms: int) -> list[Effect]:
        """Take a JoinGroup: its ticket is answered now or by a later effect."""
        error = self._join_error(request)
        if error:
            self._answer_join(request.ticket, JoinAnswer(error, request.member_id))
        elif not request.member_id:
            self._join_without_id(request, now_ms)
        elif request.member_id in self._pending:
            del self._pending[request.member_id]
            self._add(request, request.member_id, now_ms)
        else:
            self._join_again(request, self.members[request.member_id], now_ms)
        return self._taken()

    def _join_error(self, request: JoinRequest) -> ErrorCode:
        """Why a join is refused, or NONE."""
        limits = self._limits
        if not limits.session_timeout_min_ms <= request.session_timeout_ms <= limits.session_timeout_max_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if self.phase is Phase.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not self._is_compatible(request):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if self.growth(request) > 0 and self.held_bytes + self.growth(request) > limits.bytes_max:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if request.member_id:
            return self._known_error(request.member_id, request.instance_id)
        is_replacement = request.instance_id in self._static_ids
        is_full = len(self.members) + len(self._pending) >= limits.members_max
        return ErrorCode.GROUP_MAX_SIZE_REACHED if is_full and not is_replacement else ErrorCode.NONE

    def _known_error(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if member_id in self._pending and instance_id not in self._static_ids:
            return ErrorCode.NONE
        return self._standing(member_id, instance_id)

    def growth(self, request: JoinRequest) -> int:
        """By how many bytes the group would grow."""
        member_id = request.member_id or self._static_ids.get(request.instance_id or "", "")
        present = self.members.get(member_id)
        if present is not None:
            return request.held_bytes - present.said_bytes
        return request.held_bytes - (MEMBER_BYTES if member_id in self._pending else 0)

    def _is_compatible(self, request: JoinRequest) -> bool:
        """Whether the joiner has a protocol in common with all *other* members."""
        if not request.protocol_type or not request.protocols:
            return False
        is_own = request.instance_id is not None
        own_ids = {request.member_id, self._static_ids.get(request.instance_id or "") if is_own else ""}
        others = [m for m in self.members.values() if m.member_id not in own_ids]
        if not others:
            return True
        return request.protocol_type == self.protocol_type and bool(request.names & common_protocols(others))

    def _join_without_id(self, request: JoinRequest, now_ms: int) -> None:
        fresh = request.fresh_member_id
        if request.instance_id in self._static_ids:
            self._replace(request, now_ms)
        elif request.needs_known_id and request.instance_id is None:
            self._pending[fresh] = now_ms + min(request.session_timeout_ms, PENDING_MEMBER_MS_MAX)
            self._answer_join(request.ticket, JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, fresh))
        else:
            self._add(request, fresh, now_ms)

    def _add(self, request: JoinRequest, member_id: str, now_ms: int) -> None:
        member = self.members[member_id] = new_member(request, member_id)
        if request.instance_id is not None:
            self._static_ids[request.instance_id] = member_id
        self._member_added = True
        self._await_join(member, request, now_ms)
        self._rebalance(now_ms)

    def _await_join(self, member: Member, request: JoinRequest, now_ms: int) -> None:
        self._dismiss(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.take(request)
        member.join_ticket = request.ticket
        member.deadline_ms = now_ms + NEW_MEMBER_JOIN_MS if member.is_new else None
        self.protocol_type = request.protocol_type
        self.leader_id = self.leader_id or member.member_id

    def _join_again(self, request: JoinRequest, member: Member, now_ms: int) -> None:
        """A member joins with its id: in a running generation, nothing may have changed for it."""
        is_unchanged = member.protocols == request.protocols
        is_leader = member.member_id == self.leader_id
        knows_all = self.phase is Phase.COMPLETING or (self.phase is Phase.STABLE and not is_leader)
        if is_unchanged and knows_all:
            self._answer_join(request.ticket, self._join_answer(member))
            self._keep_alive(member, now_ms)
        else:
            self._await_join(member, request, now_ms)
            self._rebalance(now_ms)

    def _replace(self, request: JoinRequest, now_ms: int) -> None:
        """A static member comes back without its id: it takes the place of its former self (KIP-345)."""
        assert request.instance_id is not None
        old_id, fresh = self._static_ids[request.instance_id], request.fresh_member_id
        member = self.members[old_id]
        former_leader = self.leader_id
        self._dismiss(member, ErrorCode.FENCED_INSTANCE_ID)
        self._rename(member, fresh)
        member.take(request)
        if self.phase is Phase.STABLE and elected_protocol(self._all()) == self.protocol_name:
            # Under the former leader's id a returning leader acts as a follower: the assignment stays as it is.
            answer = self._join_answer(member)._replace(leader_id=former_leader or "", members=())
            self._storing.hold(self._store(), AnswerJoin(request.ticket, answer))
            self._keep_alive(member, now_ms)
            return
        self._await_join(member, request, now_ms)
        self._rebalance(now_ms)

    def _rename(self, member: Member, member_id: str) -> None:
        del self.members[member.member_id]
        if self.leader_id == member.member_id:
            self.leader_id = member_id
        member.member_id = member_id
        self.members[member_id] = member
        self._static_ids[member.instance_id or ""] = member_id

    # -- the rebalance -------------------------------------------------------------------------------------------

    def _rebalance(self, now_ms: int) -> None:
        """See to it that all members join again."""
        if self.phase is not Phase.PREPARING:
            self._prepare(now_ms)
        self._complete_if_all_joined(now_ms)

    def _prepare(self, now_ms: int) -> None:
        is_first = self.phase is Phase.EMPTY
        for member in self._all():
            if member.sync_ticket is not None:
                self._answer_sync(member, SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
                self._keep_alive(member, now_ms)
        self._go(Event.REBALANCE)
        self._sync_deadline_ms = self._assigning = None
        self._start_join_wait(is_first, now_ms)

    def _start_join_wait(self, is_first: bool, now_ms: int) -> None:
        """A first rebalance waits a little for more members, again and again while any come."""
        wait_ms = self._rebalance_timeout_ms()
        delay_ms = min(self._limits.initial_rebalance_delay_ms, wait_ms)
        self._initial_left_ms = None
        if is_first and delay_ms > 0:
            self._initial_left_ms = wait_ms - delay_ms
            self._member_added = False
            wait_ms = delay_ms
        self._join_deadline_ms = now_ms + wait_ms

    def _complete_if_all_joined(self, now_ms: int) -> None:
        is_waiting = self._initial_left_ms is not None or self._pending
        if self.phase is Phase.PREPARING and not is_waiting and len(self._joined()) == len(self.members):
            self._complete_join(now_ms)

    def _join_time_is_up(self, now_ms: int) -> None:
        if self._initial_left_ms and self._member_added:
            delay_ms = min(self._limits.initial_rebalance_delay_ms, self._initial_left_ms)
            self._initial_left_ms -= delay_ms
            self._member_added = False
            self._join_deadline_ms = now_ms + delay_ms
        else:
            self._complete_join(now_ms)

    def _complete_join(self, now_ms: int) -> None:
        """Begin the next generation with those who joined, and with static members whose session lasts."""
        for member in self._all():
            if member.join_ticket is None and not member.is_static:
                self._forget(member)
        joined = self._joined()
        if self.members and not joined:
            self._start_join_wait(False, now_ms)
            return
        self.generation += 1
        self._join_deadline_ms = self._initial_left_ms = None
        if joined:
            self._begin_generation(joined, now_ms)
        else:
            self._go(Event.EMPTIED)
            self.protocol_name = self.leader_id = None
            if self._storing.is_kept:
                self._store()

    def _begin_generation(self, joined: list[Member], now_ms: int) -> None:
        if self.members[self.leader_id or ""].join_ticket is None:
            self.leader_id = joined[0].member_id
        self.protocol_name = elected_protocol(self._all())
        self._go(Event.JOINED)
        self._sync_deadline_ms = now_ms + self._rebalance_timeout_ms()
        for member in self._all():
            member.assignment, member.is_synced = b"", False
        for member in joined:
            assert member.join_ticket is not None
            self._answer_join(member.join_ticket, self._join_answer(member))
            member.join_ticket, member.is_new = None, False
            self._keep_alive(member, now_ms)

    def _join_answer(self, member: Member) -> JoinAnswer:
        """The present generation, as told to a member of it."""
        invariant(self.protocol_name is not None, "a generation has a protocol")
        is_leader = member.member_id == self.leader_id
        return JoinAnswer(
            ErrorCode.NONE,
            member.member_id,
            self.generation,
            self.protocol_type,
            self.protocol_name or "",
            self.leader_id or "",
            self._roster() if is_leader else (),
        )

    def _roster(self) -> list[JoinedMember]:
        name = self.protocol_name or ""
        return [JoinedMember(m.member_id, m.instance_id, m.metadata(name)) for m in self._all()]

    # -- SyncGroup -----------------------------------------------------------------------------------------------

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
        if self.phase is Phase.STABLE:
            self._hand_out([member], now_ms)
        elif member.member_id == self.leader_id and self._assigning is None:
            self._assign(request.assignments)
        return self._taken()

    def _sync_error(self, request: SyncRequest) -> ErrorCode:
        error = self._identity_error(request.identity)
        if error:
            return error
        if self.phase is Phase.PREPARING:
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
        for member in self._all():
            member.assignment = assignments.get(member.member_id, b"")
        self._assigning = self._store()

    def _assignment_is_stored(self, error: ErrorCode, now_ms: int) -> None:
        self._assigning = None
        waiting = [member for member in self._all() if member.sync_ticket is not None]
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
        if all(member.is_synced for member in self._all()):
            self._sync_deadline_ms = None

    def _sync_time_is_up(self, now_ms: int) -> None:
        """Members that joined but never asked for their assignment are taken for dead."""
        self._sync_deadline_ms = None
        self._remove([m for m in self._all() if not m.is_synced], now_ms)

    # -- storing -------------------------------------------------------------------------------------------------

    def _store(self) -> int:
        effect = self._storing.begin(self.metadata)
        self._effects.append(effect)
        return effect.number

    def stored(self, number: int, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Take the end of the StoreGroup of this number: it is durable, or with an error it may not be."""
        self._effects += self._storing.end(number, error, now_ms)
        if number == self._assigning:
            self._assignment_is_stored(error, now_ms)
        return self._taken()

    def _store_again(self) -> None:
        self._storing.again_ms = None
        if self.phase in (Phase.EMPTY, Phase.STABLE):
            self._store()

    # -- Heartbeat, LeaveGroup, commits --------------------------------------------------------------------------

    def heartbeat(self, identity: Identity, now_ms: int) -> ErrorCode:
        """Take a Heartbeat. There are no effects: it only moves a deadline away."""
        error = self._identity_error(identity)
        if error:
            return error
        self._keep_alive(self.members[identity.member_id], now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.phase is Phase.PREPARING else ErrorCode.NONE

    def leave(self, member_id: str, instance_id: str | None, now_ms: int) -> tuple[ErrorCode, list[Effect]]:
        """Let a member go. A static one may be named by its instance id alone (as administrators do)."""
        if member_id in self._pending and instance_id is None:
            del self._pending[member_id]
            self._complete_if_all_joined(now_ms)
            return ErrorCode.NONE, self._taken()
        if not member_id and instance_id is not None:
            member_id = self._static_ids.get(instance_id, "")
        error = self._standing(member_id, instance_id)
        if not error:
            self._remove([self.members[member_id]], now_ms)
        return error, self._taken()

    def check_commit(self, identity: Identity, now_ms: int, is_transactional: bool = False) -> ErrorCode:
        """Whether offsets may be committed for this group; from a member it counts as a heartbeat.

        Without an identity one may commit to a group without members, and in a transaction to any (KIP-447).
        """
        if self.phase is Phase.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if identity.is_anonymous:
            is_allowed = is_transactional or self.phase is Phase.EMPTY
            return ErrorCode.NONE if is_allowed else ErrorCode.UNKNOWN_MEMBER_ID
        error = self._identity_error(identity)
        if error:
            return error
        if self.phase is Phase.COMPLETING and not is_transactional:
            return ErrorCode.REBALANCE_IN_PROGRESS
        self._keep_alive(self.members[identity.member_id], now_ms)
        return ErrorCode.NONE

    def delete(self) -> ErrorCode:
        """Make an end of a group without members."""
        if self.phase is not Phase.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        self._pending.clear()
        self._go(Event.DELETED)
        return ErrorCode.NONE

    def _identity_error(self, identity: Identity) -> ErrorCode:
        if self.phase is Phase.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._standing(identity.member_id, identity.instance_id)
        if error:
            return error
        return ErrorCode.NONE if identity.generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def _standing(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether this is a member, and not one whose place was taken."""
        if instance_id is not None:
            present_id = self._static_ids.get(instance_id)
            if present_id is not None and present_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if present_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def abandon(self, ticket: int, now_ms: int) -> list[Effect]:
        """The client of a JoinGroup that waits is gone: one that was no member before need not wait for it."""
        for member in [member for member in self._all() if member.join_ticket == ticket]:
            member.join_ticket = None
            if member.is_new:
                self._remove([member], now_ms)
            else:
                self._keep_alive(member, now_ms)
        return self._taken()

    # -- time ----------------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> list[Effect]:
        """Do what is due."""
        self._wake_ms = None
        for member_id in [i for i, deadline_ms in self._pending.items() if deadline_ms <= now_ms]:
            del self._pending[member_id]
        self._remove([m for m in self._all() if is_due(m.deadline_ms, now_ms)], now_ms)
        self._complete_if_all_joined(now_ms)
        if is_due(self._join_deadline_ms, now_ms):
            self._join_time_is_up(now_ms)
        if is_due(self._sync_deadline_ms, now_ms):
            self._sync_time_is_up(now_ms)
        if is_due(self._storing.again_ms, now_ms):
            self._store_again()
        return self._taken()

    def _keep_alive(self, member: Member, now_ms: int) -> None:
        """Move the member's deadline, unless it waits for us."""
        if member.join_ticket is None and member.sync_ticket is None:
            member.deadline_ms = now_ms + member.session_timeout_ms

    def _deadlines(self) -> list[int]:
        own = (self._join_deadline_ms, self._sync_deadline_ms, *self._pending.values())
        theirs = (member.deadline_ms for member in self._all())
        store_again_ms = None if self.phase is Phase.DEAD else self._storing.again_ms
        return [at_ms for at_ms in (*own, *theirs, store_again_ms) if at_ms is not None]

    def _taken(self) -> list[Effect]:
        """The effects so far, with a wake-up if one is due earlier than that which was asked for."""
        earliest_ms = min(self._deadlines(), default=None)
        if earliest_ms is not None and (self._wake_ms is None or earliest_ms < self._wake_ms):
            self._wake_ms = earliest_ms
            self._effects.append(WakeAt(earliest_ms))
        effects, self._effects = self._effects, []
        return effects

    # -- parts ---------------------------------------------------------------------------------------------------

    def _go(self, event: Event) -> None:
        following = TRANSITIONS.get((self.phase, event))
        invariant(following is not None, f"group {self.group_id!r}: {event} in {self.phase}")
        assert following is not None
        self.phase = following

    def _all(self) -> list[Member]:
        return list(self.members.values())

    def _joined(self) -> list[Member]:
        return [member for member in self._all() if member.join_ticket is not None]

    def _rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self._all()), default=0)

    def _remove(self, members: list[Member], now_ms: int) -> None:
        """Forget members, and rebalance those who stay."""
        for member in members:
            self._forget(member)
        if members:
            self._rebalance(now_ms)

    def _forget(self, member: Member) -> None:
        self._dismiss(member, ErrorCode.UNKNOWN_MEMBER_ID)
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self._static_ids[member.instance_id]
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def _dismiss(self, member: Member, error: ErrorCode) -> None:
        """Answer what the member still waits for: it is gone, or has asked anew."""
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

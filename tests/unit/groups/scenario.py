"""A group under test: requests with fewer words, and a record of what was answered."""

from __future__ import annotations

from typing import Any

from faircopy.groups.group_metadata import GroupMetadata
from faircopy.groups.group_state import GroupState
from faircopy.groups.members import (
    AnswerJoin,
    AnswerSync,
    Effect,
    GroupLimits,
    Identity,
    JoinAnswer,
    JoinRequest,
    StoreGroup,
    SyncAnswer,
    SyncRequest,
    WakeAt,
)
from faircopy.groups.membership import Group
from faircopy.wire.error_codes import ErrorCode

RANGE = (("range", b"topics"),)
STICKY = (("sticky", b"s"),)
BOTH = (("range", b"r"), ("sticky", b"s"))
ANONYMOUS = Identity("", None, -1)
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Scenario:
    """Drives one `Group` through virtual time and keeps the answers by ticket."""

    def __init__(self, **limits: int) -> None:
        self.limits = GroupLimits(**{"initial_rebalance_delay_ms": 0, **limits})
        self.group = Group("g", self.limits)
        self.now_ms = 1_000
        self.wake_ms: int | None = None
        self.answers: dict[int, Any] = {}
        self.last_ticket = 0
        self.is_slow_to_store = False
        self.storing: list[StoreGroup] = []
        self.kept: GroupMetadata | None = None

    def state(self) -> GroupState:
        """The state that the group is in now."""
        return self.group.state

    # -- time ------------------------------------------------------------------------------------------------

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass, waking the group whenever it asked for it."""
        end_ms = self.now_ms + duration_ms
        while self.wake_ms is not None and self.wake_ms <= end_ms:
            self.now_ms = max(self.now_ms, self.wake_ms)
            self.wake_ms = None
            self.run(self.group.tick(self.now_ms))
        self.now_ms = end_ms

    def run(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, WakeAt):
                self.wake_ms = effect.at_ms
            elif isinstance(effect, StoreGroup):
                self.storing.append(effect)
                if not self.is_slow_to_store:
                    self.store()
            else:
                assert effect.ticket not in self.answers, "a ticket is answered once"
                assert isinstance(effect, AnswerJoin | AnswerSync)
                self.answers[effect.ticket] = effect.answer

    # -- storing ---------------------------------------------------------------------------------------------

    def store(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Let all that is being stored be durable, or fail."""
        storing, self.storing = self.storing, []
        for effect in storing:
            if not error:
                self.kept = effect.metadata
            self.run(self.group.stored(effect.number, error, self.now_ms))

    def restart(self) -> None:
        """Go on with what is durable, as after a crash of the broker."""
        assert self.kept is not None
        self.storing.clear()
        self.wake_ms = None
        self.group = Group.restored("g", self.limits, self.kept, self.now_ms)
        self.run(self.group.tick(self.now_ms))

    # -- requests --------------------------------------------------------------------------------------------

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        needs_known_id: bool = False,
        can_skip_assignment: bool = False,
    ) -> int:
        """Send a JoinGroup; returns its ticket."""
        self.last_ticket += 1
        request = JoinRequest(
            ticket=self.last_ticket,
            member_id=member_id,
            fresh_member_id=f"id-{self.last_ticket}",
            instance_id=instance_id,
            client_id="client",
            client_host="host",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=protocols,
            needs_known_id=needs_known_id,
            can_skip_assignment=can_skip_assignment,
        )
        self.run(self.group.join(request, self.now_ms))
        return self.last_ticket

    def sync(
        self,
        joined: JoinAnswer,
        assignments: dict[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol: tuple[str | None, str | None] = (None, None),
    ) -> int:
        """Send a SyncGroup for what a join was told; returns its ticket."""
        self.last_ticket += 1
        identity = Identity(joined.member_id, instance_id, joined.generation)
        request = SyncRequest(self.last_ticket, identity, *protocol, assignments or {})
        self.run(self.group.sync(request, self.now_ms))
        return self.last_ticket

    def heartbeat(self, joined: JoinAnswer, instance_id: str | None = None) -> ErrorCode:
        identity = Identity(joined.member_id, instance_id, joined.generation)
        return self.group.heartbeat(identity, self.now_ms)

    def leave(self, member_id: str, instance_id: str | None = None) -> ErrorCode:
        error, effects = self.group.leave(member_id, instance_id, self.now_ms)
        self.run(effects)
        return error

    # -- answers ---------------------------------------------------------------------------------------------

    def is_waiting(self, ticket: int) -> bool:
        return ticket not in self.answers

    def joined(self, ticket: int) -> JoinAnswer:
        """The answer to a join, which must be a success."""
        answer = self.answers[ticket]
        assert isinstance(answer, JoinAnswer)
        assert answer.error == ErrorCode.NONE
        return answer

    def error(self, ticket: int) -> ErrorCode:
        answer = self.answers[ticket]
        assert isinstance(answer, JoinAnswer | SyncAnswer)
        return answer.error

    def stable(self, *instances: str | None) -> list[JoinAnswer]:
        """A stable group of members with these instance ids; the leader comes first."""
        first = [self.join(instance_id=instances[0])]
        ids = {t: self.joined(t).member_id for t in first}
        for instance_id in instances[1:]:
            ticket = self.join(instance_id=instance_id)
            tickets = [self.join(m, instance_id=i) for m, i in zip(ids.values(), instances, strict=False)]
            ids = {t: self.joined(t).member_id for t in (*tickets, ticket)}
        answers = [self.joined(t) for t in ids]
        for answer, instance_id in zip(answers, instances, strict=True):
            parts = {a.member_id: f"part of {a.member_id}".encode() for a in answers}
            sync = self.sync(answer, parts, instance_id=instance_id)
            assert self.error(sync) == ErrorCode.NONE
        return answers

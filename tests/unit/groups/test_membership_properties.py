"""The membership machine under any sequence of requests: what must hold whatever clients do."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from faircopy.groups.group_state import GroupState
from faircopy.groups.members import Identity, JoinAnswer, SyncAnswer
from faircopy.groups.membership import NEW_MEMBER_JOIN_MS
from faircopy.wire.error_codes import ErrorCode
from tests.unit.groups.scenario import REBALANCE_MS, SESSION_MS, Scenario

MEMBERS_MAX = 4
PROTOCOLS = [
    (("range", b"1"),),
    (("range", b"2"), ("sticky", b"2")),
    (("sticky", b"3"), ("range", b"3")),
    (("sticky", b"4"),),
]
INSTANCES = ["a", "b"]


class Client:
    """A client as it sees itself: its instance id, and the tickets it waits for."""

    def __init__(self, instance_id: str | None, ticket: int) -> None:
        self.instance_id = instance_id
        self.join_ticket = ticket
        self.answer: JoinAnswer | None = None


class Membership(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scenario = Scenario(initial_rebalance_delay_ms=100, members_max=MEMBERS_MAX)
        self.clients: list[Client] = []
        self.syncs: dict[int, tuple[str | None, str]] = {}  # instance id and member id by ticket
        self.generations: dict[int, int] = {}  # by ticket of a sync
        self.leaders: dict[int, set[str]] = {}
        self.former_ids: dict[str, list[str]] = {instance_id: [] for instance_id in INSTANCES}
        self.ids: dict[str, list[str]] = {instance_id: [] for instance_id in INSTANCES}
        self.greatest_generation = 0
        self.lost_tickets: set[int] = set()

    def client(self, number: int) -> Client:
        return self.clients[number % len(self.clients)]

    # -- what clients do -------------------------------------------------------------------------------------

    @rule(protocols=st.sampled_from(PROTOCOLS), needs_known_id=st.booleans())
    def come(self, protocols: Any, needs_known_id: bool) -> None:
        ticket = self.scenario.join(protocols=protocols, needs_known_id=needs_known_id)
        self.clients.append(Client(None, ticket))

    @rule(instance_id=st.sampled_from(INSTANCES), protocols=st.sampled_from(PROTOCOLS))
    def come_as_static(self, instance_id: str, protocols: Any) -> None:
        former = [m.member_id for m in self.scenario.group.members.values() if m.instance_id == instance_id]
        ticket = self.scenario.join(instance_id=instance_id, protocols=protocols)
        present = [m.member_id for m in self.scenario.group.members.values() if m.instance_id == instance_id]
        if former != present:
            self.former_ids[instance_id] += former
            self.ids[instance_id] += former
        self.clients.append(Client(instance_id, ticket))

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 99), protocols=st.sampled_from(PROTOCOLS))
    def join_again(self, number: int, protocols: Any) -> None:
        client = self.client(number)
        if client.answer is not None and client.answer.member_id:
            client.join_ticket = self.scenario.join(
                client.answer.member_id, instance_id=client.instance_id, protocols=protocols
            )

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 99))
    def sync(self, number: int) -> None:
        client = self.client(number)
        if client.answer is None or client.answer.error:
            return
        parts = {m.member_id: f"for {m.member_id}".encode() for m in client.answer.members}
        ticket = self.scenario.sync(client.answer, parts, instance_id=client.instance_id)
        self.syncs[ticket] = (client.instance_id, client.answer.member_id)
        self.generations[ticket] = client.answer.generation

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 99))
    def heartbeat(self, number: int) -> None:
        client = self.client(number)
        if client.answer is not None:
            self.scenario.heartbeat(client.answer, client.instance_id)

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 99), is_transactional=st.booleans())
    def commit(self, number: int, is_transactional: bool) -> None:
        client = self.client(number)
        if client.answer is not None and client.answer.member_id:
            identity = Identity(client.answer.member_id, client.instance_id, client.answer.generation)
            group = self.scenario.group
            error = group.check_commit(identity, self.scenario.now_ms, is_transactional)
            if not error:
                assert identity.member_id in group.members
                assert identity.generation == group.generation

    @precondition(lambda self: self.clients)
    @rule(number=st.integers(0, 99), by_instance=st.booleans())
    def leave(self, number: int, by_instance: bool) -> None:
        client = self.client(number)
        if client.answer is not None:
            is_static = client.instance_id is not None
            member_id = "" if by_instance and is_static else client.answer.member_id
            self.scenario.leave(member_id, client.instance_id)

    @rule(duration_ms=st.sampled_from([1, 60, 101, SESSION_MS // 2, SESSION_MS, REBALANCE_MS]))
    def wait(self, duration_ms: int) -> None:
        self.scenario.pass_ms(duration_ms)

    @rule(is_slow=st.booleans())
    def let_the_disk_be(self, is_slow: bool) -> None:
        self.scenario.is_slow_to_store = is_slow
        if not is_slow:
            self.scenario.store()

    @rule(fails=st.booleans())
    def store(self, fails: bool) -> None:
        self.scenario.store(ErrorCode.COORDINATOR_NOT_AVAILABLE if fails else ErrorCode.NONE)

    @precondition(lambda self: self.scenario.kept is not None)
    @rule()
    def crash(self) -> None:
        """The broker goes on with what is durable. Nobody had an assignment of a later generation."""
        scenario = self.scenario
        assert scenario.kept is not None
        told = {
            t for t, answer in scenario.answers.items() if isinstance(answer, SyncAnswer) and not answer.error
        }
        scenario.restart()
        self.lost_tickets |= set(range(1, scenario.last_ticket + 1)) - set(scenario.answers)
        self.greatest_generation = scenario.group.generation
        assert not told or max(self.generations[t] for t in told) <= self.greatest_generation
        self.leaders = {n: ids for n, ids in self.leaders.items() if n <= self.greatest_generation}
        for client in self.clients:
            client.join_ticket = -1
            if client.answer is not None and client.answer.generation > self.greatest_generation:
                client.answer = client.answer._replace(generation=-1, members=())
        for member in scenario.group.members.values():
            if member.instance_id is not None:
                former = self.former_ids[member.instance_id]
                former[:] = [member_id for member_id in former if member_id != member.member_id]

    @precondition(lambda self: self.clients)
    @rule(leave_out=st.integers(0, 3))
    def behave(self, leave_out: int) -> None:
        """What good clients do: join again with what they said before, and sync. One of them may be hung."""
        members = list(self.scenario.group.members.values())
        numbers = {c.answer.member_id: i for i, c in enumerate(self.clients) if c.answer is not None}
        for member in [m for m in members if m.join_ticket is None and m.member_id in numbers][leave_out:]:
            self.join_again(numbers[member.member_id], member.protocols)
        self.wait(101)
        self.a_generation_has_one_leader()
        for client in range(len(self.clients)):
            if self.clients[client].answer in self.scenario.answers.values():
                self.sync(client)

    # -- what must hold --------------------------------------------------------------------------------------

    @invariant()
    def generations_only_grow(self) -> None:
        generation = self.scenario.group.generation
        assert generation >= self.greatest_generation
        self.greatest_generation = generation

    @invariant()
    def a_generation_has_one_leader(self) -> None:
        for client in self.clients:
            answer = self.scenario.answers.get(client.join_ticket)
            client.answer = answer or client.answer
            if answer is not None and not answer.error and answer.leader_id == answer.member_id:
                self.leaders.setdefault(answer.generation, set()).add(answer.member_id)
        assert all(len(leaders) == 1 for leaders in self.leaders.values())

    @invariant()
    def whoever_is_in_a_stable_generation_has_its_assignment(self) -> None:
        group = self.scenario.group
        if group.state is GroupState.STABLE:
            for member in group.members.values():
                own = [member.member_id, *self.ids.get(member.instance_id or "", [])]
                assert member.assignment in [f"for {member_id}".encode() for member_id in own]

    @invariant()
    def members_are_given_their_own_assignment(self) -> None:
        for ticket, (instance_id, member_id) in self.syncs.items():
            answer = self.scenario.answers.get(ticket)
            if isinstance(answer, SyncAnswer) and not answer.error:
                own = [member_id, *self.ids.get(instance_id or "", [])]
                assert answer.assignment in [f"for {own_id}".encode() for own_id in own]

    @invariant()
    def the_former_selves_of_static_members_are_shut_out(self) -> None:
        group = self.scenario.group
        for instance_id, former_ids in self.former_ids.items():
            for member_id in former_ids:
                error = group.heartbeat(
                    Identity(member_id, instance_id, group.generation), self.scenario.now_ms
                )
                assert error in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID)

    @invariant()
    def phases_fit_the_members(self) -> None:
        group = self.scenario.group
        assert len(group.members) <= MEMBERS_MAX
        assert bool(group.members) or group.state in (GroupState.EMPTY, GroupState.PREPARING)
        assert not group.members or group.state is not GroupState.EMPTY
        assert not group.members or group.leader_id in group.members
        instances = [m.instance_id for m in group.members.values() if m.instance_id is not None]
        assert len(instances) == len(set(instances))

    @invariant()
    def whoever_waits_is_waited_for(self) -> None:
        waits = self.scenario.wake_ms is not None or self.scenario.storing
        assert self.scenario.group.is_idle or waits

    def teardown(self) -> None:
        """Once clients fall silent, everything is answered, and the group ends empty."""
        self.let_the_disk_be(False)
        self.scenario.pass_ms(NEW_MEMBER_JOIN_MS + 10 * REBALANCE_MS)
        unanswered = (
            set(range(1, self.scenario.last_ticket + 1)) - set(self.scenario.answers) - self.lost_tickets
        )
        assert not unanswered
        assert self.scenario.group.is_idle
        assert self.scenario.wake_ms is None


Membership.TestCase.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
TestMembership = Membership.TestCase

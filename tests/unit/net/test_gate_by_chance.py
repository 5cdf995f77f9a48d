"""Whatever happens around a connection with a gate, its client gets the answers in order, and none in doubt.

The model is the list of the requests. What has left is always the start of the list of their answers. In the
end, when the lease is sure and everybody has done their part, it is all of it.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from faircopy.net.exchange import Exchange, FromFiles
from faircopy.net.file_sender import FileSender
from faircopy.net.gate import UNGATED, Gate
from tests.unit.net.fake_host import FakeHost, request

REQUEST_BYTES = 10
PRODUCE, FETCH, METADATA = 0, 1, 3
API_KEYS = st.sampled_from([PRODUCE, PRODUCE, PRODUCE, FETCH, FETCH, METADATA, *sorted(UNGATED)])


class Client(FakeHost):
    """Its socket holds what the broker does not read. What is sent from files has left when that begins."""

    def __init__(self, gate: Gate) -> None:
        self.asked: list[int] = []
        self.unread: list[int] = []
        self.senders_done = 0
        super().__init__(gate)

    def ask(self, api_key: int) -> None:
        self.asked.append(api_key)
        self.unread.append(api_key)

    def deliver(self) -> None:
        """The socket gives what is read, and room that was made is used."""
        while self.unread and self.is_reading:
            self.send(request(self.unread.pop(0), REQUEST_BYTES))
        if self.is_room_due:
            self.is_room_due = False
            for connection in self.admission.take_waiting():
                connection.proceed()

    def send_from_files(
        self, descriptor: int, pieces: FromFiles, done: Callable[[BaseException | None], None]
    ) -> FileSender:
        assert not self.unsent_bytes, "it would overtake what the transport has"
        self.responses.extend(piece for piece in pieces if isinstance(piece, bytes))
        return super().send_from_files(descriptor, pieces, done)

    def end_sending(self) -> None:
        """A response from files is sent."""
        if self.senders_done < len(self.senders):
            self.senders_done += 1
            self.senders[-1].done(None)

    def fill(self) -> None:
        """The client does not read, so that the transport is full."""
        self.unsent_bytes = 5
        self.connection.pause_writing()

    def drain(self) -> None:
        """The client has read all."""
        if self.unsent_bytes:
            self.unsent_bytes = 0
            self.connection.resume_writing()

    def answer(self, exchange: Exchange) -> None:
        """Answer a request with its place among all."""
        at = self.exchanges.index(exchange)
        if self.asked[at] == FETCH:
            exchange.answer_from_files([b"%d" % at])
        else:
            exchange.answer(b"%d" % at)

    @property
    def unanswered(self) -> list[Exchange]:
        return [exchange for exchange in self.exchanges if not exchange.is_answered]


class Doubt(RuleBasedStateMachine):
    """One connection, one client, and a lease that comes and goes."""

    def __init__(self) -> None:
        super().__init__()
        self.is_in_doubt = self.is_gone = False
        self.gate = Gate(lambda: self.is_in_doubt)
        self.client = Client(self.gate)
        self.left = self.begun = 0

    def go_on(self) -> None:
        """What can happen by itself happens."""
        if not self.is_gone:
            self.client.deliver()

    @precondition(lambda self: not self.is_gone and len(self.client.unread) < 4)
    @rule(api_keys=st.lists(API_KEYS, min_size=1, max_size=3))
    def ask(self, api_keys: list[int]) -> None:
        for api_key in api_keys:
            self.client.ask(api_key)
        self.go_on()

    @precondition(lambda self: self.client.unanswered)
    @rule(which=st.lists(st.integers(0, 3), min_size=1, max_size=3))
    def answer(self, which: list[int]) -> None:
        unanswered = self.client.unanswered
        for exchange in dict.fromkeys(unanswered[at % len(unanswered)] for at in which):
            self.client.answer(exchange)
        self.go_on()

    @precondition(lambda self: not self.is_in_doubt)
    @rule()
    def doubt(self) -> None:
        self.is_in_doubt = True

    @precondition(lambda self: self.is_in_doubt)
    @rule(is_let_go=st.booleans())
    def be_sure(self, is_let_go: bool) -> None:
        self.is_in_doubt = False
        if is_let_go:
            self.let_go()

    @precondition(lambda self: self.gate.waiting)
    @rule()
    def let_go(self) -> None:
        self.gate.let_go()
        self.go_on()

    @precondition(lambda self: not self.is_gone and not self.client.unsent_bytes)
    @rule()
    def fill(self) -> None:
        self.client.fill()

    @precondition(lambda self: not self.is_gone and self.client.unsent_bytes)
    @rule()
    def drain(self) -> None:
        self.client.drain()
        self.go_on()

    @precondition(lambda self: not self.is_gone and self.client.senders_done < len(self.client.senders))
    @rule()
    def end_sending(self) -> None:
        self.client.end_sending()
        self.go_on()

    @precondition(lambda self: not self.is_gone and len(self.client.asked) > 12)
    @rule()
    def hang_up(self) -> None:
        self.is_gone = True
        self.client.hang_up()

    @invariant()
    def answers_leave_in_order(self) -> None:
        left = self.client.responses
        assert left == [b"%d" % at for at in range(len(left))]

    @invariant()
    def in_doubt_only_what_is_not_gated_leaves_and_begins(self) -> None:
        client, before = self.client, (self.left, self.begun)
        self.left, self.begun = len(client.responses), len(client.exchanges)
        if self.is_in_doubt:
            assert set(client.asked[before[0] : self.left]) <= UNGATED
            assert set(client.asked[before[1] : self.begun]) <= UNGATED

    @invariant()
    def only_the_gate_holds_what_is_answered(self) -> None:
        """Or the transport, if it is to be sent from files."""
        client, left = self.client, len(self.client.responses)
        if self.is_gone or (client.connection.is_sending_files and client.unsent_bytes):
            return
        if left < len(client.exchanges) and client.exchanges[left].is_answered:
            assert client.asked[left] not in UNGATED
            assert client.connection in self.gate.waiting

    @invariant()
    def only_the_gate_holds_what_could_be_begun(self) -> None:
        client, begun = self.client, len(self.client.exchanges)
        is_free = not (client.unsent_bytes or client.connection.is_sending_files or self.is_gone)
        if is_free and len(client.responses) == begun < len(client.asked):
            assert client.asked[begun] not in UNGATED
            assert client.connection in self.gate.waiting

    @invariant()
    def what_is_charged_is_what_has_not_left(self) -> None:
        client = self.client
        charged = len(client.exchanges) - len(client.responses)
        if client.connection.is_sending_files:
            charged = 0  # it is the last
        if self.is_gone:
            unanswered = client.unanswered
            charged = len(client.exchanges) - client.exchanges.index(unanswered[0]) if unanswered else 0
        assert client.admission.in_flight_bytes == charged * REQUEST_BYTES
        assert client.is_over == (self.is_gone and not charged)

    def teardown(self) -> None:
        client, self.is_in_doubt = self.client, False
        self.gate.let_go()
        for _ in range(len(client.asked) + 1):
            if not self.is_gone:
                client.drain()
                client.end_sending()
                client.deliver()
            for exchange in reversed(client.unanswered):
                client.answer(exchange)
        if not self.is_gone:
            assert client.responses == [b"%d" % at for at in range(len(client.asked))]
        assert client.is_over == self.is_gone
        assert client.admission.in_flight_bytes == 0
        self.gate.let_go()
        assert not self.gate.waiting


TestDoubt = Doubt.TestCase
TestDoubt.settings = settings(max_examples=150, stateful_step_count=60)

"""A broker whose lease is in doubt says nothing; once it is sure again, clients hear all of it, in order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast
from unittest import mock

import pytest

from faircopy.net.exchange import Exchange
from faircopy.net.gate import UNGATED, Gate
from faircopy.net.server import Server
from faircopy.settings.table import Settings
from faircopy.storage.file import FileRange
from tests.simulation.network import LISTENER
from tests.unit.net.fake_host import MIB, FakeHost, request

KIB = 1 << 10
PRODUCE, FETCH, METADATA, API_VERSIONS, INSPECT = 0, 1, 3, 18, 20000


class Lease:
    """What the owner of a gate knows."""

    def __init__(self) -> None:
        self.is_in_doubt = False
        self.gate = Gate(lambda: self.is_in_doubt)

    def renew(self) -> None:
        self.is_in_doubt = False
        self.gate.let_go()


class Place:
    """Notes when it is let go, and then does what it is told to."""

    def __init__(self, went: list[Place], then: Callable[[Place], None] = lambda _place: None) -> None:
        self._went = went
        self._then = then

    def gate_opened(self) -> None:
        self._went.append(self)
        self._then(self)


@pytest.fixture
def lease() -> Lease:
    return Lease()


@pytest.fixture
def host(lease: Lease) -> FakeHost:
    return FakeHost(lease.gate)


# -- the gate alone ------------------------------------------------------------------------------------------


def test_those_who_wait_go_in_the_order_of_their_arrival_and_once(lease: Lease) -> None:
    went: list[Place] = []
    first, second, third = (Place(went) for _ in range(3))
    for place in (first, second, third, first):
        lease.gate.hold(place)
    lease.gate.forget(second)
    lease.gate.forget(second)
    lease.renew()
    lease.renew()
    assert went == [first, third]


def test_nobody_is_let_go_in_doubt(lease: Lease) -> None:
    went: list[Place] = []
    place = Place(went)
    lease.is_in_doubt = True
    lease.gate.hold(place)
    lease.gate.let_go()
    assert went == []
    lease.renew()
    assert went == [place]


def test_who_has_to_wait_anew_keeps_others_from_nothing(lease: Lease) -> None:
    """Doubt may return while they are let go."""
    went: list[Place] = []
    first, second = Place(went, lease.gate.hold), Place(went, lease.gate.hold)
    lease.gate.hold(first)
    lease.gate.hold(second)
    lease.renew()
    assert went == [first, second]
    lease.renew()
    assert went == [first, second] * 2


def test_who_is_forgotten_while_others_go_does_not_go(lease: Lease) -> None:
    went: list[Place] = []
    last = Place(went)
    first = Place(went, lambda _place: lease.gate.forget(last))
    lease.gate.hold(first)
    lease.gate.hold(last)
    lease.renew()
    assert went == [first]


def test_only_what_a_successor_could_change_is_gated(lease: Lease) -> None:
    assert {API_VERSIONS, INSPECT} == UNGATED
    for api_key, is_gated in [(PRODUCE, True), (METADATA, True), (API_VERSIONS, False), (INSPECT, False)]:
        assert lease.gate.is_for(memoryview(request(api_key)[4:])) is is_gated


# -- answers -------------------------------------------------------------------------------------------------


def test_answers_are_held_in_doubt_and_sent_in_order_afterwards(host: FakeHost, lease: Lease) -> None:
    host.send(*[request(PRODUCE)] * 4)
    first, second, third, fourth = host.exchanges
    first.answer(b"1")
    lease.is_in_doubt = True
    third.answer([b"3", b"4"])
    second.answer(b"2")
    assert host.responses == [b"1"]
    lease.renew()
    assert host.responses == [b"1", b"2", b"3", b"4"]
    fourth.answer(b"5")
    assert host.responses[-1] == b"5"
    assert not lease.gate.waiting


def test_an_answer_that_follows_held_ones_leaves_after_them(host: FakeHost, lease: Lease) -> None:
    """The lease is sure again, and nobody has been let go yet."""
    host.send(request(PRODUCE), request(PRODUCE))
    lease.is_in_doubt = True
    host.exchanges[0].answer(b"1")
    lease.is_in_doubt = False
    host.exchanges[1].answer(b"2")
    assert host.responses == [b"1", b"2"]
    lease.gate.let_go()
    assert host.responses == [b"1", b"2"]


def test_while_in_doubt_nothing_is_let_go(host: FakeHost, lease: Lease) -> None:
    host.send(request(METADATA))
    lease.is_in_doubt = True
    host.exchanges[0].answer(b"held")
    lease.gate.let_go()
    host.connection.proceed()
    host.connection.gate_opened()
    assert host.responses == []
    lease.renew()
    assert host.responses == [b"held"]


def test_what_is_held_takes_room_until_it_is_sent(host: FakeHost, lease: Lease) -> None:
    host.send(request(PRODUCE), request(PRODUCE))
    lease.is_in_doubt = True
    for exchange in host.exchanges:
        exchange.answer(b"held")
    assert host.admission.in_flight_bytes == sum(exchange.size for exchange in host.exchanges)
    assert not host.connection.is_idle
    host.admission.wait(host.connection)
    assert not host.is_room_due
    lease.renew()
    assert host.admission.in_flight_bytes == 0
    assert host.is_room_due


def test_no_answer_at_all_keeps_its_place(host: FakeHost, lease: Lease) -> None:
    host.send(request(PRODUCE), request(PRODUCE))
    lease.is_in_doubt = True
    host.exchanges[0].answer(None)
    host.exchanges[1].answer(b"2")
    assert host.admission.in_flight_bytes > 0
    lease.renew()
    assert host.responses == [b"2"]
    assert host.admission.in_flight_bytes == 0


# -- clients that leave --------------------------------------------------------------------------------------


def test_a_client_that_leaves_while_its_answers_are_held(host: FakeHost, lease: Lease) -> None:
    lost: list[int] = []
    host.send(*[request(PRODUCE)] * 3)
    for number, exchange in enumerate(host.exchanges):
        exchange.when_lost = lambda number=number: lost.append(number)
    lease.is_in_doubt = True
    host.exchanges[0].answer(b"held")
    host.exchanges[2].answer(b"held")
    host.admission.wait(host.connection)
    host.hang_up()
    assert lost == [1]
    assert not lease.gate.waiting
    assert not host.is_over, "the second request may still be admitted"
    assert host.admission.in_flight_bytes == host.exchanges[1].size + host.exchanges[2].size
    host.exchanges[1].answer(b"nobody hears it")
    assert host.is_over
    assert host.admission.in_flight_bytes == 0
    lease.renew()
    assert host.responses == []


def test_a_connection_whose_answers_are_all_held_is_over_when_its_client_leaves(
    host: FakeHost, lease: Lease
) -> None:
    other = FakeHost(lease.gate)
    host.send(request(PRODUCE), request(PRODUCE))
    lease.is_in_doubt = True
    for exchange in host.exchanges:
        exchange.answer(b"held")
    host.admission.wait(other.connection)
    assert not host.is_over
    host.hang_up()
    assert host.is_over
    assert host.admission.in_flight_bytes == 0
    assert host.is_room_due


def test_what_is_answered_in_doubt_to_a_client_that_is_gone_is_not_held(host: FakeHost, lease: Lease) -> None:
    host.send(request(PRODUCE))
    host.hang_up()
    lease.is_in_doubt = True
    host.exchanges[0].answer(b"nobody hears it")
    assert host.is_over
    assert host.admission.in_flight_bytes == 0
    assert not lease.gate.waiting


def test_a_connection_that_is_closed_in_doubt_says_no_more(host: FakeHost, lease: Lease) -> None:
    host.send(request(PRODUCE))
    lease.is_in_doubt = True
    host.exchanges[0].answer(b"held")
    host.connection.close()
    lease.renew()
    host.hang_up()
    assert host.responses == []
    assert host.is_over
    assert host.admission.in_flight_bytes == 0


# -- requests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 100 * KIB])
def test_in_doubt_no_request_is_begun(host: FakeHost, lease: Lease, size: int) -> None:
    lease.is_in_doubt = True
    host.send(*[request(PRODUCE, size)] * 5)
    assert host.exchanges == []
    assert not host.is_reading, "what waits is enough to hold"
    lease.renew()
    assert host.is_reading
    assert len(host.exchanges) == (5 if size == 10 else 1), "the rest of the large ones was not received"


def test_no_produce_follows_another_in_doubt(host: FakeHost, lease: Lease) -> None:
    host.send(request(PRODUCE))
    lease.is_in_doubt = True
    host.send(*[request(PRODUCE)] * 300)
    host.exchanges[0].answer(b"1")
    assert len(host.exchanges) == 1
    assert host.admission.in_flight_bytes == host.exchanges[0].size
    lease.renew()
    assert host.responses == [b"1"]
    assert len(host.exchanges) > 200


@pytest.mark.parametrize("api_key", [API_VERSIONS, INSPECT])
def test_what_is_not_gated_is_answered_in_doubt(host: FakeHost, lease: Lease, api_key: int) -> None:
    lease.is_in_doubt = True
    host.send(request(api_key), request(api_key), request(METADATA), request(api_key))
    host.exchanges[0].answer(b"1")
    host.exchanges[1].answer(b"2")
    assert host.responses == [b"1", b"2"]
    assert len(host.exchanges) == 2, "Metadata waits, and what follows it"
    lease.renew()
    host.exchanges[2].answer(b"3")
    host.exchanges[3].answer(b"4")
    assert host.responses == [b"1", b"2", b"3", b"4"]


def test_what_was_begun_before_the_doubt_and_is_not_gated_is_answered(host: FakeHost, lease: Lease) -> None:
    host.send(request(INSPECT))
    lease.is_in_doubt = True
    host.exchanges[0].answer(b"1")
    assert host.responses == [b"1"]


def test_what_is_not_gated_waits_behind_an_answer_that_is_held(host: FakeHost, lease: Lease) -> None:
    host.send(request(METADATA))
    lease.is_in_doubt = True
    host.exchanges[0].answer(b"held")
    host.send(request(API_VERSIONS))
    assert (host.responses, len(host.exchanges)) == ([], 1)
    lease.renew()
    assert (host.responses, len(host.exchanges)) == ([b"held"], 2)


def test_doubt_and_a_lack_of_room_are_waited_for_one_after_the_other(host: FakeHost, lease: Lease) -> None:
    host.admission.begin(2 * MIB)
    lease.is_in_doubt = True
    host.send(request(METADATA))
    lease.renew()
    assert host.exchanges == []
    assert host.admission.take_waiting() == [host.connection]
    host.admission.end(2 * MIB)
    lease.is_in_doubt = True
    host.connection.proceed()
    assert host.exchanges == []
    lease.renew()
    assert len(host.exchanges) == 1


# -- responses from files ------------------------------------------------------------------------------------


def test_a_response_from_files_begins_when_the_gate_opens(host: FakeHost, lease: Lease) -> None:
    host.send(request(FETCH))
    lease.is_in_doubt = True
    host.exchanges[0].answer_from_files([b"head", cast(FileRange, b"tail")])
    assert host.senders == []
    assert not host.connection.is_sending_files
    lease.renew()
    assert len(host.senders) == 1
    host.send(request(FETCH))
    host.senders[0].done(None)
    assert len(host.exchanges) == 2


def test_a_response_from_files_does_not_begin_when_the_transport_is_empty_in_doubt(
    host: FakeHost, lease: Lease
) -> None:
    host.send(request(FETCH))
    host.unsent_bytes = 5
    host.exchanges[0].answer_from_files([b"head"])
    lease.is_in_doubt = True
    host.unsent_bytes = 0
    host.connection.resume_writing()
    host.send(request(INSPECT))
    assert (host.senders, len(host.exchanges)) == ([], 1)
    lease.renew()
    assert (len(host.senders), len(host.exchanges)) == (1, 1)
    host.senders[0].done(None)
    host.connection.proceed()
    assert len(host.exchanges) == 2
    assert not lease.gate.waiting


def test_a_gate_that_opens_does_not_send_past_what_the_transport_has(host: FakeHost, lease: Lease) -> None:
    host.send(request(FETCH))
    host.unsent_bytes = 5
    host.exchanges[0].answer_from_files([b"head"])
    lease.is_in_doubt = True
    host.send(request(FETCH))  # it waits at the gate
    lease.renew()
    assert host.senders == []
    host.unsent_bytes = 0
    host.connection.resume_writing()
    assert len(host.senders) == 1


def test_a_client_that_leaves_before_its_files_are_sent(host: FakeHost, lease: Lease) -> None:
    host.send(request(FETCH))
    lease.is_in_doubt = True
    host.exchanges[0].answer_from_files([b"head"])
    host.hang_up()
    lease.renew()
    assert host.senders == []
    assert host.is_over
    assert host.admission.in_flight_bytes == 0


# -- the server ----------------------------------------------------------------------------------------------


def test_a_server_gives_its_gate_to_connections_and_senders(host: FakeHost, lease: Lease) -> None:
    begun: list[Exchange] = []
    unused = mock.Mock()
    server = Server(
        Settings(),
        cast(Any, host),
        unused,
        unused,
        lambda exchange, _: begun.append(exchange),
        print,
        lease.gate,
    )
    near, far = socket.socketpair()
    lease.is_in_doubt = True
    connection = server.accept(LISTENER)
    connection.connection_made(cast(asyncio.BaseTransport, host))
    data = request(METADATA)
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))
    sender = server.send_from_files(near.fileno(), [b"head"], print)
    assert begun == []
    assert list(lease.gate.waiting) == [connection, sender]
    sender.stop()
    near.close()
    far.close()

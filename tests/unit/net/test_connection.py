"""One connection, given only what it needs: requests one at a time, responses in order, few bytes held."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from faircopy.net.connection import PIPELINED_REQUESTS_MAX
from faircopy.net.exchange import Exchange
from faircopy.storage.file import FileRange
from tests.unit.net.fake_host import MIB, FakeHost, request

KIB = 1 << 10
PRODUCE, METADATA = 0, 3


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


def test_responses_leave_in_the_order_of_their_requests(host: FakeHost) -> None:
    host.send(request(PRODUCE), request(PRODUCE), request(PRODUCE))
    first, second, third = host.exchanges
    second.answer(b"2")
    third.answer([b"3", b"4"])
    assert host.responses == []
    first.answer(b"1")
    assert host.responses == [b"1", b"2", b"3", b"4"]
    assert host.admission.in_flight_bytes == 0


def test_only_the_first_answer_counts(host: FakeHost) -> None:
    host.send(request(METADATA))
    host.exchanges[0].answer(None)
    host.exchanges[0].answer(b"late")
    assert host.responses == []
    assert host.admission.in_flight_bytes == 0


@pytest.mark.parametrize(
    ("api_keys", "begun"),
    [
        ((METADATA, METADATA), 1),
        ((METADATA, PRODUCE), 1),
        ((PRODUCE, METADATA), 1),
        ((PRODUCE, PRODUCE, METADATA), 2),
    ],
)
@pytest.mark.parametrize("size", [10, 100 * KIB])
def test_only_produce_follows_produce_at_once(
    host: FakeHost, api_keys: tuple[int, ...], begun: int, size: int
) -> None:
    host.send(*[request(api_key, size) for api_key in api_keys])
    assert len(host.exchanges) == begun
    assert not host.is_reading, "what waits is enough to hold"
    for exchange in list(host.exchanges):
        exchange.answer(b"done")
    assert len(host.exchanges) == begun + 1
    assert host.is_reading


def test_produce_does_not_follow_without_end(host: FakeHost) -> None:
    host.send(*[request(PRODUCE)] * (PIPELINED_REQUESTS_MAX + 5))
    assert len(host.exchanges) == PIPELINED_REQUESTS_MAX
    host.exchanges[0].answer(b"done")
    assert len(host.exchanges) == PIPELINED_REQUESTS_MAX + 1


@pytest.mark.parametrize("release_next", [Exchange.release_next, lambda exchange: exchange.answer(b"done")])
def test_a_produce_that_blocks_others_releases_them(
    host: FakeHost, release_next: Callable[[Exchange], None]
) -> None:
    host.send(request(PRODUCE))
    host.exchanges[0].blocks_next = True
    host.send(request(PRODUCE))
    assert len(host.exchanges) == 1
    release_next(host.exchanges[0])
    assert len(host.exchanges) == 2


def test_who_answers_is_told_that_the_client_has_gone(host: FakeHost) -> None:
    lost: list[int] = []
    host.send(request(PRODUCE), request(PRODUCE), request(PRODUCE))
    for number, exchange in enumerate(host.exchanges):
        exchange.when_lost = lambda number=number: lost.append(number)
    host.exchanges[1].answer(b"answered")
    host.hang_up()
    assert lost == [0, 2]
    assert not host.connection.is_open
    host.exchanges[0].answer(b"nobody hears it")
    assert host.responses == []
    assert host.admission.in_flight_bytes == host.exchanges[2].size


def test_a_connection_is_over_once_nobody_is_at_work_for_it(host: FakeHost) -> None:
    host.send(request(PRODUCE), request(PRODUCE))
    host.exchanges[1].answer(b"answered")
    host.hang_up()
    assert not host.is_over, "the first request may still be admitted"
    host.exchanges[0].answer(b"nobody hears it")
    assert host.is_over


def test_a_connection_without_requests_is_over_when_it_is_closed(host: FakeHost) -> None:
    host.send(request(PRODUCE))
    host.exchanges[0].answer(b"answered")
    assert not host.is_over
    host.hang_up()
    assert host.is_over


def test_a_client_that_does_not_read_is_not_read_from(host: FakeHost) -> None:
    host.connection.pause_writing()
    host.send(request(METADATA))
    assert host.exchanges == []
    assert not host.is_reading
    host.connection.resume_writing()
    assert len(host.exchanges) == 1
    assert host.is_reading


def test_without_room_a_request_waits_until_there_is(host: FakeHost) -> None:
    other = 2 * MIB
    host.admission.begin(other)
    host.send(request(METADATA))
    assert host.exchanges == []
    assert host.admission.take_waiting() == [host.connection]
    host.admission.end(other)
    host.connection.proceed()
    assert len(host.exchanges) == 1


def test_a_request_that_is_done_makes_room_for_others(host: FakeHost) -> None:
    host.send(request(METADATA))
    host.exchanges[0].answer(b"done")
    assert not host.is_room_due
    host.send(request(METADATA))
    host.admission.wait(host.connection)
    host.exchanges[1].answer(b"done")
    assert host.is_room_due


def test_what_is_no_frame_ends_the_connection_after_what_came_before_it(host: FakeHost) -> None:
    host.send(request(PRODUCE), b"\xff\xff\xff\xff", request(PRODUCE))
    assert len(host.exchanges) == 1
    assert host.is_closed
    assert len(host.complaints) == 1


def test_a_response_from_files_waits_for_the_transport_and_holds_up_what_follows(host: FakeHost) -> None:
    host.send(request(METADATA))
    host.unsent_bytes = 5
    host.exchanges[0].answer_from_files([b"head", cast(FileRange, b"tail")])
    host.send(request(METADATA))
    assert (host.senders, len(host.exchanges)) == ([], 1)
    host.unsent_bytes = 0
    host.connection.resume_writing()
    assert (len(host.senders), len(host.exchanges)) == (1, 1)
    assert host.connection.is_sending_files
    host.senders[0].done(None)
    assert len(host.exchanges) == 2
    assert not host.connection.is_sending_files


@pytest.mark.parametrize(("error", "complaints"), [(ConnectionResetError(), 0), (ValueError("damaged"), 1)])
def test_a_response_from_files_that_fails_ends_the_connection(
    host: FakeHost, error: Exception, complaints: int
) -> None:
    host.send(request(METADATA))
    host.exchanges[0].answer_from_files([b"head"])
    host.senders[0].done(error)
    assert host.is_closed
    assert len(host.complaints) == complaints


def test_a_client_that_goes_stops_the_sender(host: FakeHost) -> None:
    host.send(request(METADATA))
    host.exchanges[0].answer_from_files([b"head"])
    host.hang_up()
    assert host.senders[0].is_stopped

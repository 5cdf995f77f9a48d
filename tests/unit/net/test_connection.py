"""One connection, given only what it needs: requests one at a time, responses in order, few bytes held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from faircopy.net.admission import Admission
from faircopy.net.connection import PIPELINED_REQUESTS_MAX, Connection
from faircopy.net.exchange import Exchange, FromFiles
from faircopy.net.file_sender import FileSender
from faircopy.settings.table import Settings
from faircopy.storage.file import FileRange
from tests.simulation.network import LISTENER

MIB = 1 << 20
KIB = 1 << 10
PRODUCE, METADATA = 0, 3


class Sender:
    """In the place of a sender of files: it sends when it is told to."""

    def __init__(self, done: Callable[[BaseException | None], None]) -> None:
        self.done = done
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True


class FakeHost:
    """Whoever has accepted the connection, the transport that it has, and the client at its other end."""

    def __init__(self) -> None:
        self.settings = Settings(requests_in_flight_max_bytes=MIB, request_max_bytes=MIB)
        self.clock = cast(Any, self)
        self.admission: Admission[Connection] = Admission(self.settings)
        self.exchanges: list[Exchange] = []
        self.responses: list[bytes] = []
        self.complaints: list[str] = []
        self.is_over = False
        self.senders: list[Sender] = []
        self.is_room_due = False
        self.is_reading = True
        self.is_closed = False
        self.unsent_bytes = 0
        self.connection = Connection(
            self, LISTENER, 1, lambda exchange, _frame: self.exchanges.append(exchange)
        )
        self.connection.connection_made(cast(asyncio.BaseTransport, self))

    # -- the host --------------------------------------------------------------------------------------------

    def monotonic_ms(self) -> float:
        return 0.0

    def opened(self, connection: Connection) -> None:
        self.admission.open(connection, connection.peer)

    def closed(self, connection: Connection) -> None:
        self.admission.close(connection)

    def over(self, connection: Connection) -> None:
        self.is_over = True

    def room_is_made(self) -> None:
        self.is_room_due = True

    def complain(self, _connection: Connection, error: Exception) -> None:
        self.complaints.append(str(error))

    def send_from_files(
        self, _descriptor: int, _pieces: FromFiles, done: Callable[[BaseException | None], None]
    ) -> FileSender:
        self.senders.append(Sender(done))
        return cast(FileSender, self.senders[-1])

    # -- the transport ---------------------------------------------------------------------------------------

    def get_extra_info(self, name: str) -> Any:
        return self if name == "socket" else ("10.0.0.1", 1)

    def fileno(self) -> int:
        return 7

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def get_write_buffer_size(self) -> int:
        return self.unsent_bytes

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        if high == 0:
            self.connection.pause_writing()

    def write(self, data: bytes) -> None:
        self.responses.append(bytes(data))

    def writelines(self, buffers: Sequence[bytes]) -> None:
        self.responses.extend(map(bytes, buffers))

    # -- the client ------------------------------------------------------------------------------------------

    def send(self, *requests: bytes) -> None:
        """Send all of these, as long as they are read; at once if they are small."""
        data = b"".join(requests)
        while data and self.is_reading and not self.is_closed:
            room = self.connection.get_buffer(-1)
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]

    def hang_up(self) -> None:
        self.connection.connection_lost(None)


def request(api_key: int, size: int = 10) -> bytes:
    return size.to_bytes(4, "big") + api_key.to_bytes(2, "big") + bytes(size - 2)


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

"""Fetch sessions: by them, a client learns of each partition what it would be told without one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.api.fetch import sessions
from faircopy.api.fetch.sessions import LAST_EPOCH, Asking, FetchSessions, SessionRefused
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.fetch import FetchPartition, FetchRequest, FetchResult, TopicKey

NOT_FOUND, WRONG_EPOCH = ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH


class Connection:
    """A connection, by its identity."""


def asked(number: int, offset: int = 0, topic: TopicKey = "t") -> FetchPartition:
    return FetchPartition(topic, number, -1, offset, 1_000)


def request(
    session_id: int, epoch: int, *partitions: FetchPartition, forgotten: tuple[int, ...] = ()
) -> FetchRequest:
    gone: list[tuple[TopicKey, int]] = [("t", number) for number in forgotten]
    return FetchRequest(0, 1, 1_000, session_id, epoch, list(partitions), gone)


def result(number: int, end: int, start: int = 0, *, records: bytes = b"", error: int = 0) -> FetchResult:
    return FetchResult("t", number, error, end, end, start, [records] if records else [])


def numbers(asking: Asking) -> list[int]:
    return [each.partition for each in asking.partitions]


def told(asking: Asking, *results: FetchResult) -> list[int]:
    return [each.partition for each in asking.told(list(results))]


def refused(given: FetchSessions, connection: Any, wanted: FetchRequest) -> ErrorCode:
    with pytest.raises(SessionRefused) as caught:
        given.ask(connection, wanted)
    return caught.value.code


@pytest.fixture
def connection() -> Any:
    return Connection()


def test_a_client_is_told_what_is_new(connection: Any) -> None:
    given = FetchSessions()
    first = given.ask(connection, request(0, 0, *(asked(number) for number in range(4))))
    assert first.session_id and not first.goes_on
    assert told(first, *(result(number, 5) for number in range(4))) == [0, 1, 2, 3]

    second = given.ask(connection, request(first.session_id, 1, asked(1, 5)))
    assert numbers(second) == [0, 1, 2, 3]
    assert second.partitions[1].fetch_offset == 5
    news = [
        result(0, 5),
        result(1, 6),
        result(2, 5, start=1),
        result(3, -1, -1, error=ErrorCode.KAFKA_STORAGE_ERROR),
    ]
    assert told(second, *news) == [1, 2, 3]

    third = given.ask(connection, request(first.session_id, 2, asked(4), forgotten=(0, 7)))
    assert numbers(third) == [1, 2, 3, 4]
    assert told(third, *news[1:], result(4, 0)) == [3, 4], "an error is told each time"
    fourth = given.ask(connection, request(first.session_id, 3))
    assert told(fourth, *news[1:3], result(3, 5), result(4, 0)) == [3]


def test_those_with_messages_have_their_next_turn_last(connection: Any) -> None:
    given = FetchSessions()
    first = given.ask(connection, request(0, 0, asked(0), asked(1), asked(2)))
    told(first, result(0, 5, records=b"r"), result(1, 5), result(2, 5))
    second = given.ask(connection, request(first.session_id, 1))
    assert numbers(second) == [1, 2, 0]
    assert told(second, result(1, 5, records=b"r"), result(2, 5), result(0, 5)) == [1]
    assert numbers(given.ask(connection, request(first.session_id, 2))) == [2, 0, 1]


def test_sessions_are_of_one_connection_and_in_order(connection: Any) -> None:
    given = FetchSessions()
    number = given.ask(connection, request(0, 0, asked(0))).session_id
    assert refused(given, connection, request(number + 1, 1)) is NOT_FOUND
    assert refused(given, Connection(), request(number, 1)) is NOT_FOUND
    assert refused(given, connection, request(number, 2)) is WRONG_EPOCH
    assert given.ask(connection, request(number, 1)).goes_on
    assert refused(given, connection, request(number, 1)) is WRONG_EPOCH
    again = given.ask(connection, request(number, 0, asked(0))).session_id
    assert again != number and refused(given, connection, request(number, 2)) is NOT_FOUND
    assert given.ask(connection, request(again, -1, asked(0))).session_id == 0
    assert refused(given, connection, request(again, 1)) is NOT_FOUND


def test_a_session_has_topics_by_name_or_by_id(connection: Any) -> None:
    """As in Kafka: a client whose version changes begins another session."""
    given, by_id = FetchSessions(), asked(0, topic=bytes(16))
    number = given.ask(connection, request(0, 0, asked(0))).session_id
    with_ids = request(number, 1, by_id)._replace(has_ids=True)
    assert refused(given, connection, with_ids) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    number = given.ask(connection, request(0, 0, by_id)._replace(has_ids=True)).session_id
    assert numbers(given.ask(connection, request(number, 1)._replace(has_ids=True))) == [0]
    assert refused(given, connection, request(number, 2)) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_epochs_begin_again(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = FetchSessions()
    number = given.ask(connection, request(0, 0, asked(0))).session_id
    monkeypatch.setattr(sessions, "LAST_EPOCH", 2)
    for epoch in (1, 2, 1, 2):
        given.ask(connection, request(number, epoch))
    assert LAST_EPOCH == 2**31 - 1


def test_sessions_are_bounded_and_end_with_their_connection(connection: Any) -> None:
    given = FetchSessions(partitions_max=5)
    other: Any = Connection()
    number = given.ask(other, request(0, 0, asked(0), asked(1), asked(2))).session_id
    assert given.ask(connection, request(0, 0, asked(0), asked(1), asked(2))).session_id == 0
    assert given.ask(connection, request(0, 0, asked(0), asked(1))).session_id
    assert given.ask(other, request(number, 1)).goes_on
    assert refused(given, other, request(number, 2, asked(3))) is NOT_FOUND, "no room, so it is ended"
    assert refused(given, other, request(number, 2)) is NOT_FOUND
    other = Connection()
    number = given.ask(other, request(0, 0, asked(0), asked(1), asked(2))).session_id
    assert number
    del other
    assert given.ask(connection, request(0, 0, *map(asked, range(5)))).session_id


def test_no_session_keeps_names_that_no_topic_can_have(connection: Any) -> None:
    given, long = FetchSessions(), FetchPartition("t" * 250, 0, -1, 0, 1_000)
    assert given.ask(connection, request(0, 0, asked(0), long)).session_id == 0
    number = given.ask(connection, request(0, 0, asked(0))).session_id
    assert refused(given, connection, request(number, 1, long)) is NOT_FOUND
    assert refused(given, connection, request(number, 1)) is NOT_FOUND


LOGS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=4, max_size=4)
STEP = st.tuples(LOGS, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3))


@given(steps=st.lists(STEP, min_size=1, max_size=12))
def test_nothing_is_left_out(steps: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]]) -> None:
    """What the client knows after each Fetch is what all partitions would have told it."""
    connection: Any = Connection()
    given, offsets = FetchSessions(), dict.fromkeys(range(4), 0)
    known: dict[int, tuple[int, int]] = {}
    asking = given.ask(connection, request(0, 0, *(asked(number) for number in range(4))))
    for epoch, (logs, moves) in enumerate(steps, 1):
        answers = []
        for each in asking.partitions:
            end, start = logs[each.partition]
            log = SimpleNamespace(end_offset=end, start_offset=start)
            journal = SimpleNamespace(leader_epoch=1)
            partition: Any = SimpleNamespace(failure=None, log=log, journal=journal)
            if not asking.has_nothing_new(each, partition):
                answers.append(result(each.partition, end, start, records=b"r" * (end - each.fetch_offset)))
        news = asking.told(answers)
        known |= {each.partition: (each.high_watermark, each.log_start_offset) for each in news}
        assert known == dict(enumerate(logs))
        with_records = {each.partition for each in news if each.records}
        assert with_records == {number for number in range(4) if logs[number][0] > offsets[number]}
        offsets |= dict(moves)
        changes = [asked(number, offset) for number, offset in moves]
        asking = given.ask(connection, request(asking.session_id, epoch, *changes))
        assert {each.partition: each.fetch_offset for each in asking.partitions} == offsets

"""Cuts of a real broker: readers of several topics see whole transactions, whatever limit they set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.api.cut import SCHEMA as CUT
from faircopy.api.delete_records import SCHEMA as DELETE_RECORDS
from faircopy.api.spans import SCHEMA as SPANS
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess

TOPICS = {"orders": 2, "audit": 1}
PLACES = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
TRANSACTIONS = 30
PLAIN = 20

Place = tuple[str, int]
Offsets = dict[Place, int]


@pytest.fixture(scope="module")
def filled(broker: BrokerProcess) -> BrokerProcess:
    """A broker with transactions over all partitions and plain messages, and a restart in between."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    for made in admin.create_topics([NewTopic(name, count) for name, count in TOPICS.items()]).values():
        made.result(60)
    commit(broker.address, 0)
    broker.restart(kill=False)
    commit(broker.address, 1)
    broker.restart(kill=True)
    commit(broker.address, 2)
    return broker


def commit(address: str, life: int) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": f"orders/{life}", "linger.ms": 0})
    producer.init_transactions(60)
    plain = Producer({"bootstrap.servers": address, "linger.ms": 0})
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for topic, partition in PLACES[number % 2 :]:
            for _ in range(number % 3 + 1):
                producer.produce(topic, b"%d.%d" % (life, number), partition=partition)
        producer.commit_transaction(60)
        if number < PLAIN:
            plain.produce("orders", b"plain", partition=number % 2)
            plain.flush(60)


def cut(address: str, starts: Offsets, **limits: int) -> tuple[Offsets, Offsets]:
    """Where a cut starts and ends."""
    with BrokerConnection(address) as connection:
        answer = connection.ask(CUT, 0, limits | {"topics": asked(starts)})
    assert answer.error_code == ErrorCode.NONE
    found = [(topic.name, each) for topic in answer.topics for each in topic.partitions]
    assert all(each.error_code == ErrorCode.NONE for _, each in found)
    return (
        {(name, each.partition): each.start_offset for name, each in found},
        {(name, each.partition): each.end_offset for name, each in found},
    )


def asked(starts: Offsets) -> list[dict[str, Any]]:
    return [
        {"name": topic, "partitions": [{"partition": number, "start_offset": offset}]}
        for (topic, number), offset in starts.items()
    ]


def spans(address: str, place: Place, start: int, end: int) -> Iterator[Any]:
    with BrokerConnection(address) as connection:
        while start < end:
            asked = {"name": place[0], "partition": place[1], "start_offset": start, "end_offset": end}
            answer = connection.ask(SPANS, 0, asked)
            assert answer.error_code == ErrorCode.NONE
            yield from answer.spans
            start = answer.next_offset


def transactions(address: str, starts: Offsets, ends: Offsets) -> set[tuple[int, int]]:
    """The transactions with messages between these offsets, by producer and number."""
    return {
        (span.producer_id, span.number)
        for place in starts
        for span in spans(address, place, starts[place], ends[place])
    }


def test_all_of_it_is_one_cut(filled: BrokerProcess) -> None:
    starts, ends = cut(filled.address, dict.fromkeys(PLACES, -1))
    assert set(starts.values()) == {0}
    assert len(transactions(filled.address, starts, ends)) == 3 * TRANSACTIONS
    assert cut(filled.address, ends)[1] == ends


@pytest.mark.parametrize(
    "limits", [{"limit_rows": 1}, {"limit_rows": 17}, {"limit_bytes": 1}, {"limit_bytes": 3_000}]
)
def test_limited_cuts_divide_no_transaction(filled: BrokerProcess, limits: dict[str, int]) -> None:
    everything = cut(filled.address, dict.fromkeys(PLACES, -1))[1]
    starts, seen, turns = dict.fromkeys(PLACES, 0), set[tuple[int, int]](), 0
    while True:
        ends = cut(filled.address, starts, **limits)[1]
        if ends == starts:
            break
        new = transactions(filled.address, starts, ends)
        assert not new & seen
        seen |= new
        if limits.get("limit_rows", 0) > 9:  # more than any transaction
            assert sum(ends.values()) - sum(starts.values()) <= limits["limit_rows"]
        starts = ends
        turns += 1
    assert starts == everything
    assert len(seen) == 3 * TRANSACTIONS
    assert turns > 5


def test_an_error_in_one_partition_is_no_cut_of_any(filled: BrokerProcess) -> None:
    topics = asked({PLACES[0]: 0, ("none", 0): 0, PLACES[1]: 1 << 40})
    with BrokerConnection(filled.address) as connection:
        answer = connection.ask(CUT, 0, {"topics": topics})
    found = [each for topic in answer.topics for each in topic.partitions]
    assert [each.error_code for each in found] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    ]
    assert found[0].end_offset == found[0].start_offset == 0


def test_what_is_deleted_is_out_of_range(filled: BrokerProcess) -> None:
    delete = {
        "topics": [{"name": "audit", "partitions": [{"partition_index": 0, "offset": 5}]}],
        "timeout_ms": 10_000,
    }
    with BrokerConnection(filled.address) as connection:
        connection.ask(DELETE_RECORDS, 2, delete)
        answer = connection.ask(CUT, 0, {"topics": asked({("audit", 0): 0})})
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.log_start) == (ErrorCode.OFFSET_OUT_OF_RANGE, 5)
    assert cut(filled.address, {("audit", 0): -1})[0] == {("audit", 0): 5}

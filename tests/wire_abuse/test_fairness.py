"""One client's large requests: others are served meanwhile, and no answer exceeds what there is."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import cramjam
import pytest

from faircopy.api.api_versions import SCHEMA as API_VERSIONS
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.routes import schema_of
from faircopy.client.connection import BrokerConnection
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.batch import HEADER, HEADER_BYTES, read_header
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import encode_request
from faircopy.wire.records import NewRecord, build_batch, with_crc
from tests.broker_process import BrokerProcess, eventually

MANY = 30_000
TRIES = 50  # on a busy machine, small requests may come slowly while the large one is worked on
PARTITION = {"partition_index": 0, "timestamp": -1}


def many(prefix: str) -> list[str]:
    return [f"{prefix}-{number}" for number in range(MANY)]


NUMBERS = list(range(MANY))
FETCH_PARTITION = {"fetch_offset": 0, "log_start_offset": -1, "partition_max_bytes": 1}
FETCH: dict[str, Any] = {
    "max_wait_ms": 0,
    "min_bytes": 1,
    "topics": [{"topic": "t", "partitions": [FETCH_PARTITION | {"partition": n} for n in range(MANY)]}],
}
PRODUCE = {
    "acks": 1,
    "timeout_ms": 5_000,
    "topic_data": [{"name": "t", "partition_data": [{"index": n, "records": None} for n in range(MANY)]}],
}
PRODUCER = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0}
SIMPLE_CONSUMER = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
OFFSET = {"committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": None}
OFFSETS = [{"name": "t", "partitions": [OFFSET | {"partition_index": n} for n in range(MANY)]}]

LARGE: dict[str, tuple[ApiKey, int, dict[str, Any]]] = {
    "metadata": (
        ApiKey.METADATA,
        9,
        {"topics": [{"name": name} for name in many("t")], "allow_auto_topic_creation": False},
    ),
    "coordinators": (ApiKey.FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": many("g")}),
    "groups": (ApiKey.DESCRIBE_GROUPS, 5, {"groups": many("g")}),
    "offsets of groups": (
        ApiKey.OFFSET_FETCH,
        8,
        {"groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": list(range(MANY))}]}]},
    ),
    "offsets": (
        ApiKey.LIST_OFFSETS,
        5,
        {"topics": [{"name": "t", "partitions": [PARTITION | {"partition_index": n} for n in range(MANY)]}]},
    ),
    "transactions": (ApiKey.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": many("x")}),
    "pages of topics": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        {"topics": [{"name": name} for name in many("t")]},
    ),
    "leaders": (ApiKey.ELECT_LEADERS, 2, {"topic_partitions": [{"topic": "t", "partitions": NUMBERS}]}),
    "moves": (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        0,
        {"topics": [{"name": "t", "partitions": [{"partition_index": number} for number in NUMBERS]}]},
    ),
    "voters": (
        ApiKey.DESCRIBE_QUORUM,
        0,
        {"topics": [{"topic_name": "t", "partitions": [{"partition_index": number} for number in NUMBERS]}]},
    ),
    "fetch": (ApiKey.FETCH, 11, FETCH),
    "fetch by id": (
        ApiKey.FETCH,
        18,
        FETCH | {"topics": [{"topic_id": bytes(16), "partitions": FETCH["topics"][0]["partitions"]}]},
    ),
    "produce": (ApiKey.PRODUCE, 8, PRODUCE),
    "partitions of a transaction": (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        2,
        PRODUCER | {"topics": [{"name": "t", "partitions": list(range(MANY))}]},
    ),
    "offsets to commit": (ApiKey.OFFSET_COMMIT, 5, SIMPLE_CONSUMER | {"topics": OFFSETS}),
    "offsets to delete": (
        ApiKey.OFFSET_DELETE,
        0,
        {
            "group_id": "g",
            "topics": [{"name": "t", "partitions": [{"partition_index": n} for n in range(MANY)]}],
        },
    ),
    "offsets in a transaction": (
        ApiKey.TXN_OFFSET_COMMIT,
        2,
        PRODUCER | {"group_id": "g", "topics": OFFSETS},
    ),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(
        tmp_path_factory.mktemp("fairness"), "plain.enabled=false", "durability=os"
    ) as process:
        with BrokerConnection(process.address) as connection:
            connection.ask(METADATA, 9, {"topics": [{"name": "there"}], "allow_auto_topic_creation": True})
        yield process


def ask(broker: BrokerProcess, api_key: ApiKey, version: int, body: dict[str, Any]) -> Message:
    with BrokerConnection(broker.address) as connection:
        return connection.ask(schema_of(api_key), version, body)


@pytest.mark.parametrize("what", LARGE)
def test_others_are_served_while_a_large_request_is_worked_on(broker: BrokerProcess, what: str) -> None:
    """Counted in answers, not in time: a loop that finishes one request first gives others one at most."""
    api_key, version, body = LARGE[what]
    request = encode_request(schema_of(api_key), version, 1, "large", body)
    host, port = broker.address.split(":")
    served = 0
    for _ in range(TRIES):
        with (
            socket.create_connection((host, int(port)), 30) as large,
            BrokerConnection(broker.address) as small,
        ):
            large.sendall(request)
            large.setblocking(False)
            served = 0
            while not has_answer(large):
                small.ask(API_VERSIONS, 2, {})
                served += 1
        if served > 20:
            break
    assert served > 20


def has_answer(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return False


def test_what_is_asked_for_twice_is_answered_once(broker: BrokerProcess) -> None:
    """Else some bytes a piece would ask for a description of many kilobytes each."""
    times = 5_000
    config = {"resource_type": 2, "resource_name": "there", "configuration_keys": None}
    assert len(ask(broker, ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [config] * times}).results) == 1
    assert len(ask(broker, ApiKey.METADATA, 9, {"topics": [{"name": "there"}] * times}).topics) == 1
    assert len(ask(broker, ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["g"] * times}).groups) == 1
    fetch = {"groups": [{"group_id": "g", "topics": None}] * times}
    assert len(ask(broker, ApiKey.OFFSET_FETCH, 8, fetch).groups) == 1
    transactions = {"transactional_ids": ["x"] * times}
    assert len(ask(broker, ApiKey.DESCRIBE_TRANSACTIONS, 0, transactions).transaction_states) == 1
    producers = {"topics": [{"name": "there", "partition_indexes": [0] * times}] * 2}
    (topic,) = ask(broker, ApiKey.DESCRIBE_PRODUCERS, 0, producers).topics
    assert len(topic.partitions) == 1
    offsets = {"topics": [{"name": "there", "partitions": [PARTITION] * times}]}
    (topic,) = ask(broker, ApiKey.LIST_OFFSETS, 5, offsets).topics
    assert {partition.error_code for partition in topic.partitions} == {ErrorCode.INVALID_REQUEST}, (
        "as Kafka says"
    )


def test_large_requests_in_parallel_are_read_apart_from_each_other(broker: BrokerProcess) -> None:
    answers = {"metadata": "topics", "coordinators": "coordinators", "groups": "groups"}

    def work(what: str) -> int:
        return len(getattr(ask(broker, *LARGE[what]), answers[what]))

    with ThreadPoolExecutor(6) as clients:
        assert set(clients.map(work, list(answers) * 4)) == {MANY}


def test_work_for_clients_that_are_gone_is_stopped(broker: BrokerProcess) -> None:
    api_key, version, body = LARGE["offsets"]
    request = encode_request(schema_of(api_key), version, 1, "gone", body)
    host, port = broker.address.split(":")

    def in_flight_bytes() -> int:
        document = ask(broker, ApiKey.INSPECT, 0, {"subject": "broker"}).document
        return int(json.loads(document)["requests_in_flight_bytes"])

    with ExitStack() as stack:
        for _ in range(30):
            connection = stack.enter_context(socket.create_connection((host, int(port)), 60))
            connection.sendall(request)
        eventually(lambda: in_flight_bytes() > len(request))
    eventually(lambda: in_flight_bytes() < len(request))


def batch_of_many_small_records(records: int) -> bytes:
    """Compressed: some KiB that hold 8 bytes a record."""
    plain = build_batch([NewRecord(b"", timestamp_ms=number % 2) for number in range(records)])
    section = bytes(cramjam.zstd.compress(plain[HEADER_BYTES:]))
    header = read_header(plain)._replace(attributes=4, length=HEADER_BYTES - 12 + len(section))
    return with_crc(HEADER.pack(*header) + section)


def test_a_stop_meets_no_request_that_goes_on(broker: BrokerProcess) -> None:
    """Searches by time that are in the works when their clients go, and then the broker."""
    batch = batch_of_many_small_records(300_000)
    partitions = [{"index": 0, "records": batch}]
    produce = {
        "acks": -1,
        "timeout_ms": 5_000,
        "topic_data": [{"name": "there", "partition_data": partitions}],
    }
    answer = ask(broker, ApiKey.PRODUCE, 9, produce)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    search = {"topics": [{"name": "there", "partitions": [PARTITION | {"timestamp": 1}]}]}
    eventually(lambda: ask(broker, ApiKey.LIST_OFFSETS, 5, search).topics[0].partitions[0].offset == 1)
    requests = [
        encode_request(LIST_OFFSETS, 5, 1, "gone", search),
        *(encode_request(schema_of(row[0]), row[1], 1, "gone", row[2]) for row in LARGE.values()),
    ]
    host, port = broker.address.split(":")
    clients = [socket.create_connection((host, int(port)), 60) for _ in range(28)]
    for number, client in enumerate(clients):
        client.sendall(requests[number % len(requests)])
    assert broker.stop() == 0
    for client in clients:
        client.close()
    broker.ensure_no_traceback()
    assert "ERROR" not in broker.log
    broker.start()

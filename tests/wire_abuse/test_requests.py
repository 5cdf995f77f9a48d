"""Requests that are well-formed and make no sense: random ones of every API, long names, huge arrays."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faircopy.api.describe_groups import SCHEMA as DESCRIBE_GROUPS
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.init_producer_id import SCHEMA as INIT_PRODUCER_ID
from faircopy.api.inspect import SCHEMA as INSPECT
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.offset_commit import SCHEMA as OFFSET_COMMIT
from faircopy.api.offset_fetch import SCHEMA as OFFSET_FETCH
from faircopy.api.routes import advertised, schema_of
from faircopy.client.connection import BrokerConnection
from faircopy.client.errors import ConnectionFailed
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import encode_request
from faircopy.wire.primitives import ELEMENTS_MAX, varint
from faircopy.wire.records import NewRecord, build_batch
from faircopy.wire.schema import STRUCTURE, Field
from tests.broker_process import BrokerProcess, eventually
from tests.wire_abuse.memory import memory_bytes

MEMORY_BYTES_MAX = 200 << 20
TOPIC = "sense"  # what is asked at random changes and deletes only other topics
VICTIM = "nonsense"
LONGEST = 32_767


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One that checkpoints often, since what is taken must be stored as well."""
    process = BrokerProcess(
        tmp_path_factory.mktemp("requests"), "checkpoint.interval.ms=100", "plain.enabled=false"
    )
    with process:
        with BrokerConnection(process.address) as connection:
            connection.ask(
                METADATA,
                9,
                {"topics": [{"name": TOPIC}, {"name": VICTIM}], "allow_auto_topic_creation": True},
            )
        yield process
        assert memory_bytes(process) < MEMORY_BYTES_MAX
        process.ensure_no_traceback()
        assert "ERROR" not in process.log
        # What was taken from all these clients can be recovered from.
        process.restart()
        process.ensure_no_traceback()


def is_serving(broker: BrokerProcess) -> bool:
    with BrokerConnection(broker.address) as connection:
        return bool(connection.ask(METADATA, 9, {"topics": [{"name": TOPIC}]}).topics[0].error_code == 0)


# -- random requests -----------------------------------------------------------------------------------------

BATCH = build_batch([NewRecord(b"value", b"key", 1_000)])
NAMES = [
    "",
    VICTIM,
    "other",
    "group",
    "\0",
    "ä/ö",
    ".",
    "x" * 300,
    "consumer",
    "range",
    "broker",
    "0",
    "retention.ms",
]
SMALL = [-2, -1, 0, 1, 2, 3, 1_000]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.sampled_from([-128, *SMALL[:6], 127]),
    "int16": st.sampled_from([-(2**15), *SMALL, 2**15 - 1]),
    "int32": st.sampled_from([-(2**31), *SMALL, 2**31 - 1]),
    "int64": st.sampled_from([-(2**63), *SMALL, 2**63 - 1]),
    "uuid": st.sampled_from([bytes(16), b"\xff" * 16]),
    "string": st.sampled_from(NAMES),
    "bytes": st.sampled_from([b"", b"\0\0", b"\0\0\0\0\0\1\0\x08nonsense\xff\xff\xff\xff", bytes(1_000)]),
    "records": st.sampled_from([b"", BATCH, BATCH[:50], BATCH + BATCH]),
}
# So many partitions can be had, and are a matter of administrators and not of bad input.
NO_MASSES = {"num_partitions", "count"}


def body_of(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Any body with these fields."""
    present = [field for field in fields if field.versions.has(version)]
    return st.fixed_dictionaries({field.name: value_of(field, version) for field in present})


def value_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    value = body_of(field.fields, version) if field.type == STRUCTURE else VALUES[field.type]
    if field.name in NO_MASSES:
        value = st.sampled_from([-1, 0, 1, 2, 2**31 - 1])
    if field.array:
        value = st.lists(value, max_size=3)
    may_be_null = field.nullable is not None and field.nullable.has(version)
    is_tagged_structure = field.tag is not None and field.type == STRUCTURE and not field.array
    return st.none() | value if may_be_null or is_tagged_structure else value


REQUESTS = st.sampled_from(
    [(ApiKey.INSPECT, 0), (ApiKey.BACKUP, 1), (ApiKey.CUT, 0), (ApiKey.SPANS, 0)]
    + [
        (api_key, version)
        for api_key, versions in advertised().items()
        for version in versions
        if schema_of(api_key).versions.has(version)
    ]
)


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_request_is_answered_or_closes_its_connection(broker: BrokerProcess, data: st.DataObject) -> None:
    """What may wait, as a fetch, is not waited for."""
    api_key, version = data.draw(REQUESTS)
    body = data.draw(body_of(schema_of(api_key).request, version))
    logged = len(broker.log)
    with BrokerConnection(broker.address, timeout_seconds=0.05) as connection:
        try:
            connection.ask(schema_of(api_key), version, body)
        except ConnectionFailed:
            assert is_serving(broker)
    assert "Traceback" not in broker.log[logged:], broker.log[logged:]


# -- names ---------------------------------------------------------------------------------------------------


def test_the_longest_names_are_answered(broker: BrokerProcess) -> None:
    """An error about a name of 32767 characters must not be longer than its response can hold."""
    name = "x" * LONGEST
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    odd = topic | {"name": "odd", "configs": [{"name": name, "value": name}]}
    resource = {"resource_type": 2, "resource_name": name}
    records = {"name": name, "partition_data": [{"index": 0, "records": BATCH}]}
    joining = {
        "group_id": "long", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 1, "member_id": "",
        "group_instance_id": name, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }  # fmt: skip
    with BrokerConnection(broker.address) as connection:
        for api_key, version, body in (
            (ApiKey.CREATE_TOPICS, 4, {"topics": [topic, odd], "timeout_ms": 1, "validate_only": False}),
            (ApiKey.DELETE_TOPICS, 5, {"topic_names": [name], "timeout_ms": 1}),
            (ApiKey.CREATE_PARTITIONS, 1, {"topics": [{"name": name, "count": 2, "assignments": None}],
                                           "timeout_ms": 1, "validate_only": False}),
            (ApiKey.ALTER_CONFIGS, 1, {"resources": [resource | {"configs": []}], "validate_only": False}),
            (ApiKey.DESCRIBE_CONFIGS, 1, {"resources": [resource | {"configuration_keys": None}],
                                          "include_synonyms": False}),
            (ApiKey.PRODUCE, 8, {"acks": 1, "timeout_ms": 1, "topic_data": [records]}),
            (ApiKey.JOIN_GROUP, 5, joining),
        ):  # fmt: skip
            connection.ask(schema_of(api_key), version, body)


def test_long_names_can_be_stored(broker: BrokerProcess) -> None:
    """A name longer than a key of the state store must not keep the broker from storing its state."""
    for length in (480, 5_000, LONGEST):
        name = "ä" * (length // 2)
        with BrokerConnection(broker.address) as connection:
            row = {"partition_index": 0, "committed_offset": length, "committed_metadata": None}
            commit = {
                "group_id": name,
                "generation_id": -1,
                "member_id": "",
                "topics": [{"name": TOPIC, "partitions": [row]}],
            }
            answer = connection.ask(OFFSET_COMMIT, 5, commit)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
            init = {"transactional_id": name, "transaction_timeout_ms": 1_000}
            identity = connection.ask(INIT_PRODUCER_ID, 1, init)
            broker.restart(kill=False)
        with BrokerConnection(broker.address) as connection:
            fetch = {"group_id": name, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
            assert connection.ask(OFFSET_FETCH, 5, fetch).topics[0].partitions[0].committed_offset == length
            again = connection.ask(INIT_PRODUCER_ID, 1, init)
            assert (again.producer_id, again.producer_epoch) == (
                identity.producer_id,
                identity.producer_epoch + 1,
            )


# -- arrays --------------------------------------------------------------------------------------------------

COUNT = 1_000_000
ELEMENTS = [
    (ApiKey.METADATA, 12, b"", bytes(16) + b"\1\0", b"\0\0\0"),
    (ApiKey.FIND_COORDINATOR, 4, b"\0", b"\1", b"\0"),
    (ApiKey.DESCRIBE_GROUPS, 5, b"", b"\1", b"\0\0"),
    (ApiKey.DELETE_GROUPS, 2, b"", b"\1", b"\0"),
    (ApiKey.DESCRIBE_TRANSACTIONS, 0, b"", b"\1", b"\0"),
    (ApiKey.OFFSET_FETCH, 8, b"", b"\1\0\0", b"\0\0"),
    (ApiKey.LEAVE_GROUP, 4, b"\2g", b"\1\0\0", b"\0"),
    (ApiKey.CREATE_TOPICS, 7, b"", b"\1" + bytes(6) + b"\1\1\0", bytes(6)),
    (ApiKey.DELETE_TOPICS, 6, b"", b"\0" + bytes(16) + b"\0", bytes(5)),
    (ApiKey.PRODUCE, 9, b"\0\xff\xff\0\0\0\1\2\6sense", bytes(6), b"\0\0"),
    (ApiKey.PRODUCE, 9, b"\0\xff\xff\0\0\0\1", b"\1\1\0", b"\0"),
    (ApiKey.FETCH, 12, bytes(17) + bytes(4) + b"\xff\xff\xff\xff\2\6sense", bytes(33), bytes(4)),
    (ApiKey.FETCH, 12, bytes(17) + bytes(4) + b"\xff\xff\xff\xff", b"\1\1\0", bytes(3)),
]


def ask_raw(broker: BrokerProcess, api_key: int, version: int, body: bytes) -> int:
    """The size of the answer; 0 if the connection was closed instead."""
    frame = struct.pack(">hhihb", api_key, version, 1, -1, 0) + body
    host, port = broker.address.split(":")
    with socket.create_connection((host, int(port)), 60) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        try:
            prefix = connection.recv(4, socket.MSG_WAITALL)
        except ConnectionError:
            return 0
        left = size = int.from_bytes(prefix, "big")
        while left:
            left -= len(connection.recv(min(left, 1 << 20)))
        return size


@pytest.mark.parametrize(
    ("api_key", "version", "before", "element", "after"),
    ELEMENTS,
    ids=lambda value: value.name if isinstance(value, ApiKey) else "",
)
def test_huge_arrays_are_refused(
    broker: BrokerProcess, api_key: ApiKey, version: int, before: bytes, element: bytes, after: bytes
) -> None:
    """A million elements in a few MB would take a hundred times that, and seconds, with their answers."""
    count = min(COUNT, (7 << 20) // len(element))
    assert ask_raw(broker, api_key, version, before + varint(count + 1) + element * count + after) == 0
    few = 100
    assert ask_raw(broker, api_key, version, before + varint(few + 1) + element * few + after) > 0


def test_the_largest_arrays_are_answered(broker: BrokerProcess) -> None:
    names = [f"g{number}" for number in range(ELEMENTS_MAX)]
    with BrokerConnection(broker.address) as connection:
        answer = connection.ask(DESCRIBE_GROUPS, 5, {"groups": names, "include_authorized_operations": False})
        assert len(answer.groups) == ELEMENTS_MAX
        with pytest.raises(ConnectionFailed):
            connection.ask(
                DESCRIBE_GROUPS,
                5,
                {"groups": [*names, "one more"], "include_authorized_operations": False},
            )


def test_tagged_fields_without_end_are_refused(broker: BrokerProcess) -> None:
    tags = b"".join(varint(number) + b"\0" for number in range(100_000))
    assert ask_raw(broker, ApiKey.LIST_GROUPS, 4, b"\1" + varint(100_000) + tags) == 0
    few = b"".join(varint(number) + b"\0" for number in range(20))
    assert ask_raw(broker, ApiKey.LIST_GROUPS, 4, b"\1" + varint(20) + few) > 0


# -- waiting -------------------------------------------------------------------------------------------------


def test_a_fetch_is_given_up_with_its_client(broker: BrokerProcess) -> None:
    """Fetches that would wait for 24 days, of clients that go: nothing stays of them."""
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}
    body = {
        "max_wait_ms": 2**31 - 1, "min_bytes": 2**31 - 1, "max_bytes": 1,
        "topics": [{"topic": TOPIC, "partitions": [asked] * 500}],
    }  # fmt: skip
    request = encode_request(FETCH, 11, 1, "gone", body)
    host, port = broker.address.split(":")

    def in_flight_bytes() -> int:
        with BrokerConnection(broker.address) as connection:
            about = json.loads(connection.ask(INSPECT, 0, {"subject": "broker"}).document)
        # The question itself is in flight, too.
        return int(about["requests_in_flight_bytes"])

    with ExitStack() as stack:
        for _ in range(100):
            connection = stack.enter_context(socket.create_connection((host, int(port)), 60))
            connection.sendall(request)
        eventually(lambda: in_flight_bytes() > 99 * len(request))
    eventually(lambda: in_flight_bytes() < len(request))


def test_a_request_over_the_limit_closes_its_connection(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "request.max.bytes=5000") as broker:
        with BrokerConnection(broker.address) as connection:
            connection.ask(METADATA, 9, {"topics": [{"name": "x" * 4_000}]})
            with pytest.raises(ConnectionFailed):
                connection.ask(METADATA, 9, {"topics": [{"name": "x" * 6_000}]})
        assert "a frame of 60" in broker.log

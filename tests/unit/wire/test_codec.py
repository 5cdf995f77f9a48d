"""The codec by itself: what it makes of messages that are no messages, and of values that do not fit."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.api.end_txn import SCHEMA as END_TXN_SCHEMA
from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.api.routes import ROUTES, schema_of
from faircopy.wire import codec
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Direction, MalformedMessage, UnencodableMessage, UnknownMessage
from faircopy.wire.schema import STRUCTURE, Field
from tests.peak_memory import takes_less_than

MESSAGES = [
    (api_key, version, direction)
    for api_key in sorted(ROUTES)
    for version in range(schema_of(api_key).versions.first, schema_of(api_key).versions.last + 1)
    for direction in ("request", "response")
]
SAMPLES = {"string": "text", "bytes": b"12345", "records": b"12345678", "uuid": bytes(16), "bool": True}
HUGE_COUNTS = [bytes.fromhex(n) for n in ("7fffffff", "ffffffff", "80000000", "ffffffff07", "ff" * 9)]


def sample(fields: tuple[Field, ...]) -> dict[str, Any]:
    """A body with every field, each array with two elements."""
    return {f.name: [sample_of(f)] * 2 if f.array else sample_of(f) for f in fields}


def sample_of(field: Field) -> Any:
    return sample(field.fields) if field.type == STRUCTURE else SAMPLES.get(field.type, 1)


def encoded(api_key: int, version: int, direction: Direction) -> bytes:
    schema = schema_of(api_key)
    out = bytearray()
    body = sample(schema.request if direction == "request" else schema.response)
    codec.writer(schema_of(api_key), version, direction)(out, body)
    return bytes(out)


def read(api_key: int, version: int, data: bytes, direction: Direction = "request") -> Any:
    message, _ = codec.reader(schema_of(api_key), version, direction)(memoryview(data), 0)
    return message


def damaged(data: bytes) -> Iterator[bytes]:
    """`data` with a monstrous number in each place where a length or count could be."""
    for at in range(len(data)):
        for number in HUGE_COUNTS:
            yield data[:at] + number + data[at + len(number) :]


@pytest.mark.parametrize(("api_key", "version", "direction"), MESSAGES)
def test_every_prefix_is_malformed(api_key: int, version: int, direction: Direction) -> None:
    data = encoded(api_key, version, direction)
    for size in range(len(data)):
        with pytest.raises(MalformedMessage):
            read(api_key, version, data[:size], direction)


@pytest.mark.parametrize(("api_key", "version", "direction"), MESSAGES)
def test_monstrous_numbers_are_refused_before_anything_is_allocated(
    api_key: int, version: int, direction: Direction
) -> None:
    data = encoded(api_key, version, direction)
    attempts = list(damaged(data))
    codec.reader(schema_of(api_key), version, direction)

    def read_all() -> None:
        for attempt in attempts:
            with contextlib.suppress(MalformedMessage):
                read(api_key, version, attempt, direction)

    assert takes_less_than(200_000, read_all, f"API {api_key}, version {version}")


@pytest.mark.parametrize("api_key", sorted(ROUTES))
@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=200))
def test_noise_is_malformed_or_read(api_key: int, data: bytes) -> None:
    versions = schema_of(api_key).versions
    for version in {versions.first, versions.last}:
        for direction in ("request", "response"):
            try:
                read(api_key, version, data, direction)
            except MalformedMessage:
                continue


def test_an_array_of_empty_structures_is_held_against_the_bytes_that_remain() -> None:
    topics = b"\xff\xff\xff\xff\x0f"  # 2^32 - 2 topics of at least a byte each
    with pytest.raises(MalformedMessage, match="topics counts 4294967294 elements"):
        read(ApiKey.METADATA, 9, topics + bytes(1000))


@pytest.mark.parametrize("varint", [b"\xff\xff\xff\xff\x10", b"\xff\xff\xff\xff\xff\x01", b"\x80" * 20])
def test_long_varints_are_malformed(varint: bytes) -> None:
    with pytest.raises(MalformedMessage, match="varint"):
        read(ApiKey.METADATA, 9, varint + bytes(100))


def test_text_must_be_utf8() -> None:
    with pytest.raises(MalformedMessage, match="UTF-8"):
        read(ApiKey.HEARTBEAT, 0, b"\0\2\xff\xfe" + bytes(20))


def test_null_where_none_may_be_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="group_id has length -1"):
        read(ApiKey.HEARTBEAT, 0, b"\xff\xff" + bytes(20))
    with pytest.raises(MalformedMessage, match="group_id is null"):
        read(ApiKey.HEARTBEAT, 4, b"\0" + bytes(20))


def test_lengths_below_null_are_malformed() -> None:
    with pytest.raises(MalformedMessage, match="length -2"):
        read(ApiKey.METADATA, 1, b"\xff\xff\xff\xfe")


END_TXN = b"\3ab" + b"\0" * 7 + b"\5" + b"\0\6" + b"\1"


def test_unknown_tagged_fields_are_skipped() -> None:
    message = read(ApiKey.END_TXN, 3, END_TXN + b"\2" + b"\x07\2xy" + b"\xff\1\0")
    assert (message.transactional_id, message.producer_id, message.producer_epoch) == ("ab", 5, 6)
    assert message.committed is True


@pytest.mark.parametrize(
    "tags",
    [b"\1\x07\3xy", b"\1\x07", b"\1", b"\xff\xff\xff\xff\x0f", b"\1\x07\xff\xff\xff\xff\x0f"],
    ids=["too long", "no size", "no tag", "count", "size"],
)
def test_damaged_tagged_fields_are_malformed(tags: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read(ApiKey.END_TXN, 3, END_TXN + tags)


def fetch_with_tags(tags: bytes) -> bytes:
    out = bytearray()
    codec.writer(FETCH, 12, "request")(out, {"max_wait_ms": 1, "min_bytes": 1, "topics": []})
    return bytes(out[:-1]) + tags


def test_a_known_tagged_field_is_read() -> None:
    assert read(ApiKey.FETCH, 12, fetch_with_tags(b"\1\0\3\3id")).cluster_id == "id"
    assert read(ApiKey.FETCH, 12, fetch_with_tags(b"\2\5\1x\0\3\3id")).cluster_id == "id"
    assert read(ApiKey.FETCH, 12, fetch_with_tags(b"\0")).cluster_id is None


@pytest.mark.parametrize(
    "tags", [b"\2\0\3\3id\0\3\3id", b"\1\0\4\3idx", b"\1\0\2\3id"], ids=["twice", "longer", "shorter"]
)
def test_a_known_tagged_field_must_fit(tags: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read(ApiKey.FETCH, 12, fetch_with_tags(tags))


def test_fields_that_a_version_lacks_hold_their_default() -> None:
    message = read(ApiKey.JOIN_GROUP, 0, encoded(ApiKey.JOIN_GROUP, 0, "request"))
    assert (message.rebalance_timeout_ms, message.group_instance_id) == (-1, None)
    fetch = read(ApiKey.OFFSET_FETCH, 1, encoded(ApiKey.OFFSET_FETCH, 1, "request"))
    again = read(ApiKey.OFFSET_FETCH, 1, encoded(ApiKey.OFFSET_FETCH, 1, "request"))
    assert (fetch.groups, fetch.require_stable) == ([], False)
    assert fetch.groups is not again.groups


def test_records_are_slices_and_small_bytes_are_bytes() -> None:
    data = bytearray(encoded(ApiKey.PRODUCE, 9, "request"))
    message, _ = codec.reader(PRODUCE, 9, "request")(memoryview(data), 0)
    records = message.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is data
    join = read(ApiKey.JOIN_GROUP, 7, encoded(ApiKey.JOIN_GROUP, 7, "request"))
    assert type(join.protocols[0].metadata) is bytes


def test_messages_say_what_they_are() -> None:
    message = read(ApiKey.END_TXN, 3, END_TXN + b"\0")
    assert "transactional_id='ab'" in repr(message)
    assert message == read(ApiKey.END_TXN, 3, END_TXN + b"\0")


@pytest.mark.parametrize(
    "change",
    [
        {"producer_epoch": 1 << 15},
        {"producer_id": 1 << 63},
        {"producer_id": -(1 << 80)},
        {"producer_id": None},
        {"producer_id": "1"},
        {"transactional_id": None},
        {"transactional_id": 5},
        {"transactional_id": "\ud800"},
    ],
)
@pytest.mark.parametrize("version", [0, 3])
def test_values_that_do_not_fit_are_refused(version: int, change: dict[str, Any]) -> None:
    body = {"transactional_id": "a", "producer_id": 1, "producer_epoch": 1, "committed": True}
    with pytest.raises(UnencodableMessage, match="EndTxn"):
        codec.writer(END_TXN_SCHEMA, version, "request")(bytearray(), body | change)


def test_a_long_string_is_refused_where_lengths_are_short() -> None:
    body = {"transactional_id": "a" * 40_000, "producer_id": 1, "producer_epoch": 1, "committed": True}
    with pytest.raises(UnencodableMessage, match="too long"):
        codec.writer(END_TXN_SCHEMA, 0, "request")(bytearray(), body)
    codec.writer(END_TXN_SCHEMA, 3, "request")(bytearray(), body)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(UnencodableMessage, match=r"EndTxn\.request was given no committed"):
        codec.writer(END_TXN_SCHEMA, 3, "request")(
            bytearray(), {"transactional_id": "", "producer_id": 1, "producer_epoch": 1}
        )


@pytest.mark.parametrize(
    ("api_key", "body"),
    [
        (ApiKey.METADATA, {"topics": 5}),
        (ApiKey.METADATA, {"topics": [5]}),
        (ApiKey.METADATA, {"topics": [{"name": "a", "topic_id": b"short"}]}),
        (ApiKey.METADATA, []),
        (ApiKey.METADATA, None),
        (ApiKey.SYNC_GROUP, {"group_id": "", "generation_id": 1, "member_id": "", "assignments": 1}),
        (ApiKey.DELETE_GROUPS, {"groups_names": [None]}),
        (ApiKey.LIST_TRANSACTIONS, {"state_filters": [], "producer_id_filters": ["x"]}),
    ],
)
def test_bodies_of_the_wrong_shape_are_refused(api_key: int, body: Any) -> None:
    with pytest.raises(UnencodableMessage):
        codec.writer(schema_of(api_key), schema_of(api_key).versions.last, "request")(bytearray(), body)


@pytest.mark.parametrize(("api_key", "version"), [(18, 5), (18, -1), (2, 0)])
def test_what_has_no_layout_is_unknown(api_key: int, version: int) -> None:
    with pytest.raises(UnknownMessage):
        codec.reader(schema_of(api_key), version, "request")
    with pytest.raises(UnknownMessage):
        codec.writer(schema_of(api_key), version, "response")

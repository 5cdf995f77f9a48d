"""The answer that refuses a request is one of its API, and says the error, in each version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from faircopy.api.routes import ROUTES, schema_of
from faircopy.faults.refusal import refused
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import decode_response, encode_response
from faircopy.wire.schema import Schema
from tests.unit.faults.requests import request_of

SAYS_NOTHING = {ApiKey.API_VERSIONS}


def answer(schema: Schema, version: int, code: ErrorCode, **given: Any) -> Message:
    """The answer to a request, as a client decodes it."""
    request = request_of(schema, version, **given)
    body = refused(schema, version, request, code, {})
    frame = encode_response(schema, version, 1, body)
    return decode_response(schema, version, memoryview(frame)[4:])[1]


def codes(message: Message) -> Iterator[int]:
    """All error codes in an answer."""
    for name, value in message.as_dict().items():
        if name == "error_code":
            yield value
        for each in value if isinstance(value, list) else ():
            if hasattr(each, "as_dict"):
                yield from codes(each)


def has_code(schema: Schema, version: int) -> bool:
    def inside(fields: Any) -> bool:
        there = [field for field in fields if field.versions.has(version)]
        return any(field.name == "error_code" or inside(field.fields) for field in there)

    return inside(schema.response)


@pytest.mark.parametrize("api_key", sorted(ROUTES))
def test_each_version_of_each_request_can_be_refused(api_key: int) -> None:
    schema, first = schema_of(api_key), ROUTES[api_key].schema.versions.first
    for version in range(first, schema.versions.last + 1):
        if has_code(schema, version):
            found = set(codes(answer(schema, version, ErrorCode.NOT_ENOUGH_REPLICAS)))
            assert ErrorCode.NOT_ENOUGH_REPLICAS in found, (schema.name, version)


def test_each_partition_of_a_produce_has_the_error() -> None:
    partitions = [{"index": number, "records": b""} for number in (0, 2)]
    found = answer(
        schema_of(ApiKey.PRODUCE), 9, ErrorCode.MESSAGE_TOO_LARGE,
        topic_data=[{"name": "t", "partition_data": partitions}],
    )  # fmt: skip
    (topic,) = found.responses
    assert topic.name == "t"
    assert [(each.index, each.error_code) for each in topic.partition_responses] == [(0, 10), (2, 10)]


def test_numbers_of_partitions_become_elements() -> None:
    found = answer(
        schema_of(ApiKey.ADD_PARTITIONS_TO_TXN), 3, ErrorCode.CONCURRENT_TRANSACTIONS,
        topics=[{"name": "t", "partitions": [4, 5]}],
    )  # fmt: skip
    (topic,) = found.results
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(4, 51), (5, 51)]


def test_partitions_of_a_fetch_are_named_otherwise_in_the_answer() -> None:
    found = answer(schema_of(ApiKey.FETCH), 12, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert found.error_code == ErrorCode.NONE
    assert (found.responses[0].topic, found.responses[0].partitions[0].partition_index) == ("a", 1)
    assert found.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_error_of_the_whole_is_said_of_the_whole() -> None:
    found = answer(schema_of(ApiKey.OFFSET_FETCH), 7, ErrorCode.NOT_COORDINATOR)
    assert found.error_code == ErrorCode.NOT_COORDINATOR
    found = answer(schema_of(ApiKey.OFFSET_FETCH), 7, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert found.error_code == ErrorCode.NONE
    assert found.topics[0].partitions[0].error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_a_request_for_nothing_in_particular_has_the_error_as_a_whole() -> None:
    found = answer(schema_of(ApiKey.FETCH), 12, ErrorCode.OFFSET_OUT_OF_RANGE, topics=[])
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_metadata_tells_of_the_broker() -> None:
    schema, broker = schema_of(ApiKey.METADATA), {"node_id": 1, "host": "h", "port": 2}
    about = {"brokers": [broker], "cluster_id": "c", "controller_id": 1, "nothing": 3}
    body = refused(schema, 9, request_of(schema, 9), ErrorCode.LEADER_NOT_AVAILABLE, about)
    assert (body["brokers"], body["controller_id"]) == ([broker], 1)
    assert "nothing" not in body
    assert [(each["name"], each["error_code"]) for each in body["topics"]] == [("a", 5)]

"""Produce and Fetch by hand say the same as the codec does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.api.routes import FLEXIBLE_FROM, schema_of
from faircopy.wire import codec
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import MalformedMessage
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.fetch import DivergingEpoch, FetchResult, encode_fetch_response, read_fetch_request
from faircopy.wire.messages import decode_response, encode_request, read_request_header
from faircopy.wire.produce import (
    ProduceResult,
    encode_produce_response,
    read_produce_request,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PRODUCE_VERSIONS = range(3, 13)
FETCH_VERSIONS = range(4, 19)
FETCH_IDS_FROM = 13
names = st.sampled_from(["a", "b", "größe", "x" * 200])
ids = st.sampled_from([bytes(16), b"0123456789abcdef"])
int16 = st.integers(-(1 << 15), (1 << 15) - 1)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
records = st.binary(max_size=20) | st.just(b"r" * 300)


def lists(element: Any) -> Any:
    return st.lists(element, max_size=3)


def topics(name: str, inner: str, partition: Any) -> Any:
    return lists(st.fixed_dictionaries({name: names, inner: lists(st.fixed_dictionaries(partition))}))


produce_bodies = st.fixed_dictionaries(
    {
        "transactional_id": st.none() | names,
        "acks": int16,
        "timeout_ms": int32,
        "topic_data": topics("name", "partition_data", {"index": int32, "records": st.none() | records}),
    }
)
asked = {
    "partition": int32,
    "current_leader_epoch": int32,
    "fetch_offset": int64,
    "last_fetched_epoch": int32,
    "log_start_offset": int64,
    "partition_max_bytes": int32,
    "replica_directory_id": ids,
    "high_watermark": int64,
}
fetched = {"topic": names, "topic_id": ids}
fetch_bodies = st.fixed_dictionaries(
    {
        "cluster_id": st.none() | names,
        "max_wait_ms": int32,
        "min_bytes": int32,
        "max_bytes": int32,
        "isolation_level": st.integers(0, 1),
        "session_id": int32,
        "session_epoch": int32 | st.just(1),
        "replica_state": st.none() | st.fixed_dictionaries({"replica_id": int32, "replica_epoch": int64}),
        "topics": lists(st.fixed_dictionaries(fetched | {"partitions": lists(st.fixed_dictionaries(asked))})),
        "forgotten_topics_data": lists(st.fixed_dictionaries(fetched | {"partitions": lists(int32)})),
        "rack_id": names,
    }
)
produce_results = lists(st.builds(ProduceResult, names, int32, int16, int64, int64, int64, st.none() | names))
divergences = st.none() | st.builds(DivergingEpoch, int32, int64)
fetch_results = lists(
    st.builds(FetchResult, names, int32, int16, int64, int64, int64, lists(records), divergences)
)


def framed(api_key: int, version: int, body: dict[str, Any]) -> tuple[memoryview, int]:
    frame = memoryview(encode_request(schema_of(api_key), version, 5, "client", body))[4:]
    return frame, read_request_header(frame, FLEXIBLE_FROM).body_at


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(body=produce_bodies)
def test_produce_requests(version: int, body: dict[str, Any]) -> None:
    frame, at = framed(ApiKey.PRODUCE, version, body)
    request = read_produce_request(version, frame, at)
    expected = [
        (t["name"], p["index"], p["records"]) for t in body["topic_data"] for p in t["partition_data"]
    ]
    assert request[:3] == (body["transactional_id"], body["acks"], body["timeout_ms"])
    assert request.partitions == expected
    for _, _, batches in request.partitions:
        assert batches is None or batches.obj is frame.obj


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(results=produce_results)
def test_produce_responses(version: int, results: list[ProduceResult]) -> None:
    answer = encode_produce_response(version, 77, results)
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    correlation_id, response = decode_response(PRODUCE, version, memoryview(answer)[4:])
    assert correlation_id == 77
    rows = [produce_row(t.name, p) for t in response.responses for p in t.partition_responses]
    assert rows == [produce_seen(version, r) for r in results]
    assert all(a.name != b.name for a, b in zip(response.responses, response.responses[1:], strict=False))


def produce_row(topic: str, p: Any) -> tuple[Any, ...]:
    assert p.record_errors == []
    times = (p.log_append_time_ms, p.log_start_offset)
    return (topic, p.index, p.error_code, p.base_offset, *times, p.error_message)


def produce_seen(version: int, result: ProduceResult) -> ProduceResult:
    """What of a result a client of this version sees."""
    seen = result if version >= 5 else result._replace(log_start_offset=-1)
    return seen if version >= 8 else seen._replace(error_message=None)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(body=fetch_bodies)
def test_fetch_requests(version: int, body: dict[str, Any]) -> None:
    frame, at = framed(ApiKey.FETCH, version, body)
    ours = read_fetch_request(version, frame, at)
    theirs = codec.reader(FETCH, version, "request")(frame, at)[0]
    for name in ("max_wait_ms", "min_bytes", "max_bytes", "session_id", "session_epoch"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.has_ids == (version >= FETCH_IDS_FROM)
    gone = [(topic_of(version, t), number) for t in theirs.forgotten_topics_data for number in t.partitions]
    assert ours.forgotten == (gone if ours.session_epoch > 0 else [])
    assert ours.partitions == [
        (
            topic_of(version, t),
            p.partition,
            p.current_leader_epoch,
            p.fetch_offset,
            p.partition_max_bytes,
            p.last_fetched_epoch,
        )
        for t in theirs.topics
        for p in t.partitions
    ]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=40, deadline=None)
@given(results=fetch_results, error=st.sampled_from([0, 3]), session=st.sampled_from([0, 5]))
def test_fetch_responses(version: int, results: list[FetchResult], error: int, session: int) -> None:
    if version >= FETCH_IDS_FROM:
        results = [each._replace(topic=str(each.topic).encode().ljust(16)[:16]) for each in results]
    buffers = encode_fetch_response(version, 77, results, error, session)
    answer = b"".join(buffers)
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    correlation_id, response = decode_response(FETCH, version, memoryview(answer)[4:])
    assert (correlation_id, response.session_id) == (77, session if version >= 7 else 0)
    assert response.error_code == (error if version >= 7 else 0)
    rows = [fetch_row(topic_of(version, t), p) for t in response.responses for p in t.partitions]
    assert rows == [fetch_seen(version, r) for r in results]


def topic_of(version: int, topic: Any) -> str | bytes:
    """What a topic is called in this version."""
    called: str | bytes = topic.topic_id if version >= FETCH_IDS_FROM else topic.topic
    return called


def fetch_row(topic: str | bytes, p: Any) -> tuple[Any, ...]:
    assert p.preferred_read_replica == -1
    offsets = (p.high_watermark, p.last_stable_offset, p.log_start_offset)
    assert p.aborted_transactions == []
    end = p.diverging_epoch
    diverging = (end.epoch, end.end_offset) if end is not None else None
    return (topic, p.partition_index, p.error_code, *offsets, bytes(p.records), diverging)


def fetch_seen(version: int, result: FetchResult) -> tuple[Any, ...]:
    seen = result if version >= 5 else result._replace(log_start_offset=-1)
    pieces = [bytes(cast("ReadableBuffer", each)) for each in result.records]
    diverging = result.diverging if version >= 12 else None
    return (*seen[:-2], b"".join(pieces), diverging)


def test_records_of_a_fetch_are_not_copied() -> None:
    first, second = memoryview(b"batch one"), bytearray(b"batch two")
    buffers = encode_fetch_response(12, 1, [FetchResult("t", 0, 0, 1, 1, 0, [first, second])])
    assert any(b is first for b in buffers)
    assert any(b is second for b in buffers)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_every_prefix_of_a_produce_request_is_malformed(version: int) -> None:
    parts = [{"index": 1, "records": b"abc"}, {"index": 2, "records": None}]
    body = {"acks": 1, "timeout_ms": 1, "topic_data": [{"name": "t", "partition_data": parts}]}
    frame, at = framed(ApiKey.PRODUCE, version, body)
    for size in range(at, len(frame)):
        with pytest.raises(MalformedMessage):
            read_produce_request(version, frame[:size], at)


@pytest.mark.parametrize("version", range(19))
@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=100))
def test_noise_is_malformed_or_read(version: int, noise: bytes) -> None:
    for data in (noise, bytes(7) + noise, b"\xff" * 9 + noise):
        for read in (read_produce_request, read_fetch_request):
            try:
                read(version, memoryview(data), 0)
            except MalformedMessage:
                continue


@pytest.mark.parametrize("version", range(3))
def test_old_produce_requests_are_refused_partition_by_partition(version: int) -> None:
    parts = [{"index": i, "records": b"old"} for i in (4, 5)]
    body = {"acks": 1, "timeout_ms": 1, "topic_data": [{"name": "t", "partition_data": parts}]}
    new, at = framed(ApiKey.PRODUCE, 3, body)
    old = new[at + 2 :]  # the same without the transactional id
    request = read_produce_request(version, old, 0)
    results = [
        ProduceResult(*partition[:2], ErrorCode.UNSUPPORTED_VERSION) for partition in request.partitions
    ]
    answer = encode_produce_response(version, 9, results)
    unsupported = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
    rows = b"".join(i.to_bytes(4, "big") + unsupported + b"\xff" * (8 if version < 2 else 16) for i in (4, 5))
    expected = b"\0\0\0\x09" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\2" + rows + (bytes(4) if version else b"")
    assert answer == len(expected).to_bytes(4, "big") + expected

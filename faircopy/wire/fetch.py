"""Fetch, a hot path, coded by hand: requests v4-v18 in, responses v4-v18 out, without copying records.

Request; from v12 on it is flexible (compact lengths, tagged fields at each end):

    replica id i32 (to v14), max wait i32 ms, min bytes i32, max bytes i32,
    isolation level i8 (changes nothing: P1)
    session id i32, session epoch i32 (v7+)
    topics: name (to v12), or id of 16 bytes (v13+)
        partitions: index i32, current leader epoch i32 (v9+), fetch offset i64,
                    last fetched epoch i32 (v12+), log start offset i64 (v5+), partition max bytes i32
    forgotten topics (v7+), rack id (v11+)

Tagged fields of requests are skipped: they are for followers. Forgotten topics are read if the session goes
on (KIP-227): otherwise there is nothing to forget. The rack is ignored, since there are no preferred
replicas. Response:

    throttle time i32 ms
    error i16 and session id i32 (v7+)
    topics: name or id, as in the request
        partitions: index i32, error i16, high watermark i64, last stable offset i64,
                    log start offset i64 (v5+), aborted transactions (a list, always empty: P1),
                    preferred read replica i32 (v11+: always -1), records,
                    diverging epoch i32 and its end offset i64 (v12+: a tagged field)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence, Sized
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from faircopy.wire.primitives import (
    CUT_SHORT,
    ElementBudget,
    MalformedMessage,
    read_compact_count,
    read_compact_text,
    read_count,
    read_text,
    skip_tags,
    varint,
)

_FLEXIBLE_FROM = 12
_SESSIONS_FROM = 7
_LEADER_EPOCH_FROM = 9
_IDS_FROM = 13
_NO_REPLICA_FROM = 15

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_LIMITS = struct.Struct(">4xiiix")  # without the replica id and the isolation level
_LIMITS_V15 = struct.Struct(">iiix")
_SESSION = struct.Struct(">ii")
_HEAD_V4 = struct.Struct(">iii")  # length of the frame, correlation id, throttle time
_HEAD_V7 = struct.Struct(">iiihi")  # the same, error code, session id
_HEAD_V12 = struct.Struct(">iibihi")  # as v7, with the header's tagged fields

_ASKED_V4 = struct.Struct(">iqi")
_ASKED_V5 = struct.Struct(">iqqi")
_ASKED_V9 = struct.Struct(">iiqqi")
_ASKED_V12 = struct.Struct(">iiqiqi")

_ANSWER_V4 = struct.Struct(">ihqqii")  # aborted transactions and length of records at the end
_ANSWER_V5 = struct.Struct(">ihqqqii")
_ANSWER_V11 = struct.Struct(">ihqqqiii")  # with the preferred read replica before the length
_ANSWER_V12 = struct.Struct(">ihqqqbi")  # without the length, which is a varint
_DIVERGING = struct.Struct(
    ">3BiqB"
)  # one tagged field: its number, its size, epoch, end offset, no more tags
_NO_ABORTED = 0
_NO_ABORTED_COMPACT = 1
_NO_REPLICA = -1
_NO_TAGS = b"\0"
_ID_BYTES = 16

Buffer = bytes | bytearray | memoryview
TopicKey = str | bytes
"""What a request calls a topic: its name, or from version 13 on its id of 16 bytes (KIP-516)."""


class FetchPartition(NamedTuple):
    """The request for one partition. `current_leader_epoch` is -1 when the client does not know it;
    `last_fetched_epoch`, that of the batch before `fetch_offset`, is -1 when the client does not say.
    """

    topic: TopicKey
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    partition_max_bytes: int
    last_fetched_epoch: int = -1


class DivergingEpoch(NamedTuple):
    """Where this log and the client's diverge: the last epoch in both, and where it ends here (v12+)."""

    epoch: int
    end_offset: int


class FetchRequest(NamedTuple):
    """A Fetch request. `session_id` is 0 and `session_epoch` -1 if the client names no session. `forgotten`
    has the partitions, as topic and number, that leave the session. `has_ids` says what topics are called.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    session_id: int
    session_epoch: int
    partitions: list[FetchPartition]
    forgotten: list[tuple[TopicKey, int]]
    has_ids: bool = False


class FetchResult(NamedTuple):
    """The answer for one partition; `records` are whole batches, in order, in one or more pieces.

    A piece is a buffer, or another object with a length in bytes that the sender of the response can send.
    """

    topic: TopicKey
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    records: Sequence[Sized]
    diverging: DivergingEpoch | None = None


def read_fetch_request(version: int, frame: memoryview, at: int) -> FetchRequest:
    """The request whose body starts at byte `at`. Raises MalformedMessage."""
    try:
        return _read(version, frame, at)
    except CUT_SHORT as error:
        what = f"Fetch request version {version} is cut short or not UTF-8"
        raise MalformedMessage(f"{what}: {error}") from None


def _read(version: int, frame: memoryview, at: int) -> FetchRequest:
    limits = _LIMITS if version < _NO_REPLICA_FROM else _LIMITS_V15
    max_wait_ms, min_bytes, max_bytes = limits.unpack_from(frame, at)
    at += limits.size
    session = (0, -1)
    if version >= _SESSIONS_FROM:
        session = _SESSION.unpack_from(frame, at)
        at += _SESSION.size
    is_flexible = version >= _FLEXIBLE_FROM
    partitions: list[FetchPartition] = []
    at = (_flexible_topics if is_flexible else _fixed_topics)(version, frame, at, partitions)
    forgotten = _forgotten(version, frame, at) if session[1] > 0 else []
    has_ids = version >= _IDS_FROM
    return FetchRequest(max_wait_ms, min_bytes, max_bytes, *session, partitions, forgotten, has_ids)


def _flexible_topics(version: int, frame: memoryview, at: int, into: list[FetchPartition]) -> int:
    read_topic = _read_topic_id if version >= _IDS_FROM else _read_compact_name
    topics, at = read_compact_count(frame, at)
    budget = ElementBudget()
    for _ in range(budget.take(topics)):
        topic, at = read_topic(frame, at)
        count, at = read_compact_count(frame, at)
        for _ in range(budget.take(count)):
            index, epoch, offset, last_epoch, _, max_bytes = _ASKED_V12.unpack_from(frame, at)
            at = skip_tags(frame, at + _ASKED_V12.size)
            into.append(FetchPartition(topic, index, epoch, offset, max_bytes, last_epoch))
        at = skip_tags(frame, at)
    return at


def _fixed_topics(version: int, frame: memoryview, at: int, into: list[FetchPartition]) -> int:
    layout = _ASKED_V9 if version >= _LEADER_EPOCH_FROM else _ASKED_V5 if version >= 5 else _ASKED_V4
    topics, at = read_count(frame, at)
    budget = ElementBudget()
    for _ in range(budget.take(topics)):
        topic, at = _read_name(frame, at)
        count, at = read_count(frame, at)
        for _ in range(budget.take(count)):
            into.append(_asked(version, topic, layout.unpack_from(frame, at)))
            at += layout.size
    return at


def _forgotten(version: int, frame: memoryview, at: int) -> list[tuple[TopicKey, int]]:
    is_flexible = version >= _FLEXIBLE_FROM
    read_number = read_compact_count if is_flexible else read_count
    read_topic: Callable[[memoryview, int], tuple[TopicKey, int]] = _read_name
    if is_flexible:
        read_topic = _read_topic_id if version >= _IDS_FROM else _read_compact_name
    found: list[tuple[TopicKey, int]] = []
    topics, at = read_number(frame, at)
    budget = ElementBudget()
    for _ in range(budget.take(topics)):
        topic, at = read_topic(frame, at)
        count, at = read_number(frame, at)
        for _ in range(budget.take(count)):
            found.append((topic, _INT32.unpack_from(frame, at)[0]))
            at += _INT32.size
        at = skip_tags(frame, at) if is_flexible else at
    return found


def _asked(version: int, topic: TopicKey, values: tuple[int, ...]) -> FetchPartition:
    if version >= _LEADER_EPOCH_FROM:
        return FetchPartition(topic, values[0], values[1], values[2], values[4])
    return FetchPartition(topic, values[0], -1, values[1], values[-1])


def _read_topic_id(frame: memoryview, at: int) -> tuple[TopicKey, int]:
    end = at + _ID_BYTES
    if end > len(frame):
        raise MalformedMessage(f"the id of a topic is cut short at byte {at}")
    return bytes(frame[at:end]), end


def _read_compact_name(frame: memoryview, at: int) -> tuple[TopicKey, int]:
    name, at = read_compact_text(frame, at)
    return _named(name), at


def _read_name(frame: memoryview, at: int) -> tuple[TopicKey, int]:
    name, at = read_text(frame, at)
    return _named(name), at


def _named(name: str | None) -> str:
    if name is None:
        raise MalformedMessage("Fetch request for a topic without a name")
    return name


def encode_fetch_response(
    version: int,
    correlation_id: int,
    results: Iterable[FetchResult],
    error_code: int = 0,
    session_id: int = 0,
) -> list[Any]:
    """The response as a list of pieces. The first piece is a buffer that starts with the length prefix;
    records are not copied.

    A plain tuple can stand in for a `FetchResult`. Neighbouring results of one topic are grouped.
    `error_code` and `session_id` are for the whole request (v7+).
    """
    grouped = [(topic, list(rows)) for topic, rows in groupby(results, itemgetter(0))]
    head = _response_head(version, correlation_id, error_code, session_id)
    buffers: list[Any] = [head]
    if version >= _FLEXIBLE_FROM:
        _put_flexible(buffers, grouped)
    else:
        _put_fixed(version, buffers, grouped)
    if not buffers[-1]:
        buffers.pop()
    _INT32.pack_into(head, 0, sum(map(len, buffers)) - 4)
    return buffers


def _response_head(version: int, correlation_id: int, error_code: int, session_id: int) -> bytearray:
    if version >= _FLEXIBLE_FROM:
        return bytearray(_HEAD_V12.pack(0, correlation_id, 0, 0, error_code, session_id))
    if version >= _SESSIONS_FROM:
        return bytearray(_HEAD_V7.pack(0, correlation_id, 0, error_code, session_id))
    return bytearray(_HEAD_V4.pack(0, correlation_id, 0))


_Grouped = list[tuple[TopicKey, list[FetchResult]]]


def _put_flexible(buffers: list[Any], grouped: _Grouped) -> None:
    out = buffers[0]
    assert isinstance(out, bytearray)
    out += varint(len(grouped) + 1)
    for topic, rows in grouped:
        if isinstance(topic, bytes):
            out += topic + varint(len(rows) + 1)
        else:
            name = topic.encode()
            out += varint(len(name) + 1) + name + varint(len(rows) + 1)
        for _, partition, error, high, stable, start, records, diverging in rows:
            out += _ANSWER_V12.pack(partition, error, high, stable, start, _NO_ABORTED_COMPACT, _NO_REPLICA)
            out += varint(sum(map(len, records)) + 1)
            out = _after_records(buffers, out, records)
            out += (
                _NO_TAGS if diverging is None else _DIVERGING.pack(1, 0, _DIVERGING.size - 3, *diverging, 0)
            )
        out += _NO_TAGS
    out += _NO_TAGS


def _put_fixed(version: int, buffers: list[Any], grouped: _Grouped) -> None:
    out = buffers[0]
    assert isinstance(out, bytearray)
    out += _INT32.pack(len(grouped))
    for topic, rows in grouped:
        name = topic.encode() if isinstance(topic, str) else topic
        out += _INT16.pack(len(name)) + name + _INT32.pack(len(rows))
        for row in rows:
            out += _fixed_answer(version, row)
            out = _after_records(buffers, out, row[6])


def _fixed_answer(version: int, row: FetchResult) -> bytes:
    _, partition, error, high, stable, start, records, _ = row
    size = sum(map(len, records))
    if version >= 11:
        return _ANSWER_V11.pack(partition, error, high, stable, start, _NO_ABORTED, _NO_REPLICA, size)
    if version >= 5:
        return _ANSWER_V5.pack(partition, error, high, stable, start, _NO_ABORTED, size)
    return _ANSWER_V4.pack(partition, error, high, stable, _NO_ABORTED, size)


def _after_records(buffers: list[Any], out: bytearray, records: Sequence[Sized]) -> bytearray:
    """Append `records` after `out`, and return the bytearray for the bytes that follow them."""
    if not records:
        return out
    buffers.extend(records)
    following = bytearray()
    buffers.append(following)
    return following

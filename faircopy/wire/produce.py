"""Produce, a hot path, coded by hand: requests v0-v12 in, responses v0-v12 out.

Request, non-flexible (v0-v8) and flexible (v9 on, with compact lengths and tagged fields at each end):

    transactional id (v3+) | acks i16 | timeout i32 ms | topics: name, partitions: index i32, records

Response; `record errors` is always empty, and tagged fields (v10+: the leader, for clients that asked the
wrong broker) are never sent:

    topics: name, partitions: index i32, error i16, base offset i64, log append time i64 ms (v2+),
                              log start offset i64 (v5+), record errors, error message (v8+)
    throttle time i32 ms (v1+)

Versions below 3 only carry formats older than record batch v2 and are answered with an error per partition;
they are read because they are advertised (`wire/api_versions.py` says why).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from faircopy.wire.primitives import (
    CUT_SHORT,
    ELEMENTS_MAX,
    ElementBudget,
    MalformedMessage,
    read_compact_count,
    read_compact_length,
    read_compact_text,
    read_count,
    read_text,
    read_view,
    skip_tags,
    varint,
)

FIRST_ACCEPTED_VERSION = 3
_FLEXIBLE_FROM = 9

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT = struct.Struct(">hi")
_INDEX_LENGTH = struct.Struct(">ii")
_HEAD = struct.Struct(">ii")  # length of the frame, correlation id

_RESULT_V0 = struct.Struct(">ihq")
_RESULT_V2 = struct.Struct(">ihqq")
_RESULT_V5 = struct.Struct(">ihqqq")
_NO_RECORD_ERRORS = _INT32.pack(0)
_NO_COMPACT_RECORD_ERRORS = b"\1"
_NULL_TEXT = _INT16.pack(-1)
_NULL_COMPACT_TEXT = b"\0"
_NO_TAGS = b"\0"
_NO_THROTTLE = _INT32.pack(0)

ProducedPartition = tuple[str, int, memoryview | None]
"""Topic, partition, and its record batches as a slice of the frame."""


class ProduceRequest(NamedTuple):
    """A Produce request. `acks` is -1, 0 or 1 if the client follows the protocol; it is not checked here."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[ProducedPartition]


class ProduceResult(NamedTuple):
    """The answer for one partition."""

    topic: str
    partition: int
    error_code: int
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None


def read_produce_request(
    version: int, frame: memoryview, at: int, elements_max: int = ELEMENTS_MAX
) -> ProduceRequest:
    """The request whose body starts at byte `at`; bytes after it are tolerated.

    Raises MalformedMessage; TooManyElements if it has more than `elements_max` topics and partitions.
    """
    budget = ElementBudget(elements_max)
    try:
        if version >= _FLEXIBLE_FROM:
            return _read_flexible(frame, at, budget)
        return _read_fixed(version, frame, at, budget)
    except CUT_SHORT as error:
        what = f"Produce request version {version} is cut short or not UTF-8"
        raise MalformedMessage(f"{what}: {error}") from None


def _read_flexible(frame: memoryview, at: int, budget: ElementBudget) -> ProduceRequest:
    transactional_id, at = read_compact_text(frame, at)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, at)
    topics, at = read_compact_count(frame, at + _ACKS_TIMEOUT.size)
    partitions: list[ProducedPartition] = []
    for _ in range(budget.take(topics)):
        at = _read_flexible_topic(frame, at, budget, partitions)
    skip_tags(frame, at)
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions)


def _read_flexible_topic(
    frame: memoryview, at: int, budget: ElementBudget, into: list[ProducedPartition]
) -> int:
    name, at = read_compact_text(frame, at)
    topic = _named(name)
    count, at = read_compact_count(frame, at)
    for _ in range(budget.take(count)):
        index = _INT32.unpack_from(frame, at)[0]
        size, at = read_compact_length(frame, at + 4)
        records, at = read_view(frame, at, size)
        at = skip_tags(frame, at)
        into.append((topic, index, records))
    return skip_tags(frame, at)


def _read_fixed(version: int, frame: memoryview, at: int, budget: ElementBudget) -> ProduceRequest:
    transactional_id = None
    if version >= FIRST_ACCEPTED_VERSION:
        transactional_id, at = read_text(frame, at)
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, at)
    topics, at = read_count(frame, at + _ACKS_TIMEOUT.size)
    partitions: list[ProducedPartition] = []
    for _ in range(budget.take(topics)):
        at = _read_fixed_topic(frame, at, budget, partitions)
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions)


def _read_fixed_topic(
    frame: memoryview, at: int, budget: ElementBudget, into: list[ProducedPartition]
) -> int:
    name, at = read_text(frame, at)
    topic = _named(name)
    count, at = read_count(frame, at)
    for _ in range(budget.take(count)):
        index, size = _INDEX_LENGTH.unpack_from(frame, at)
        if size < -1:
            raise MalformedMessage(f"records of {size} bytes at byte {at}")
        records, at = read_view(frame, at + _INDEX_LENGTH.size, size)
        into.append((topic, index, records))
    return at


def _named(name: str | None) -> str:
    if name is None:
        raise MalformedMessage("Produce request for a topic without a name")
    return name


def encode_produce_response(version: int, correlation_id: int, results: Iterable[ProduceResult]) -> bytes:
    """The response, ready to send: length prefix, header and body. Neighbouring results of one topic are
    grouped.

    A plain tuple can stand in for a `ProduceResult`. Versions below 9 can't carry an error message of more
    than 32767 bytes.
    """
    grouped = [(topic, list(rows)) for topic, rows in groupby(results, itemgetter(0))]
    parts = _flexible_parts(grouped) if version >= _FLEXIBLE_FROM else _fixed_parts(version, grouped)
    body = b"".join(parts)
    return _HEAD.pack(len(body) + 4, correlation_id) + body


_Grouped = list[tuple[str, list[ProduceResult]]]


def _flexible_parts(grouped: _Grouped) -> Iterator[bytes]:
    yield _NO_TAGS  # of the header
    yield varint(len(grouped) + 1)
    for topic, rows in grouped:
        yield _compact_text(topic)
        yield varint(len(rows) + 1)
        for _, partition, error, base, append_time_ms, start, message in rows:
            yield _RESULT_V5.pack(partition, error, base, append_time_ms, start)
            yield _NO_COMPACT_RECORD_ERRORS
            yield _NULL_COMPACT_TEXT if message is None else _compact_text(message)
            yield _NO_TAGS
        yield _NO_TAGS
    yield _NO_THROTTLE
    yield _NO_TAGS


def _fixed_parts(version: int, grouped: _Grouped) -> Iterator[bytes]:
    yield _INT32.pack(len(grouped))
    for topic, rows in grouped:
        yield _text(topic)
        yield _INT32.pack(len(rows))
        for row in rows:
            yield _fixed_result(version, row)
    if version >= 1:
        yield _NO_THROTTLE


def _fixed_result(version: int, row: ProduceResult) -> bytes:
    _, partition, error, base, append_time_ms, start, message = row
    if version < 2:
        return _RESULT_V0.pack(partition, error, base)
    if version < 5:
        return _RESULT_V2.pack(partition, error, base, append_time_ms)
    result = _RESULT_V5.pack(partition, error, base, append_time_ms, start)
    if version < 8:
        return result
    return result + _NO_RECORD_ERRORS + (_NULL_TEXT if message is None else _text(message))


def _compact_text(text: str) -> bytes:
    encoded = text.encode()
    return varint(len(encoded) + 1) + encoded


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded

"""Bodies of requests and responses: bytes to the readers that each API and version has."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from faircopy.api.routes import FLEXIBLE_FROM, ROUTES, schema_of
from faircopy.wire import codec
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import MalformedMessage, Message
from faircopy.wire.fetch import read_fetch_request
from faircopy.wire.messages import decode_response, read_request_header
from faircopy.wire.produce import read_produce_request
from faircopy.wire.schema import Schema
from faircopy.wire.subscription import assigned_partitions
from tests.fuzz.choices import Choices


class Layout(NamedTuple):
    """A message's API and version."""

    schema: Schema
    version: int

    @property
    def api_key(self) -> int:
        return self.schema.api_key


LAYOUTS = [
    Layout(schema_of(api_key), version)
    for api_key in sorted(ROUTES)
    for version in range(schema_of(api_key).versions.first, schema_of(api_key).versions.last + 1)
]
CORRELATION_ID_BYTES = 4
FIRST_FETCH = 4
LAST_FETCH = 18
FETCH_IDS_FROM = 13
LAST_PRODUCE = 12


def feed_request(data: bytes) -> bool:
    """The first two bytes choose a layout for the rest, or say that it is a frame, or an assignment."""
    choices = Choices(data)
    number, rest = choices.number(2), choices.rest()
    if number < len(LAYOUTS):
        return check_request(LAYOUTS[number], rest)
    if number % 2:
        return check_frame(rest)
    return bool(assigned_partitions(rest))


def check_frame(frame: bytes) -> bool:
    """A header is read, or refused as malformed."""
    try:
        header = read_request_header(memoryview(frame), FLEXIBLE_FROM)
    except MalformedMessage:
        return False
    assert 0 <= header.body_at <= len(frame)
    return True


def check_request(layout: Layout, body: bytes) -> bool:
    """What is read can be written, and is read again as the same; the hot paths' readers agree."""
    message = read_and_write(layout, "request", body)
    if layout.api_key == ApiKey.PRODUCE and layout.version <= LAST_PRODUCE:
        check_produce(layout.version, body, message)
    if layout.api_key == ApiKey.FETCH and FIRST_FETCH <= layout.version <= LAST_FETCH:
        check_fetch(layout.version, body, message)
    return message is not None


def read_and_write(layout: Layout, direction: codec.Direction, body: bytes) -> Message | None:
    """The message, if the bytes are one; what is read is written, and read again as the same."""
    read, write = codec.reader(*layout, direction), codec.writer(*layout, direction)
    try:
        message, end = read(memoryview(body), 0)
    except MalformedMessage:
        return None
    assert end <= len(body)
    written = bytearray()
    write(written, message)
    again, end = read(memoryview(written), 0)
    assert end == len(written)
    assert again == message or "nan" in repr(message), "only what is no number differs from itself"
    return message


def check_produce(version: int, body: bytes, message: Message | None) -> None:
    """The reader by hand takes what the compiled one does."""
    try:
        request = read_produce_request(version, memoryview(body), 0)
    except MalformedMessage:
        assert message is None
        return
    if message is not None:
        expected = [
            (topic.name, partition.index, partition.records)
            for topic in message.topic_data
            for partition in topic.partition_data
        ]
        assert request.partitions == expected
        assert (request.transactional_id, request.acks) == (message.transactional_id, message.acks)


def check_fetch(version: int, body: bytes, message: Message | None) -> None:
    """The reader by hand takes what the compiled one does; it does not look at what follows the topics."""
    try:
        request = read_fetch_request(version, memoryview(body), 0)
    except MalformedMessage:
        assert message is None
        return
    if message is not None:
        asked = [
            (each.topic, each.partition, each.fetch_offset, each.partition_max_bytes)
            for each in request.partitions
        ]
        expected: list[tuple[Any, ...]] = [
            (
                topic.topic if version < FETCH_IDS_FROM else topic.topic_id,
                partition.partition,
                partition.fetch_offset,
                partition.partition_max_bytes,
            )
            for topic in message.topics
            for partition in topic.partitions
        ]
        assert asked == expected
        assert (request.max_wait_ms, request.max_bytes) == (message.max_wait_ms, message.max_bytes)


def feed_response(data: bytes) -> bool:
    """The first two bytes choose a layout, the rest is the frame of a response."""
    choices = Choices(data)
    layout = LAYOUTS[choices.number(2) % len(LAYOUTS)]
    frame = choices.rest()
    is_taken = False
    with contextlib.suppress(MalformedMessage):
        decode_response(*layout, memoryview(frame))
        is_taken = True
    header_bytes = CORRELATION_ID_BYTES + has_header_tags(layout)
    return read_and_write(layout, "response", frame[header_bytes:]) is not None and is_taken


def has_header_tags(layout: Layout) -> bool:
    """Whether a response's header ends with tagged fields: a byte, if there are none."""
    return codec.is_flexible(*layout) and layout.api_key != ApiKey.API_VERSIONS

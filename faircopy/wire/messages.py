"""Whole requests and responses: headers, bodies and the length prefix around them.

A frame here does not include its four bytes of length. Headers (KIP-482):

    request  v1   api key i16, version i16, correlation id i32, client id as a nullable string of i16 length
    request  v2   the same, then tagged fields; for flexible versions
    response v0   correlation id i32
    response v1   the same, then tagged fields; for flexible versions, but never for ApiVersions (KIP-511)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple

from faircopy.wire import codec
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Body, MalformedMessage, Message
from faircopy.wire.primitives import skip_tags
from faircopy.wire.schema import Schema

DECODED_BYTES_MAX = 8 << 20
"""`decode_request` refuses larger requests, since the decoded objects take tens of times as much memory.

Produce has a reader of its own, without this limit.
"""

_REQUEST = struct.Struct(">hhih")  # api key, api version, correlation id, length of the client id
_RESPONSE = struct.Struct(">ii")  # length of the frame, correlation id
_LENGTH = struct.Struct(">i")
_NO_TAGS = b"\0"
NEVER = 1 << 15


class RequestHeader(NamedTuple):
    """The header of a request; `body_at` is where the body starts in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_at: int


def read_request_header(frame: memoryview, flexible_from: Mapping[int, int]) -> RequestHeader:
    """The header of a request, even if its API or version is not known.

    `flexible_from` has the first flexible version of each known API. To answer an ApiVersions request that is
    too new, nothing after the correlation id is needed, and the layout of the rest is not certain: an
    unreadable rest is ignored. Raises MalformedMessage.
    """
    if len(frame) < _REQUEST.size:
        raise MalformedMessage(f"request of {len(frame)} bytes is shorter than a header")
    api_key, version, correlation_id, id_bytes = _REQUEST.unpack_from(frame)
    try:
        client_id, at = _client_id(frame, id_bytes)
        at = skip_tags(frame, at) if version >= flexible_from.get(api_key, NEVER) else at
    except (IndexError, UnicodeDecodeError, MalformedMessage) as error:
        if api_key == ApiKey.API_VERSIONS:
            return RequestHeader(api_key, version, correlation_id, None, len(frame))
        raise MalformedMessage(f"header of a request for API {api_key} version {version}: {error}") from None
    return RequestHeader(api_key, version, correlation_id, client_id, at)


def _client_id(frame: memoryview, id_bytes: int) -> tuple[str | None, int]:
    if id_bytes < 0:
        return None, _REQUEST.size
    end = _REQUEST.size + id_bytes
    if end > len(frame):
        raise MalformedMessage(f"client id says {id_bytes} bytes, {len(frame) - _REQUEST.size} remain")
    return str(frame[_REQUEST.size : end], "utf-8"), end


def decode_request(schema: Schema, version: int, frame: memoryview, at: int) -> Message:
    """The body of a request, which starts at byte `at` of its frame; bytes after it are tolerated.

    Raises UnknownMessage and MalformedMessage.
    """
    return _decode(codec.reader, schema, version, frame, at)


def decode_request_on_thread(schema: Schema, version: int, frame: memoryview, at: int) -> Message:
    """The same, for threads other than the event loop's, one thread at a time."""
    return _decode(codec.reader_on_thread, schema, version, frame, at)


def _decode(
    reader: Callable[[Schema, int, codec.Direction], codec.ReadMessage],
    schema: Schema,
    version: int,
    frame: memoryview,
    at: int,
) -> Message:
    read = reader(schema, version, "request")
    if len(frame) - at > DECODED_BYTES_MAX:
        raise MalformedMessage(
            f"{schema.name} request has {len(frame) - at} bytes, more than {DECODED_BYTES_MAX}"
        )
    return read(frame, at)[0]


def encode_response(schema: Schema, version: int, correlation_id: int, body: Body) -> bytes:
    """A response, ready to send: prefix, header and body. Raises UnknownMessage, UnencodableMessage."""
    write = codec.writer(schema, version, "response")
    out = bytearray(_RESPONSE.pack(0, correlation_id))
    if codec.is_flexible(schema, version) and schema.api_key != ApiKey.API_VERSIONS:
        out += _NO_TAGS
    write(out, body)
    return _with_length(out)


def encode_request(
    schema: Schema, version: int, correlation_id: int, client_id: str | None, body: Body
) -> bytes:
    """A client's request, ready to send: length prefix, header and body.

    Raises UnknownMessage, UnencodableMessage.
    """
    write = codec.writer(schema, version, "request")
    encoded_id = b"" if client_id is None else client_id.encode()
    id_bytes = -1 if client_id is None else len(encoded_id)
    out = (
        bytearray(_LENGTH.size)
        + _REQUEST.pack(schema.api_key, version, correlation_id, id_bytes)
        + encoded_id
    )
    if codec.is_flexible(schema, version):
        out += _NO_TAGS
    write(out, body)
    return _with_length(out)


def _with_length(out: bytearray) -> bytes:
    _LENGTH.pack_into(out, 0, len(out) - _LENGTH.size)
    return bytes(out)


def decode_response(schema: Schema, version: int, frame: memoryview) -> tuple[int, Message]:
    """Correlation id and body of the response to a request of this API and version.

    Raises UnknownMessage and MalformedMessage.
    """
    read = codec.reader(schema, version, "response")
    if len(frame) < _LENGTH.size:
        raise MalformedMessage(f"response of {len(frame)} bytes is shorter than a header")
    at = _LENGTH.size
    if codec.is_flexible(schema, version) and schema.api_key != ApiKey.API_VERSIONS:
        at = _skip_header_tags(frame, at)
    return _LENGTH.unpack_from(frame)[0], read(frame, at)[0]


def _skip_header_tags(frame: memoryview, at: int) -> int:
    try:
        return skip_tags(frame, at)
    except IndexError:
        raise MalformedMessage("response ends in its header") from None

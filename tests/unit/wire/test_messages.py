"""Headers, whole requests and responses, the advertised versions and frames."""

from __future__ import annotations

import struct
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as HeaderV1
from kio.schema.request_header.v2.header import RequestHeader as HeaderV2

from faircopy.api import api_versions
from faircopy.api.api_versions import SCHEMA as API_VERSIONS
from faircopy.api.end_txn import SCHEMA as END_TXN_SCHEMA
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.routes import FLEXIBLE_FROM, ROUTES, advertised, schema_of
from faircopy.net.exchange import Exchange
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import MalformedMessage
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.frames import BadFrame, frame_bytes
from faircopy.wire.messages import (
    DECODED_BYTES_MAX,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request_header,
)
from tests.unit.wire.kio_oracle import kio_bytes

END_TXN = {"transactional_id": "t", "producer_id": 1, "producer_epoch": 2, "committed": False}


class Answered:
    """An exchange that keeps what it is answered."""

    response = b""

    def answer(self, response: bytes) -> None:
        self.response = response


def body_of(framed: bytes) -> memoryview:
    """The frame without its length, which must be right."""
    assert int.from_bytes(framed[:4], "big") == len(framed) - 4
    return memoryview(framed)[4:]


@pytest.mark.parametrize("version", [0, 3])
@pytest.mark.parametrize("client_id", [None, "", "größer"])
def test_request_there_and_back(version: int, client_id: str | None) -> None:
    frame = body_of(encode_request(END_TXN_SCHEMA, version, -7, client_id, END_TXN))
    header = read_request_header(frame, FLEXIBLE_FROM)
    assert header[:4] == (ApiKey.END_TXN, version, -7, client_id)
    request = decode_request(schema_of(header.api_key), header.api_version, frame, header.body_at)
    assert (request.transactional_id, request.committed) == ("t", False)


@pytest.mark.parametrize(("version", "entity"), [(0, HeaderV1), (3, HeaderV2)])
def test_request_headers_are_kios(version: int, entity: type) -> None:
    theirs = entity(request_api_key=26, request_api_version=version, correlation_id=9, client_id="me")
    ours = body_of(encode_request(END_TXN_SCHEMA, version, 9, "me", END_TXN))
    assert bytes(ours).startswith(kio_bytes(theirs))


@pytest.mark.parametrize("version", [0, 3])
def test_response_there_and_back(version: int) -> None:
    frame = body_of(encode_response(END_TXN_SCHEMA, version, 9, {"error_code": ErrorCode.NOT_COORDINATOR}))
    assert len(frame) == (10 if version == 0 else 12)
    correlation_id, response = decode_response(END_TXN_SCHEMA, version, frame)
    assert (correlation_id, response.error_code, response.throttle_time_ms) == (9, 16, 0)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_response_header_has_no_tags(version: int) -> None:
    rows = [api_versions.row(*each) for each in advertised().items()]
    body = {"error_code": ErrorCode.NONE, "api_keys": rows}
    frame = body_of(encode_response(API_VERSIONS, version, 9, body))
    assert frame[:6] == struct.pack(">ih", 9, 0)
    _, response = decode_response(API_VERSIONS, version, frame)
    read = {k.api_key: range(k.min_version, k.max_version + 1) for k in response.api_keys}
    assert read == advertised()


@pytest.mark.parametrize("after_id", [b"", b"\x05", b"\0\2ab", b"\xff\xff\xff\xff\xff\xff"])
def test_api_versions_of_the_future_can_be_answered(after_id: bytes) -> None:
    header = read_request_header(memoryview(struct.pack(">hhih", 18, 99, 1234, 0) + after_id), FLEXIBLE_FROM)
    assert (header.api_key, header.api_version, header.correlation_id) == (18, 99, 1234)
    exchange = Answered()
    api_versions.refuse(cast(Exchange, exchange), header)
    answer = body_of(exchange.response)
    _, response = decode_response(API_VERSIONS, 0, answer)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(k.api_key, k.max_version) for k in response.api_keys] == [(18, 4)]


def test_unknown_apis_have_headers_but_no_body() -> None:
    frame = memoryview(struct.pack(">hhih", 4711, 2, 5, 2) + b"me")
    header = read_request_header(frame, FLEXIBLE_FROM)
    assert header == (4711, 2, 5, "me", len(frame))
    assert 4711 not in ROUTES


@given(st.binary(max_size=40))
def test_noise_makes_malformed_headers_or_none(noise: bytes) -> None:
    for data in (noise, struct.pack(">hh", 26, 3) + noise, struct.pack(">hh", 18, 77) + noise):
        try:
            header = read_request_header(memoryview(data), FLEXIBLE_FROM)
        except MalformedMessage:
            continue
        assert header.body_at <= len(data)


@pytest.mark.parametrize("size", range(6))
def test_short_responses_are_malformed(size: int) -> None:
    frame = body_of(encode_response(END_TXN_SCHEMA, 3, 9, {"error_code": 0}))
    with pytest.raises(MalformedMessage):
        decode_response(END_TXN_SCHEMA, 3, frame[:size])


def test_monstrous_requests_are_not_decoded() -> None:
    with pytest.raises(MalformedMessage, match="more than"):
        decode_request(METADATA, 1, memoryview(bytes(DECODED_BYTES_MAX + 1)), 0)


def test_whatever_is_advertised_has_a_layout() -> None:
    for api_key, served in advertised().items():
        versions = schema_of(api_key).versions
        assert api_key == ApiKey.PRODUCE or versions.has(served[0])
        assert versions.has(served[-1])


def test_transactions_v2_and_topic_ids_in_offsets_are_not_advertised() -> None:
    for api_key, version in [(0, 12), (8, 10), (9, 10), (22, 6), (26, 5), (28, 5)]:
        assert version not in advertised()[api_key]
    assert 0 in advertised()[0]


@pytest.mark.parametrize("size", [1, 100])
def test_frame_lengths(size: int) -> None:
    assert frame_bytes(size.to_bytes(4, "big"), 100) == size


@pytest.mark.parametrize("prefix", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x65", b"GET "])
def test_bad_frame_lengths(prefix: bytes) -> None:
    with pytest.raises(BadFrame):
        frame_bytes(prefix, 100)

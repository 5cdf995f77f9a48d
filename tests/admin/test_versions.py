"""Versions of requests that were not offered."""

from __future__ import annotations

import socket
import struct

import pytest

from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import decode_response, encode_request
from tests.broker_process import BrokerProcess


def send(broker: BrokerProcess, frame: bytes) -> bytes:
    """What comes back; nothing if the connection is closed."""
    host, port = broker.address.split(":")
    with socket.create_connection((host, int(port)), 60) as client, client.makefile("rb") as answers:
        client.sendall(frame)
        size = answers.read(4)
        return answers.read(struct.unpack(">i", size)[0]) if size else b""


@pytest.mark.parametrize("version", [19, 30])
def test_a_fetch_that_is_too_new_is_told_so(broker: BrokerProcess, version: int) -> None:
    """Kafka's own ReplicaVerificationTool sends the newest version without asking."""
    frame = bytearray(encode_request(FETCH, 18, 7, "tool", {"max_wait_ms": 0, "min_bytes": 0, "topics": []}))
    struct.pack_into(">h", frame, 6, version)
    correlation_id, answer = decode_response(FETCH, 18, memoryview(send(broker, bytes(frame))))
    assert (correlation_id, answer.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert answer.responses == []


@pytest.mark.parametrize(
    ("api_key", "version"), [(ApiKey.PRODUCE, 13), (ApiKey.METADATA, 99), (ApiKey.FETCH, 3)]
)
def test_other_versions_close_the_connection(broker: BrokerProcess, api_key: ApiKey, version: int) -> None:
    """As Kafka does: there is no answer that such a client is sure to understand."""
    frame = struct.pack(">hhih", api_key, version, 1, -1) + bytes(8)
    assert send(broker, struct.pack(">i", len(frame)) + frame) == b""

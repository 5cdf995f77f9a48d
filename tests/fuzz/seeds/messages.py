"""Seeds of bytes: whole frames, and bodies for the readers of each API."""

from __future__ import annotations

import struct

from faircopy.api.api_versions import SCHEMA as API_VERSIONS
from faircopy.api.routes import schema_of
from faircopy.wire import codec
from faircopy.wire.messages import encode_request, encode_response
from tests.fuzz import broker
from tests.fuzz.messages import LAYOUTS, Layout
from tests.fuzz.seeds.bodies import plain_body
from tests.fuzz.seeds.seed import Seeds

FRAMES_OF_AN_INPUT = 4


def frames() -> Seeds:
    rows = [(api_key, last) for api_key, _, last in broker.VERSIONS]
    requests = [
        encode_request(
            schema_of(api_key), version, number, "seed", plain_body(schema_of(api_key).request, version)
        )
        for number, (api_key, version) in enumerate(rows)
    ]
    for first in range(0, len(requests), FRAMES_OF_AN_INPUT):
        names = "-".join(str(int(api_key)) for api_key, _ in rows[first : first + FRAMES_OF_AN_INPUT])
        yield f"apis-{names}", b"\0" + b"".join(requests[first : first + FRAMES_OF_AN_INPUT])
    yield "in-pieces", b"\3" + b"".join(requests[:2])
    yield "two-connections", broker.joined([b"\0" + requests[0], b"\0" + requests[1]])


def request_decoders() -> Seeds:
    for api_key in sorted({layout.api_key for layout in LAYOUTS}):
        versions = [layout.version for layout in LAYOUTS if layout.api_key == api_key]
        for version in {versions[0], versions[-1]}:
            out = bytearray(struct.pack(">H", LAYOUTS.index(Layout(schema_of(api_key), version))))
            codec.writer(schema_of(api_key), version, "request")(
                out, plain_body(schema_of(api_key).request, version)
            )
            yield f"{schema_of(api_key).name}-{version}", bytes(out)
    request = encode_request(API_VERSIONS, 3, 1, "seed", plain_body(schema_of(18).request, 3))
    yield "a-frame", b"\xff\xff" + request[4:]
    yield "an-assignment", b"\xff\xfe" + broker.ASSIGNMENT


def response_decoders() -> Seeds:
    for api_key in sorted({layout.api_key for layout in LAYOUTS}):
        version = max(layout.version for layout in LAYOUTS if layout.api_key == api_key)
        body = plain_body(schema_of(api_key).response, version)
        number = struct.pack(">H", LAYOUTS.index(Layout(schema_of(api_key), version)))
        yield (
            f"{schema_of(api_key).name}-{version}",
            number + encode_response(schema_of(api_key), version, 1, body)[4:],
        )

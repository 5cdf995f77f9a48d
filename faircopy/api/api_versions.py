"""ApiVersions: the advertised APIs and versions (KIP-35, KIP-511).

Of each API, all versions are advertised that ask for nothing new, up to those of Kafka 4.4: some clients are
pinned to the versions of a release, and do not ask. Transactions v2 (KIP-890) are not advertised, since they
work only if all of their parts do; so Produce ends below topic ids (KIP-516), too. Fetch has topic ids, and
offsets are committed by name. Where a range ends for another reason, the file of the API says why. Version 5
of this one lets a client ask for another broker than the one that it has reached (KIP-1242).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from faircopy.net.exchange import Exchange
from faircopy.serving.route import HotRoute
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.messages import RequestHeader, decode_request, encode_response
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 18 ApiVersions 0-4 flexible 3+
  request
    client_software_name      string     3+
    client_software_version   string     3+
  response
    error_code                int16
    api_keys                  []
        api_key               int16
        min_version           int16
        max_version           int16
    throttle_time_ms          int32      1+     = 0
    supported_features        []         3+     tag 0 = []
        name                  string
        min_version           int16
        max_version           int16
    finalized_features_epoch  int64      3+     tag 1 = -1
    finalized_features        []         3+     tag 2 = []
        name                  string
        max_version_level     int16
        min_version_level     int16
    zk_migration_ready        bool       3+     tag 3 = false
""")

VERSIONS = range(SCHEMA.versions.first, SCHEMA.versions.last + 1)


SOFTWARE_SINCE = 3
SOFTWARE_WORD = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class ApiVersions:
    """Tells clients what is advertised."""

    def __init__(self, advertised: Mapping[int, range]) -> None:
        self._rows = [row(*each) for each in advertised.items()]

    def answer(self, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
        """Answer a request of an advertised version. Raises MalformedMessage."""
        request = decode_request(SCHEMA, header.api_version, frame, header.body_at)
        body = {"error_code": ErrorCode.NONE, "api_keys": self._rows}
        if header.api_version >= SOFTWARE_SINCE and not is_named(request):
            body = {"error_code": ErrorCode.INVALID_REQUEST, "api_keys": []}
        exchange.answer(encode_response(SCHEMA, header.api_version, header.correlation_id, body))


def is_named(request: Message) -> bool:
    """Whether a client says in words what software it is (KIP-511)."""
    words = (request.client_software_name, request.client_software_version)
    return all(SOFTWARE_WORD.fullmatch(word) for word in words)


def refuse(exchange: Exchange, header: RequestHeader) -> None:
    """Answer an unknown version as version 0: the client then retries with a known one (KIP-511)."""
    body = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": [row(SCHEMA.api_key, VERSIONS)]}
    exchange.answer(encode_response(SCHEMA, 0, header.correlation_id, body))


def row(api_key: int, versions: range) -> dict[str, Any]:
    """The entry for an API in the response."""
    return {"api_key": api_key, "min_version": versions[0], "max_version": versions[-1]}


ROUTE = HotRoute(SCHEMA, lambda parts: ApiVersions(parts.advertised).answer, VERSIONS, refuse)

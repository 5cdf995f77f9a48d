"""The APIs and versions that this broker tells clients it speaks (ApiVersions, KIP-35).

Produce is advertised from 0 though nothing below 3 is accepted: with a higher minimum, old librdkafka
silently drops gzip and lz4. Versions with topic ids (KIP-516) and transactions v2 (KIP-890) are not
advertised: each of the two works only when all of its parts do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode


class ApiVersionRange(NamedTuple):
    """An advertised API, and its first and last version."""

    api_key: ApiKey
    first: int
    last: int


ADVERTISED = tuple(
    ApiVersionRange(*row)
    for row in (
        (ApiKey.PRODUCE, 0, 9),
        (ApiKey.FETCH, 4, 12),
        (ApiKey.LIST_OFFSETS, 1, 10),
        (ApiKey.METADATA, 0, 12),
        (ApiKey.OFFSET_COMMIT, 2, 8),
        (ApiKey.OFFSET_FETCH, 1, 8),
        (ApiKey.FIND_COORDINATOR, 0, 4),
        (ApiKey.JOIN_GROUP, 0, 7),
        (ApiKey.HEARTBEAT, 0, 4),
        (ApiKey.LEAVE_GROUP, 0, 4),
        (ApiKey.SYNC_GROUP, 0, 5),
        (ApiKey.DESCRIBE_GROUPS, 0, 5),
        (ApiKey.LIST_GROUPS, 0, 5),
        (ApiKey.API_VERSIONS, 0, 4),
        (ApiKey.CREATE_TOPICS, 2, 7),
        (ApiKey.DELETE_TOPICS, 1, 6),
        (ApiKey.DELETE_RECORDS, 0, 2),
        (ApiKey.INIT_PRODUCER_ID, 0, 4),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4),
        (ApiKey.ADD_PARTITIONS_TO_TXN, 0, 3),
        (ApiKey.ADD_OFFSETS_TO_TXN, 0, 3),
        (ApiKey.END_TXN, 0, 3),
        (ApiKey.TXN_OFFSET_COMMIT, 0, 3),
        (ApiKey.DESCRIBE_CONFIGS, 1, 4),
        (ApiKey.ALTER_CONFIGS, 0, 2),
        (ApiKey.DESCRIBE_LOG_DIRS, 1, 4),
        (ApiKey.CREATE_PARTITIONS, 0, 3),
        (ApiKey.DELETE_GROUPS, 0, 2),
        (ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1),
        (ApiKey.OFFSET_DELETE, 0, 0),
        (ApiKey.DESCRIBE_CLUSTER, 0, 1),
        (ApiKey.DESCRIBE_PRODUCERS, 0, 0),
        (ApiKey.DESCRIBE_TRANSACTIONS, 0, 0),
        (ApiKey.LIST_TRANSACTIONS, 0, 1),
    )
)

_RANGES = {row.api_key: row for row in ADVERTISED}


def is_advertised(api_key: int, version: int) -> bool:
    """Whether a client was told that it may send this."""
    row = _RANGES.get(api_key)  # type: ignore[call-overload]
    return row is not None and row.first <= version <= row.last


def newest(api_key: ApiKey) -> int:
    """The newest version of an API that clients may send."""
    return _RANGES[api_key].last


def api_versions_body() -> dict[str, Any]:
    """The body of an ApiVersions response, for any version of it."""
    return {"error_code": ErrorCode.NONE, "api_keys": [_entry(row) for row in ADVERTISED]}


def api_versions_too_new_body() -> dict[str, Any]:
    """The answer to an ApiVersions request of an unknown version, to be encoded as version 0.

    It names only ApiVersions' own versions (KIP-511); the client comes back with one of them.
    """
    return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": [_entry(_RANGES[ApiKey.API_VERSIONS])]}


def _entry(row: ApiVersionRange) -> dict[str, int]:
    return {"api_key": row.api_key, "min_version": row.first, "max_version": row.last}

"""Refused requests, and the reasons, for the log of a broker that runs with --verbose."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from faircopy.wire.error_codes import ErrorCode

NAMED_BY = (
    "name", "topic", "partition_index", "group_id", "resource_name", "transactional_id", "key", "member_id",
)  # fmt: skip
PLACES_MAX = 10  # logged per response

log = logging.getLogger(__name__)


def is_logged() -> bool:
    """Whether refusals are logged at all. If not, callers need not collect them."""
    return log.isEnabledFor(logging.DEBUG)


def log_reason(error: Exception) -> None:
    """Log an error for which a response has only a code."""
    log.debug("refused: %s", error)


def log_refusals(api_name: str, client_id: str, client_host: str, body: Mapping[str, Any]) -> None:
    """Log what a response refuses. Call it only if `is_logged`."""
    for what in islice(refused(body), PLACES_MAX):
        log.debug("refused to client %r at %s: %s%s", client_id, client_host, api_name, what)


def refused(body: Mapping[str, Any]) -> Iterator[str]:
    """The errors in a response, each with its place and reason."""
    if code := body.get("error_code", 0):
        place = ", ".join(str(body[name]) for name in NAMED_BY if body.get(name) not in (None, ""))
        reason = body.get("error_message")
        yield f"{f' ({place})' if place else ''}: {name_of(code)}{f': {reason}' if reason else ''}"
    for value in body.values():
        for each in value if isinstance(value, list) else ():
            if isinstance(each, Mapping):
                yield from refused(each)


def name_of(code: int) -> str:
    """Kafka's name for an error code, or the number if it has no name."""
    return ErrorCode(code).name if code in list(ErrorCode) else str(code)

"""What requests are refused, and why, for the log of a broker that is started with --verbose."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from faircopy.wire.error_codes import ErrorCode

NAMED_BY = (
    "name", "topic", "partition_index", "group_id", "resource_name", "transactional_id", "key", "member_id",
)  # fmt: skip
PLACES_MAX = 10  # of one response

log = logging.getLogger(__name__)


def is_logged() -> bool:
    """Whether anybody reads what this module would say, so that it need not be put together."""
    return log.isEnabledFor(logging.DEBUG)


def log_reason(error: Exception) -> None:
    """Log what a response tells by a code only."""
    log.debug("refused: %s", error)


def log_refusals(api_name: str, client_id: str, client_host: str, body: Mapping[str, Any]) -> None:
    """Log what a response refuses; call it only if `is_logged`."""
    for what in islice(refused(body), PLACES_MAX):
        log.debug("refused to client %r at %s: %s%s", client_id, client_host, api_name, what)


def refused(body: Mapping[str, Any]) -> Iterator[str]:
    """Each error in a response, with where it is and why."""
    if code := body.get("error_code", 0):
        place = ", ".join(str(body[name]) for name in NAMED_BY if body.get(name) not in (None, ""))
        reason = body.get("error_message")
        yield f"{f' ({place})' if place else ''}: {name_of(code)}{f': {reason}' if reason else ''}"
    for value in body.values():
        for each in value if isinstance(value, list) else ():
            if isinstance(each, Mapping):
                yield from refused(each)


def name_of(code: int) -> str:
    """Kafka's name of an error code; the number of a code without one."""
    return ErrorCode(code).name if code in list(ErrorCode) else str(code)

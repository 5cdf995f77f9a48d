"""The errors of faircopy's clients. Each says whether a request took effect, did not, or may have."""

from __future__ import annotations

from faircopy.errors import FaircopyError
from faircopy.wire.error_codes import ErrorCode


class ConnectionFailed(FaircopyError):
    """The broker can't be reached, or the connection broke; whether a request took effect is unknown."""


class OutcomeUnknown(FaircopyError):
    """No answer came in time: whether the request took effect is unknown. A commit of a key, a join and an
    abort may be asked for again: they take effect once.
    """


class RequestFailed(FaircopyError):
    """The broker answered a request with an error; it did not take effect."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class Fenced(RequestFailed):
    """Another run of the group, or another instance of the producer, has taken over. Stop."""


class TransactionAborted(RequestFailed):
    """What was written is discarded: by a timeout, an abort, or a loss of power. Write it again."""


class DataLost(RequestFailed):
    """Offsets that were asked for are no longer there, or their topic is not."""


KINDS: dict[ErrorCode, type[RequestFailed]] = {
    ErrorCode.PRODUCER_FENCED: Fenced,
    ErrorCode.INVALID_PRODUCER_EPOCH: Fenced,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: TransactionAborted,
    ErrorCode.INVALID_TXN_STATE: TransactionAborted,
    ErrorCode.TRANSACTION_ABORTABLE: TransactionAborted,
    ErrorCode.UNKNOWN_TOPIC_ID: DataLost,
}


def made_anew(topic: str) -> str:
    """What has become of a topic whose id is gone."""
    return f"topic {topic} was deleted, or deleted and made anew, since its id was looked up"


def request_failed(code: int, message: str | None, doing: str) -> RequestFailed:
    """The error for an error code in a response; `doing` says what was asked for."""
    known = ErrorCode(code) if code in list(ErrorCode) else ErrorCode.UNKNOWN_SERVER_ERROR
    reason = message or known.name.lower().replace("_", " ")
    return KINDS.get(known, RequestFailed)(known, f"{doing}: {reason} ({known.name})")

"""The answer to a zombie."""

from __future__ import annotations

from faircopy.wire.error_codes import ErrorCode

PRODUCER_FENCED_SINCE = 2  # of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn


def fenced_code(version: int, since: int = PRODUCER_FENCED_SINCE) -> ErrorCode:
    """The code for a fenced producer. Older clients know only the older code (KIP-588)."""
    return ErrorCode.PRODUCER_FENCED if version >= since else ErrorCode.INVALID_PRODUCER_EPOCH

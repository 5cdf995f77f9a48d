"""The leader epoch that a client knows, as its request says (KIP-320)."""

from __future__ import annotations

from faircopy.wire.error_codes import ErrorCode

UNNAMED = -1
"""In a request: the client does not know an epoch, or does not say."""


def check_leader_epoch(named: int, current: int) -> ErrorCode:
    """Compare the leader epoch that a client knows, `named`, with the `current` one. Returns NONE, or the
    error that says whose epoch is out of date. The client then requests Metadata, or retries.
    """
    if named in (current, UNNAMED):
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if named < current else ErrorCode.UNKNOWN_LEADER_EPOCH

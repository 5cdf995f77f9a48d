"""What a request says of the leader epoch that its client knows (KIP-320)."""

from __future__ import annotations

from faircopy.wire.error_codes import ErrorCode

UNNAMED = -1
"""In a request: the client does not say which epoch it knows."""


def check_leader_epoch(named: int, current: int) -> ErrorCode:
    """What to answer a client that takes `named` for the epoch that leads, which is `current`: NONE, or that one of
    the two is out of date. Then the client asks for Metadata, or asks again.
    """
    if named in (current, UNNAMED):
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if named < current else ErrorCode.UNKNOWN_LEADER_EPOCH

"""How long the ends of a link wait, in seconds. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Timing(NamedTuple):
    """Each side says something at least once in `heartbeat_seconds`, and gives the link up when it has heard
    nothing for `silence_seconds`. Whoever calls proves who it is within `handshake_seconds`. A leader whose
    link has ended tries again after `retry_seconds`.
    """

    heartbeat_seconds: float = 0.5
    silence_seconds: float = 5.0
    handshake_seconds: float = 5.0
    retry_seconds: float = 0.5

"""The limit of transaction timeouts. Clients show a refusal as a mere code: the reason is in the log."""

from __future__ import annotations

import logging

from faircopy.storage.clock import Clock
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.error_codes import ErrorCode

LOGGED_EVERY_MS = 1_000

log = logging.getLogger(__name__)


class TimeoutLimit:
    """The longest timeout that a producer may ask for, in milliseconds."""

    def __init__(self, max_ms: int, clock: Clock) -> None:
        self._max_ms = max_ms
        self._clock = clock
        self._logged_ms = float("-inf")

    def ensure(self, transactional_id: str, timeout_ms: int) -> None:
        """Raise TransactionRefused for a timeout that is out of bounds."""
        if 0 < timeout_ms <= self._max_ms:
            return
        error = TransactionRefused(
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
            f"{transactional_id!r} asks for transaction.timeout.ms={timeout_ms}, which is not between 1 and "
            f"{self._max_ms}: let it ask for less, or raise the broker's transaction.max.timeout.ms",
        )
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._logged_ms >= LOGGED_EVERY_MS:
            self._logged_ms = now_ms
            log.warning("refused: %s", error)
        raise error

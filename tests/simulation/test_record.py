"""What a refusal says of the transaction that it befalls."""

from __future__ import annotations

import pytest

from faircopy.wire.error_codes import ErrorCode
from tests.simulation.producer import TRANSACTION_TIMEOUT_MS, Refused
from tests.simulation.record import Attempt

IN_TIME = TRANSACTION_TIMEOUT_MS / 1000 - 1
TOO_LATE = TRANSACTION_TIMEOUT_MS / 1000 + 1


@pytest.mark.parametrize(
    ("code", "seconds", "is_given_up"),
    [
        (ErrorCode.INVALID_TXN_STATE, IN_TIME, True),
        # It timed out, and its id was forgotten: that is no loss.
        (ErrorCode.INVALID_TXN_STATE, TOO_LATE, False),
        (ErrorCode.TRANSACTION_ABORTABLE, IN_TIME, True),
        (ErrorCode.TRANSACTION_ABORTABLE, TOO_LATE, True),
        (ErrorCode.INVALID_PRODUCER_EPOCH, TOO_LATE, False),
    ],
)
def test_a_transaction_is_given_up_only_if_nothing_else_explains_its_end(
    code: ErrorCode, seconds: float, is_given_up: bool
) -> None:
    attempt = Attempt("one", "group", begun=10.0)
    attempt.refused(Refused(code, is_certain=True), 10.0 + seconds)
    assert (attempt.given_up is not None) is is_given_up

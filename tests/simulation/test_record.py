"""What a refusal says of the transaction that it befalls."""

from __future__ import annotations

import pytest

from faircopy.wire.error_codes import ErrorCode
from tests.simulation.producer import Refused
from tests.simulation.record import Attempt

EXPIRATION_SECONDS = 3.0
BEFORE, AFTER = EXPIRATION_SECONDS - 1, EXPIRATION_SECONDS + 1


@pytest.mark.parametrize(
    ("code", "seconds", "is_given_up"),
    [
        (ErrorCode.INVALID_TXN_STATE, BEFORE, True),
        # It timed out, or another instance came, and then its id was forgotten: that is no loss.
        (ErrorCode.INVALID_TXN_STATE, AFTER, False),
        (ErrorCode.TRANSACTION_ABORTABLE, BEFORE, True),
        (ErrorCode.TRANSACTION_ABORTABLE, AFTER, True),
        (ErrorCode.INVALID_PRODUCER_EPOCH, AFTER, False),
    ],
)
def test_a_transaction_is_given_up_only_if_nothing_else_explains_its_end(
    code: ErrorCode, seconds: float, is_given_up: bool
) -> None:
    attempt = Attempt("one", "group", begun=10.0, forgotten_after=EXPIRATION_SECONDS)
    attempt.refused(Refused(code, is_certain=True), 10.0 + seconds)
    assert (attempt.given_up is not None) is is_given_up

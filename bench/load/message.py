"""Messages that carry the time of their send and the number of their transaction.

0  send time           i64  nanoseconds of the monotonic clock, which all processes of a machine share
8  transaction number  i64  0 for a message that is not measured
16 padding
"""

from __future__ import annotations

import struct
import time

STAMP = struct.Struct("<qq")
MESSAGE_BYTES = 100
UNMEASURED = 0
_PADDING = b"x" * (MESSAGE_BYTES - STAMP.size)


def stamped(transaction: int) -> bytes:
    """A message of 100 bytes, sent now."""
    return STAMP.pack(time.monotonic_ns(), transaction) + _PADDING

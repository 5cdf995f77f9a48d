"""What a request names more than once: Kafka refuses it, and does nothing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from faircopy.serving.codes import Refused
from faircopy.wire.error_codes import ErrorCode


class Named:
    """What a request names, each by a key."""

    def __init__(self, keys: Iterable[Hashable]) -> None:
        self._times = Counter(keys)

    def ensure_once(self, key: Hashable, what: str) -> None:
        """Raise Refused if `what`, which has this key, is named more than once."""
        if self._times[key] > 1:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f"{what} is named {self._times[key]} times: name it once"
            )

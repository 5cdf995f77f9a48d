"""What a request names more than once: Kafka refuses it, and does nothing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from faircopy.errors import FaircopyError
from faircopy.serving.codes import Refused
from faircopy.wire.error_codes import ErrorCode


class Named:
    """What a request names, each by a key."""

    def __init__(self, keys: Iterable[Hashable]) -> None:
        self._times = Counter(keys)

    def repeated(self, kind: str) -> dict[Hashable, FaircopyError]:
        """Why each name is refused that is there more than once. `kind` says what has these names."""
        return {name: refusal(f"{kind} {name!r}", times) for name, times in self._times.items() if times > 1}

    def ensure_once(self, key: Hashable, what: str) -> None:
        """Raise Refused if `what`, which has this key, is named more than once."""
        if self._times[key] > 1:
            raise refusal(what, self._times[key])


def refusal(what: str, times: int) -> Refused:
    """The error for what a request names more than once."""
    return Refused(ErrorCode.INVALID_REQUEST, f"{what} is named {times} times: name it once")

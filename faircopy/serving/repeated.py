"""What a request names more than once: Kafka refuses it, and does nothing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from faircopy.errors import FaircopyError
from faircopy.serving.codes import Refused
from faircopy.wire.error_codes import ErrorCode

Key = TypeVar("Key", bound=Hashable)


class Named(Generic[Key]):
    """What a request names, each by a key."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._times = Counter(keys)

    def repeated(self, told: Callable[[Key], str]) -> dict[Key, FaircopyError]:
        """Why each key is refused that is there more than once. `told(key)` is what people call it."""
        return {key: refusal(told(key), times) for key, times in self._times.items() if times > 1}

    def ensure_once(self, key: Key, what: str) -> None:
        """Raise Refused if `what`, which has this key, is named more than once."""
        if self._times[key] > 1:
            raise refusal(what, self._times[key])


def refusal(what: str, times: int) -> Refused:
    """The error for what a request names more than once."""
    return Refused(ErrorCode.INVALID_REQUEST, f"{what} is named {times} times: name it once")

"""The gate before the answers of a broker that leads by a lease. No I/O and no clock.

Once the lease may have expired, somebody else may lead, and whatever the broker would say may not be true any
more. So while the lease is in doubt, the gate is closed: no answer leaves, no further request is begun, and
who has something held waits here. When the lease is renewed, it was held all the while, so that the answers
are still true, and all that was held is let go.

What an answer rests on is read before the gate is asked, never after.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from faircopy.wire.api_keys import ApiKey

# Their answers rest on nothing that a successor could change: they pass in doubt, too.
UNGATED = frozenset({int(ApiKey.API_VERSIONS), int(ApiKey.INSPECT)})

_API_KEY_BYTES = 2


class Waiter(Protocol):
    """Who holds something back because of the gate. Hashable by identity."""

    def gate_opened(self) -> None:
        """Go on; the gate may be closed again."""


class Gate:
    """Whether answers may leave. `waiting` holds those that want to be told when they may."""

    def __init__(self, is_closed: Callable[[], bool]) -> None:
        """`is_closed()` says whether the lease is in doubt at this moment."""
        self._is_closed = is_closed
        self.waiting: dict[Waiter, None] = {}  # in the order of their arrival

    @property
    def is_closed(self) -> bool:
        """Whether the lease is in doubt."""
        return self._is_closed()

    def is_for(self, frame: memoryview) -> bool:
        """Whether the answer to this request has to pass the gate."""
        return int.from_bytes(frame[:_API_KEY_BYTES], "big") not in UNGATED

    def hold(self, who: Waiter) -> None:
        """Note that this one waits until the gate opens."""
        self.waiting[who] = None

    def forget(self, who: Waiter) -> None:
        """This one waits no longer."""
        self.waiting.pop(who, None)

    def let_go(self) -> None:
        """The same lease is renewed: all that wait go on. If it is in doubt even so, nothing happens."""
        if self.is_closed:
            return
        for who in list(self.waiting):
            if who in self.waiting:  # nobody has ended it meanwhile
                del self.waiting[who]
                who.gate_opened()

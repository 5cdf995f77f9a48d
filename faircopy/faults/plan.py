"""The faults that were asked for and have not all happened, and how many requests came. Pure."""

from __future__ import annotations

from collections import Counter

from faircopy.faults.asked import NameOf, concerns
from faircopy.faults.fault import Fault
from faircopy.wire.codec import Message


class FaultPlan:
    """What is to happen to the requests of a broker. The first fault that concerns a request happens to it.

    `requests` counts the requests of each API since faults were cleared, by its key.
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.requests: Counter[int] = Counter()

    def add(self, fault: Fault) -> None:
        """Plan one more."""
        self.faults.append(fault)

    def clear(self) -> None:
        """Plan nothing, and begin to count anew."""
        self.faults.clear()
        self.requests.clear()

    def has(self, api_key: int) -> bool:
        """Whether something is planned for an API."""
        return any(fault.api_key == api_key for fault in self.faults)

    def take(self, api_key: int, request: Message, name_of: NameOf) -> Fault | None:
        """What happens to this request now; None if nothing does."""
        for at, fault in enumerate(self.faults):
            if fault.api_key == api_key and concerns(fault, request, name_of):
                left = fault.once_less()
                self.faults[at : at + 1] = [left] if left is not None else []
                return None if fault.skip else fault
        return None

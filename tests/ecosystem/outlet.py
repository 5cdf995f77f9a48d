"""Where it can be seen how far a foreign program has come."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

PATIENCE_SECONDS = 420.0
"""After so long without anything new the program is taken to hang. Some wait for minutes after a kill."""
LOOK_SECONDS = 0.02


class Outlet(ABC):
    """What comes out is counted: `visible` says how much it was at the last look."""

    visible = 0

    @abstractmethod
    def count(self) -> int:
        """How much there is now."""

    def until_visible(self, goal: int, meanwhile: Callable[[], None]) -> None:
        """Call `meanwhile` again and again, and return when so much is visible."""
        self._until(lambda: self.visible >= goal, meanwhile)

    def during(self, seconds: float, meanwhile: Callable[[], None]) -> None:
        """Call `meanwhile` again and again, for so long."""
        end = time.monotonic() + seconds
        self._until(lambda: time.monotonic() >= end, meanwhile)

    def _until(self, is_reached: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
        grown = time.monotonic()
        while not is_reached():
            meanwhile()
            before, self.visible = self.visible, self.count()
            if self.visible > before:
                grown = time.monotonic()
            assert time.monotonic() < grown + PATIENCE_SECONDS, f"{self.visible} are visible, no more come"
            time.sleep(LOOK_SECONDS)

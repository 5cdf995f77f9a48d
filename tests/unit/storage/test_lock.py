"""The lock of a data directory, which somebody else holds for a moment, or for good."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from faircopy.storage import data_directory
from faircopy.storage.data_directory import LOCK_WAIT_SECONDS, wait_for_lock


class OtherHolder:
    """Holds the lock for so long, on a clock that only waiting moves."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self._until = seconds

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def lock(self, _path: Path) -> int:
        if self.now < self._until:
            raise BlockingIOError
        return 7


def wait_for(holder: OtherHolder, monkeypatch: pytest.MonkeyPatch) -> int:
    clock = SimpleNamespace(monotonic=lambda: holder.now, sleep=holder.sleep)
    monkeypatch.setattr(data_directory, "time", clock)
    return wait_for_lock(holder.lock, Path("data"))


def test_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = OtherHolder(LOCK_WAIT_SECONDS * 0.9)
    assert wait_for(holder, monkeypatch) == 7
    assert holder.now >= LOCK_WAIT_SECONDS * 0.9


def test_a_broker_that_runs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = OtherHolder(LOCK_WAIT_SECONDS * 10)
    with pytest.raises(BlockingIOError):
        wait_for(holder, monkeypatch)
    assert LOCK_WAIT_SECONDS <= holder.now < LOCK_WAIT_SECONDS * 2

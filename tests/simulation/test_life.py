"""A life that is stopped does nothing, and later all that has become due, unless it ends first."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator

import pytest

from tests.simulation.loop import Life, VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


class Diary:
    """What a life has done: a task that writes each second, and timers."""

    def __init__(self, loop: VirtualLoop, life: Life) -> None:
        self.entries: list[str] = []
        self._loop = loop
        self.task = loop.create_task(self._write(), context=life.context)
        for second in (2.5, 3.5, 9.5):
            loop.call_at(second, self.note, f"timer of {second}", context=life.context)

    def note(self, what: str) -> None:
        self.entries.append(f"{self._loop.now:g}: {what}")

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.note("tick")


def test_what_became_due_while_it_was_stopped_comes_at_once_in_order(loop: VirtualLoop) -> None:
    life = Life("stopped")
    diary = Diary(loop, life)
    loop.call_at(1.5, life.pause)
    loop.call_at(7.0, life.resume)
    loop.run(asyncio.sleep(8.5))
    assert diary.entries == [
        "1: tick", "7: timer of 2.5", "7: timer of 3.5", "7: tick", "8: tick",
    ]  # fmt: skip


@pytest.mark.parametrize("stopped", [1.5, 6.0])
def test_what_has_ended_never_goes_on(loop: VirtualLoop, stopped: float) -> None:
    life = Life("stopped and killed")
    diary = Diary(loop, life)
    loop.call_at(stopped, life.pause)
    loop.call_at(1.8, life.end)
    loop.call_at(7.0, life.resume)
    loop.run(asyncio.sleep(10))
    assert diary.entries == ["1: tick"]


def test_a_task_that_never_begins_leaves_no_warning(loop: VirtualLoop) -> None:
    async def nothing() -> None:
        pass

    gc.collect()  # what others have left
    life = Life("stopped before it begins")
    life.pause()
    loop.create_task(nothing(), context=life.context)
    loop.call_at(1.0, life.end)
    with warnings.catch_warnings(record=True, action="always") as warned:
        loop.run(asyncio.sleep(2))
        gc.collect()
    assert warned == []

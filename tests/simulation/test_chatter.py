"""The chatter of processes hears nothing wrong on sound connections, and notices each way to be unsound."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from tests.simulation import chatter
from tests.simulation.chatter import TALKED, WHOLE, Line, Talk
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life, VirtualLoop
from tests.simulation.switch import Switch
from tests.simulation.wires import Item, Signal, Stream, WireEnd

MACHINES = 3
TALK_SECONDS = 6.0


def talked(seed: int = 1) -> Talk:
    """The talk of three processes, of which one ends and is replaced on the way."""
    loop = VirtualLoop()

    async def play() -> Talk:
        coverage = Coverage()
        talk = Talk(
            loop, Switch(loop, MACHINES, random.Random(seed), coverage), random.Random(seed), coverage
        )
        lives = [Life(str(machine)) for machine in range(MACHINES)]
        for machine, life in enumerate(lives):
            talk.begin(machine, life)
        await asyncio.sleep(TALK_SECONDS)
        lives[0].end()
        await asyncio.sleep(1)
        talk.begin(0, Life("0 again"))
        await asyncio.sleep(TALK_SECONDS)
        await talk.check()
        return talk

    talk = loop.run(play())
    loop.close()
    return talk


def test_all_is_heard() -> None:
    talk = talked()
    assert talk.wrong == []
    assert talk.coverage.counts[TALKED] > 100
    assert talk.coverage.counts[WHOLE] == MACHINES * (MACHINES - 1)


def test_it_hears_what_comes_in_the_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Stream, "_arrive", lambda stream: stream._items and stream._receive(stream._items.pop())
    )
    monkeypatch.setattr(chatter, "PAUSE_SECONDS", 0.02)
    assert "instead of" in talked().wrong[0]


def test_it_hears_what_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    take = WireEnd._take

    def take_twice(end: WireEnd, item: Item) -> None:
        for _ in range(1 if isinstance(item, Signal) else 2):
            take(end, item)

    monkeypatch.setattr(WireEnd, "_take", take_twice)
    assert "instead of" in talked().wrong[0]


def test_it_misses_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of all, since otherwise the next message tells."""
    arrive = Stream._arrive

    def lose_the_last(stream: Stream) -> None:
        if stream._path._loop.now < 2 * TALK_SECONDS + 1 or isinstance(stream._items[0], Signal):
            arrive(stream)

    monkeypatch.setattr(Stream, "_arrive", lose_the_last)
    assert "something was lost" in talked().wrong[0]


def test_it_notices_a_line_that_is_open_at_one_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WireEnd, "_process_ended", lambda end: None)
    monkeypatch.setattr(WireEnd, "answer_for_nobody", lambda end: None)
    assert "open at one end only" in talked().wrong[0]


def test_it_hears_a_process_that_is_not_the_one_on_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    speak, processes = Line._speak, itertools.cycle((1, 2))

    def speak_as_another(line: Line) -> None:
        line._speaker.process = next(processes)
        speak(line)

    monkeypatch.setattr(Line, "_speak", speak_as_another)
    assert "instead of" in talked().wrong[0]

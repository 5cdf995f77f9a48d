"""What goes wrong on several machines at once, and between them, beside the faults that each has alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from tests.simulation.aftermath import Fate
from tests.simulation.coverage import Coverage
from tests.simulation.here import on
from tests.simulation.loop import Life
from tests.simulation.machine import Machine
from tests.simulation.switch import Switch

CALM_SECONDS = 1.5
DOWN_SECONDS = 2.0
STOPPED_SECONDS = 6.0
APART_SECONDS = 8.0
KILLED_WHILE_STOPPED_CHANCE = 0.2
KILLED_WHILE_STOPPED = "world: a process killed while it was stopped"

Work = Coroutine[Any, Any, None]
Way = tuple[int, int]


class Victim(Protocol):
    """The course of a machine that others may cause faults on, while its own storm is on."""

    @property
    def machine(self) -> Machine: ...

    @property
    def has_storm(self) -> bool: ...

    @property
    def may_lose_power(self) -> bool: ...

    async def come_back(self) -> None:
        """Start what runs there, unless it runs: somebody else has ended it."""


class Calamities:
    """Causes faults of the world until `stop`, on machines whose own storm is on."""

    def __init__(
        self,
        courses: Sequence[Victim],
        switch: Switch,
        chosen: random.Random,
        coverage: Coverage,
        calm_seconds: float = CALM_SECONDS,
    ) -> None:
        """One comes in `calm_seconds` on average."""
        self._courses = courses
        self._switch = switch
        self._chosen = chosen
        self._coverage = coverage
        self._calm_seconds = calm_seconds
        self._is_stopping = False
        self._under_way: list[asyncio.Task[None]] = []
        self._kinds: dict[str, Callable[[], Work | None]] = {
            "machines lose power together": self._lose_power,
            "processes are killed together": self._kill,
            "a process is stopped": lambda: self._pause(1, 1),
            "processes are stopped together": lambda: self._pause(2, len(courses)),
            "a way is cut": lambda: self._cut([self._way()]),
            "both ways are cut": lambda: self._cut(both(self._way())),
            "a way is silent": lambda: self._silence([self._way()]),
            "both ways are silent": lambda: self._silence(both(self._way())),
            "a machine is alone": lambda: self._silence(self._ways_of_one()),
        }
        coverage.announce(*(f"world: {name}" for name in self._kinds), KILLED_WHILE_STOPPED)

    async def run(self) -> None:
        """Cause faults, also some at the same time, until stopped. When all is well again, it is over."""
        while not self._is_stopping:
            await asyncio.sleep(self._chosen.expovariate(1 / self._calm_seconds))
            name = self._chosen.choice(list(self._kinds))
            work = None if self._is_stopping else self._kinds[name]()
            if work is not None:
                self._coverage.hit(f"world: {name}")
                self._under_way.append(asyncio.create_task(work))
        await asyncio.gather(*self._under_way)

    def stop(self) -> None:
        """Begin no more faults."""
        self._is_stopping = True

    # -- processes and machines ------------------------------------------------------------------------------

    def _some(self, least: int, most: int, among: Sequence[Victim]) -> list[Victim]:
        """Some of these with a process that runs, if there are enough."""
        running = [course for course in among if course.has_storm and course.machine.life.is_running]
        if len(running) < least:
            return []
        return self._chosen.sample(running, self._chosen.randint(least, min(most, len(running))))

    def _lose_power(self) -> Work | None:
        able = [course for course in self._courses if course.may_lose_power]
        victims = self._some(2, len(able), able)
        for course in victims:
            with on(course.machine):
                course.machine.lose_power(self._chosen.choice(list(Fate)))
        return self._come_back(victims) if victims else None

    def _kill(self) -> Work | None:
        victims = self._some(2, len(self._courses), self._courses)
        for course in victims:
            with on(course.machine):
                course.machine.kill()
        return self._come_back(victims) if victims else None

    async def _come_back(self, courses: Sequence[Victim]) -> None:
        await asyncio.gather(*(self._come_back_alone(course) for course in courses))

    async def _come_back_alone(self, course: Victim) -> None:
        await asyncio.sleep(self._chosen.random() * DOWN_SECONDS)
        await course.come_back()

    def _pause(self, least: int, most: int) -> Work | None:
        victims = [(course, course.machine.life) for course in self._some(least, most, self._courses)]
        for _, life in victims:
            life.pause()
        return self._let_go_on(victims) if victims else None

    async def _let_go_on(self, victims: Sequence[tuple[Victim, Life]]) -> None:
        """One after the other. Some end while they are stopped, and come back later: a start may wait for
        others that are stopped.
        """
        ended = []
        for course, life in victims:
            await asyncio.sleep(self._chosen.random() * STOPPED_SECONDS / len(victims))
            if life.is_paused and self._chosen.random() < KILLED_WHILE_STOPPED_CHANCE:
                self._coverage.hit(KILLED_WHILE_STOPPED)
                with on(course.machine):
                    course.machine.kill()
                ended.append(course)
            life.resume()
        await self._come_back(ended)

    # -- the ways between machines ---------------------------------------------------------------------------

    def _way(self) -> Way:
        return self._chosen.choice(list(self._switch.paths))

    def _ways_of_one(self) -> list[Way]:
        machine = self._chosen.randrange(len(self._courses))
        return [way for way in self._switch.paths if machine in way]

    def _cut(self, ways: Sequence[Way]) -> Work:
        for way in ways:
            self._switch.cut(*way)
        return self._heal(ways)

    def _silence(self, ways: Sequence[Way]) -> Work:
        for way in ways:
            self._switch.fall_silent(*way)
        return self._heal(ways)

    async def _heal(self, ways: Sequence[Way]) -> None:
        await asyncio.sleep(self._chosen.random() * APART_SECONDS)
        for way in ways:
            self._switch.heal(*way)


def both(way: Way) -> list[Way]:
    """A way, and the way back."""
    return [way, way[::-1]]

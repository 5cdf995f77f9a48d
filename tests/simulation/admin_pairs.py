"""Two administrators at once, at a broker on a virtual clock: does it come to one after the other?

The outcome is what they are told, what is stored, hosted and on disk, and all that again after a restart.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from faircopy.catalogue.dynamic_settings import DEFAULT
from faircopy.catalogue.topics import PREFIX as TOPICS_PREFIX
from faircopy.catalogue.topics import Topic, decode, is_topic_directory
from faircopy.hosting.snapshots import DIRECTORY, FILES
from faircopy.storage.paths import list_directory, make_directory, read_file, write_file
from tests.crash_states.stage import TABLE, TOPICS, Stage
from tests.simulation.admin_model import BUSY, MESSAGES, SIDES, Answer, Model, ModelTopic, Request
from tests.simulation.consumer import LATEST, SimulatedConsumer
from tests.simulation.interleaving import Interrupted
from tests.simulation.store import SimulatedStore
from tests.simulation.test_made_again import on_stage, restart

Outcome = dict[str, Any]
Place = tuple[str, bool, int]
"""The name of a topic, whether it is one of the beginning, and the number of a partition."""


class SlowPace:
    """A pace at which each element of a list may be interrupted."""

    async def through(self, elements: Iterable[Any]) -> AsyncIterator[Any]:
        for each in elements:
            await asyncio.sleep(0)
            yield each

    over = through


# -- what the model says -------------------------------------------------------------------------------------


def first_model() -> Model:
    """The state in which the two begin."""
    topics = {name: ModelTopic(True, count, {"plain.table": TABLE}) for name, count in TOPICS.items()}
    return Model(topics, {"readers": {("a", 0): 1, ("b", 0): 1}}, {"loader"})


def serial_outcomes(one: tuple[Request, ...], other: tuple[Request, ...]) -> Iterator[Outcome]:
    """The outcomes of all orders in which each does its own in order, and of those in which what may be busy
    is refused, since both make backups.
    """
    sides = (one, other)
    is_contested = all(any(request.is_about_backups for request in side) for side in sides)
    for order in set(itertools.permutations([0] * len(one) + [1] * len(other))):
        for refused in itertools.product([False, True], repeat=len(order)):
            model, answers = first_model(), ([], [])  # type: tuple[Model, tuple[list[Answer], list[Answer]]]
            for side, is_refused in zip(order, refused, strict=True):
                request = sides[side][len(answers[side])]
                if is_refused and not (is_contested and request.may_be_busy):
                    break
                model.side = side
                answers[side].append(BUSY if is_refused else request.model(model))
            else:
                yield outcome_of(model, answers)


def outcome_of(model: Model, answers: tuple[list[Answer], list[Answer]]) -> Outcome:
    topics = {name: (each.is_first, each.partitions, each.configs) for name, each in model.topics.items()}
    starts = {
        f"{name}-{number}": topic.starts.get(number, 0)
        for name, topic in model.topics.items()
        for number in range(topic.partitions)
    }
    return {
        "answers": answers,
        "stored": topics,
        "hosted": topics,
        "served": model.places(),
        "files": model.places(),
        "starts": starts,
        "groups": model.groups,
        "joint groups": model.joint_groups,
        "broker settings": model.broker_settings,
        "snapshot": model.snapshot,
    }


# -- what the broker does ------------------------------------------------------------------------------------


class Administrators:
    """Two of them, at one broker. `ids` are those of the topics of the beginning."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.ids = {name: hosted.topic.id.bytes for name, hosted in stage.broker.hosted.topics.items()}

    async def do(self, side: tuple[Request, ...]) -> list[Answer]:
        """Ask for one thing after the other."""
        context = SimpleNamespace(parts=self._stage.broker, pace=SlowPace(), backup=None)
        return [await self._ask(request, context) for request in side]

    async def _ask(self, request: Request, context: Any) -> Answer:
        answer = await request.handler(request.body(self.ids), context)
        return request.read(answer, self._is_first)

    async def do_at_once(
        self, one: tuple[Request, ...], other: tuple[Request, ...], moment: int
    ) -> tuple[tuple[list[Answer], list[Answer]], int]:
        """Interrupt the one by the other. Returns the answers, and how often the one gave way."""
        others: list[asyncio.Task[list[Answer]]] = []
        interrupted = Interrupted(
            self.do(one), moment, lambda: others.append(asyncio.ensure_future(self.do(other)))
        )
        answers = await interrupted
        return (answers, await others[0] if others else await self.do(other)), interrupted.moments

    def found(self) -> Outcome:
        """The broker's state, as the model shows its own."""
        broker = self._stage.broker
        stored = self._stored()
        return {
            "stored": {name: self._shape(topic) for name, topic in stored.items()},
            "hosted": {name: self._shape(hosted.topic) for name, hosted in broker.hosted.topics.items()},
            "served": sorted(
                (each.name.topic, self._is_first(each.id.topic_id), each.name.partition)
                for each in broker.hosted.partitions()
            ),
            "files": self._files(),
            "starts": {str(each.name): each.log.start_offset for each in broker.hosted.partitions()},
            "groups": self._groups(),
            "joint groups": {
                group for home in broker.shards.metadata_journals() for group in home.table.groups
            },
            "broker settings": broker.dynamic_settings.of(DEFAULT),
            "snapshot": self._snapshot(),
        }

    def _is_first(self, topic_id: bytes) -> bool:
        return topic_id in self.ids.values()

    def _stored(self) -> dict[str, Topic]:
        found = self._stage.broker.catalogue.scan(TOPICS_PREFIX).items()
        named = ((key.removeprefix(TOPICS_PREFIX), each) for key, each in found)
        return {name: decode(name, each.value, each.version) for name, each in named}

    def _files(self) -> list[Place]:
        """The directories of journals."""
        journals = self._stage.broker.directory.journal
        topics = [each for each in list_directory(journals) if is_topic_directory(each.name)]
        return self._places((topic.name, each.name) for topic in topics for each in list_directory(topic))

    def _shape(self, topic: Topic) -> tuple[bool, int, dict[str, str]]:
        return self._is_first(topic.id.bytes), topic.partitions, topic.configs

    def _places(self, found: Iterable[tuple[str, str]]) -> list[Place]:
        first = {topic_id.hex()[:8] for topic_id in self.ids.values()}
        places = set()
        for directory, number in found:
            name, _, prefix = directory.partition(".")
            places.add((name, prefix in first, int(number)))
        return sorted(places)

    def _groups(self) -> dict[str, dict[tuple[str, int], int]]:
        """The offsets of each group; under "?" those of topics that are gone."""
        names, broker = self._stage.broker.hosted.name_of, self._stage.broker
        return {
            group: {
                names(place) or ("?", 0): offset.offset
                for place, offset in partition.table.committed(group).items()
            }
            for partition in broker.shards.offsets_partitions()
            for group in partition.table.groups()
        }

    def _snapshot(self) -> list[Place] | None:
        """The partitions whose journals are in the snapshot."""
        directory = self._stage.broker.directory.path / DIRECTORY
        if FILES not in [each.name for each in list_directory(directory)]:
            return None
        paths = [Path(name).parts for name in json.loads(read_file(directory / FILES))["files"]]
        journals = [parts for parts in paths if parts[0] == "journal" and is_topic_directory(parts[1])]
        return self._places((topic, number) for _, topic, number, *_ in journals)


# -- both ----------------------------------------------------------------------------------------------------


async def begin(stage: Stage) -> None:
    """Bring the broker into the state in which the two begin."""
    for name in TOPICS:
        await stage.plain.send(f"{name}-0", list(range(MESSAGES)), 0)
    await stage.in_broker(stage.offsets_journals.commit("readers", stage.offsets(1, *TOPICS)))
    joint = stage.broker.shards.coordinator_of("loader").joint
    await stage.in_broker(joint.commit("loader", "run", 1, []))


async def ends(stage: Stage) -> dict[str, int]:
    """The end of each partition's log."""
    names = [str(partition.name) for partition in stage.broker.hosted.partitions()]
    reader = SimulatedConsumer(stage.remote, names, is_committed=True)
    return {name: await reader.bound(name, LATEST) for name in names}


async def use(stage: Stage) -> None:
    """Send something to each partition, which is acknowledged."""
    await stage.plain.begin_life()
    for partition in stage.broker.hosted.partitions():
        await stage.plain.send(str(partition.name), [1_000], 0)


async def try_pair(stage: Stage, one: str, other: str, moment: int) -> int:
    """Interrupt one side by the other. Returns how often the one gave way."""
    await begin(stage)
    administrators = Administrators(stage)
    attempt = asyncio.create_task(
        administrators.do_at_once(SIDES[one], SIDES[other], moment), context=stage.machine.life.context
    )
    answers, moments = await asyncio.wait_for(attempt, 60)
    await asyncio.sleep(1)
    found = administrators.found()
    expected = list(serial_outcomes(SIDES[one], SIDES[other]))
    where = f"{one!r}, interrupted by {other!r} at moment {moment}"
    assert {"answers": answers, **found} in expected, f"{where}: {answers} {found}; possible: {expected}"
    await use(stage)
    before = await ends(stage)
    await restart(stage)
    after = Administrators(stage)
    after.ids = administrators.ids
    assert await ends(stage) == before, f"{where}: what was acknowledged is gone after a restart"
    assert after.found() | {"snapshot": None} == found | {"snapshot": None}, f"{where}, after a restart"
    return moments


async def copy_nothing(_store: SimulatedStore, directory: Path) -> None:
    """A simulated store has no file that could be copied."""
    await asyncio.sleep(0.001)
    make_directory(directory)
    write_file(directory / "data.mdb", b"")


def moments_of(one: str, other: str, moment: int) -> int:
    """Try a pair, in a world of its own. Returns how often the one gave way. Raises AssertionError."""
    found: list[int] = []

    async def scene(stage: Stage) -> None:
        found.append(await try_pair(stage, one, other, moment))

    with mock.patch.object(SimulatedStore, "copy_to", copy_nothing):
        on_stage(scene)
    return found[0]

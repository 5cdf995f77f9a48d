"""Kafka Connect and the connectors of its quick start, from Maven Central by poms of ours."""

from __future__ import annotations

from pathlib import Path

from bench.systems.cache import Dependency
from bench.systems.maven import jars_of
from tests.fetch.needed import needed

HERE = Path(__file__).parent
CONNECT = jars_of("kafka-connect", HERE / "runtime" / "pom.xml")
FILE = jars_of("connect-file", HERE / "file" / "pom.xml")
LOGS = HERE / "java"


def plugins(directory: Path, connector: Dependency) -> Path:
    """What Connect calls a plugin path: a new folder that has a folder with the connector's jars."""
    path = directory / "plugins"
    path.mkdir()
    (path / connector.name).symlink_to(needed(connector.find))
    return path

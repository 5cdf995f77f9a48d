"""A worker of Kafka Connect, distributed, with the properties of Kafka's own quick start."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from bench.systems.maven import java
from bench.systems.ports import HOST, HeldPorts
from tests.broker_process import eventually
from tests.ecosystem.connect.installed import CONNECT, LOGS
from tests.fetch.needed import needed
from tests.java.jvm import Jvm

PROGRAM = "org.apache.kafka.connect.cli.ConnectDistributed"
READY_SECONDS = 240.0
CALL_SECONDS = 60.0
LOOK_SECONDS = 0.2
ASK_SECONDS = 2.0  # between two looks for failures, and for the answer
QUICK_START = {
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "true",
    "value.converter.schemas.enable": "true",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "1",
    "config.storage.topic": "connect-configs",
    "config.storage.replication.factor": "1",
    "status.storage.topic": "connect-status",
    "status.storage.replication.factor": "1",
    "offset.flush.interval.ms": "10000",
}
"""The settings of Kafka's config/connect-distributed.properties."""


class Worker:
    """Connect, `jvm`, and what its REST interface takes."""

    def __init__(self, directory: Path, broker: str, plugins: Path) -> None:
        jars = needed(CONNECT.find)
        self._ports = HeldPorts(1)
        self._address = f"http://{HOST}:{self._ports.numbers[0]}"
        properties = directory / "connect-distributed.properties"
        settings = QUICK_START | {
            "bootstrap.servers": broker,
            "exactly.once.source.support": "enabled",
            "listeners": self._address,
            "plugin.path": str(plugins),
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        arguments = [PROGRAM, str(properties)]
        self._asked = 0.0
        self.jvm = Jvm(java(), f"{LOGS}:{jars}/*", arguments, directory / "connect.log")

    def make(self, connector: str, settings: dict[str, str]) -> None:
        """Make a connector, as soon as the worker takes it."""
        eventually(lambda: self._put(f"/connectors/{connector}/config", settings), READY_SECONDS)

    def _put(self, path: str, what: dict[str, str]) -> bool:
        """Whether the worker has taken it: until it is ready, it does not."""
        self.jvm.ensure_it_runs()
        body = json.dumps(what).encode()
        asked = urllib.request.Request(f"{self._address}{path}", body, method="PUT")
        asked.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(asked, timeout=CALL_SECONDS):
                return True
        except urllib.error.HTTPError as error:
            assert error.code != 400, error.read().decode()  # the settings are wrong
        except OSError:  # it does not listen yet
            pass
        time.sleep(LOOK_SECONDS)
        return False

    def ensure_it_works(self, connector: str) -> None:
        """Raise AssertionError if the worker has ended by itself, or the connector or a task has failed."""
        self.jvm.ensure_it_runs()
        if time.monotonic() > self._asked + ASK_SECONDS:
            self._asked = time.monotonic()
            failed = [each for each in self._states(connector) if each["state"] == "FAILED"]
            assert not failed, f"{failed[0]['trace']}\n{self.jvm.end_of_log}"

    def _states(self, connector: str) -> list[Any]:
        """Of the connector and its tasks; none while the worker does not say."""
        path = f"{self._address}/connectors/{connector}/status"
        try:
            with urllib.request.urlopen(path, timeout=ASK_SECONDS) as answer:
                said = json.load(answer)
        except OSError:
            return []
        return [said["connector"], *said["tasks"]]

    def __enter__(self) -> Worker:
        self.jvm.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.jvm.kill()
        self._ports.release()

"""A registry in a process of its own, and what its REST interface takes and tells."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.systems.maven import java
from bench.systems.ports import HOST, HeldPorts
from tests.broker_process import eventually
from tests.ecosystem.apicurio.installed import APICURIO, RUNNER
from tests.fetch.needed import needed
from tests.java.jvm import Jvm

READY_SECONDS = 240.0
CALL_SECONDS = 60.0
LOOK_SECONDS = 0.2
ARTIFACTS = "/groups/default/artifacts"


class Registry:
    """Apicurio with its storage in Kafka. All else it has is in memory, and gone with its process."""

    def __init__(self, directory: Path, broker: str) -> None:
        (runner,) = needed(APICURIO.find).glob(RUNNER)
        self._ports = HeldPorts(1)
        port = self._ports.numbers[0]
        self._address = f"http://{HOST}:{port}/apis/registry/v3"
        settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": str(port),
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": broker,
        }
        arguments = [*(f"-D{name}={value}" for name, value in settings.items()), "-jar", str(runner)]
        self.jvm = Jvm(java(), str(runner), arguments, directory / "apicurio.log")

    def add(self, name: str, schema: str) -> None:
        """Register a schema. Raises HTTPError if it is refused."""
        content = {"content": schema, "contentType": "application/json"}
        artifact = {"artifactId": name, "artifactType": "JSON", "firstVersion": {"content": content}}
        self._ask(ARTIFACTS, json.dumps(artifact).encode())

    def names(self, most: int) -> set[str]:
        """The names of all schemas, of which there are no more than `most`."""
        found = json.loads(self._ask(f"{ARTIFACTS}?limit={most + 1}"))
        return {artifact["artifactId"] for artifact in found["artifacts"]}

    def schema(self, name: str) -> str:
        """The schema of this name."""
        return self._ask(f"{ARTIFACTS}/{name}/versions/1/content").decode()

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"{self._address}{path}", body)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:
            told: Any = answer.read()
            return bytes(told)

    def start(self) -> None:
        """Start it, and return when it answers."""
        self.jvm.start()
        eventually(self._answers, READY_SECONDS)

    def restart(self) -> None:
        """kill -9, and start it again."""
        self.jvm.kill()
        self.start()

    def _answers(self) -> bool:
        self.jvm.ensure_it_runs()
        try:
            self._ask("/system/info")
        except OSError:  # it does not listen, or is not ready yet
            time.sleep(LOOK_SECONDS)
            return False
        return True

    def __enter__(self) -> Registry:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.jvm.kill()
        self._ports.release()

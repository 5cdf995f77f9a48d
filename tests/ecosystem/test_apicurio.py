"""Apicurio Registry keeps schemas in a topic, from which it restores all of them after each kill."""

from __future__ import annotations

from pathlib import Path

from tests.broker_process import BrokerProcess, eventually
from tests.ecosystem.apicurio.registry import Registry
from tests.finding import a_finding_if_not

SCHEMAS = 30
RESTORED_SECONDS = 240.0


def test_schemas_survive_the_registry_and_the_broker(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker, Registry(tmp_path, broker.address) as registry:
        schemas: dict[str, str] = {}
        for disturb in (registry.restart, broker.restart, registry.restart):
            add(registry, schemas)
            disturb()
            with a_finding_if_not():  # it answers while it is still reading the topic
                eventually(lambda: registry.names(len(schemas)) == schemas.keys(), RESTORED_SECONDS)
                assert {name: registry.schema(name) for name in schemas} == schemas
        broker.ensure_no_traceback()


def add(registry: Registry, schemas: dict[str, str]) -> None:
    """Register some more."""
    for number in range(len(schemas), len(schemas) + SCHEMAS):
        name = f"schema-{number}"
        schemas[name] = f'{{"type":"object","title":"{name}"}}'
        registry.add(name, schemas[name])

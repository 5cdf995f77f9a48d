"""Settings of the broker that are changed while it runs, as Kafka's dynamic broker configs (KIP-226).

They are kept in the cluster store, so they outlast restarts, and are stronger than the command line, as in Kafka. A
resource is one broker by its number, or all of them: `broker-settings/1`, `broker-settings/default`, each with JSON
{setting: text}. What is set for one broker is stronger than what is set for all.

`Settings` is frozen, and read wherever a setting is needed. Here alone the broker's own copy of it is written.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from faircopy.cluster.store import ABSENT, ClusterStore
from faircopy.settings.table import FIELDS, BadSetting, Settings, parse

log = logging.getLogger(__name__)

PREFIX = "broker-settings/"
DEFAULT = "default"
CHANGEABLE = frozenset(
    {
        "auto.create.topics",
        "checkpoint.bytes",
        "connections.idle.ms",
        "connections.max",
        "max.connections.per.ip",
        "fetch.max.bytes",
        "plain.enabled",
        "plain.interval.ms",
        "plain.max.bytes",
        "request.max.bytes",
        "requests.in.flight.max.bytes",
        "topic.max.message.bytes",
        "topic.partitions",
        "topic.retention.bytes",
        "topic.retention.ms",
        "topic.segment.bytes",
    }
)
"""Those that are read each time they are needed. All others are given to a part when it is made."""


class UnchangeableSetting(BadSetting):
    """The setting takes effect only when the broker starts."""


class DynamicSettings:
    """The changed settings of this broker, on top of those that it was started with.

    `on_change` is called after each change, for those that keep what they derived from settings.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.on_change: Callable[[], None] = lambda: None
        self._started_with = replace(settings)
        self._most: dict[str, int] = {}
        self._store: ClusterStore | None = None

    def fix(self, values: Mapping[str, int]) -> None:
        """Settings that the data directory decides."""
        for name, value in values.items():
            object.__setattr__(self.settings, FIELDS[name].name, value)

    def limit(self, name: str, most: int) -> None:
        """Whatever is set, this setting is at most so much from now on."""
        self._most[name] = most
        self._apply()

    def load(self, store: ClusterStore) -> None:
        """Apply what the store holds. What is no setting any more, or not a legal one, is left out."""
        self._store = store
        self._apply()

    def of(self, resource: str) -> dict[str, str]:
        """What was set for a resource: a broker's number, or `DEFAULT` for all."""
        found = self._store.get(PREFIX + resource) if self._store is not None else None
        return dict(json.loads(found.value)) if found is not None else {}

    async def replace(self, resource: str, values: Mapping[str, str], *, validate_only: bool = False) -> None:
        """Set these for a resource, durably, and nothing else. Raises UnchangeableSetting, BadSetting, Conflict."""
        for name, text in values.items():
            if name in FIELDS and name not in CHANGEABLE:
                raise UnchangeableSetting(
                    f"setting {name} is read when the broker starts: restart it with --set {name}={text[:100]}"
                )
            parse(name, text, "set while the broker runs")
        if validate_only or self._store is None:
            return
        key = PREFIX + resource
        found = self._store.get(key)
        value = json.dumps(dict(values), sort_keys=True).encode() if values else None
        await self._store.transact({key: found.version if found is not None else ABSENT}, {key: value})
        self._apply()

    def _apply(self) -> None:
        values = self.of(DEFAULT) | self.of(str(self._started_with.node_id))
        for name in CHANGEABLE:
            field = FIELDS[name].name
            value = getattr(self._started_with, field)
            if name in values:
                try:
                    value = parse(name, values[name], "set while a broker ran")
                except BadSetting as error:
                    log.error("%s. It is as it was at the start", error)
            object.__setattr__(self.settings, field, min(value, self._most[name]) if name in self._most else value)
        self.on_change()

"""Broker settings that can be changed while it runs, like Kafka's dynamic broker configs (KIP-226).

They are in the catalogue, so they survive restarts, and override the command line, as in Kafka. A
resource is one broker by its number, or all brokers: `broker-settings/1`, `broker-settings/default`, each
with JSON {setting: text}. A setting for one broker overrides the same one for all.

Settings of Kafka's that have no effect here are kept, and shown (`settings/kafka_names.py`).

`Settings` is frozen, and read wherever a setting is needed. Only this module writes to the broker's own copy.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from faircopy.settings.kafka_names import WITHOUT_EFFECT, check_without_effect
from faircopy.settings.table import FIELDS, BadSetting, Settings, parse
from faircopy.storage.versioned_map import ABSENT, Conflict, Versioned, VersionedMap

log = logging.getLogger(__name__)

PREFIX = "broker-settings/"
DEFAULT = "default"
Decide = Callable[[Mapping[str, str]], Mapping[str, str | None]]
"""Makes the new settings of a resource from those that it has of its own; it may raise FaircopyError."""
CHANGEABLE = frozenset(
    {
        "auto.create.topics",
        "checkpoint.bytes",
        "connections.idle.ms",
        "connections.max",
        "max.connections.per.ip",
        "fetch.max.bytes",
        "plain.enabled",
        "plain.grace.ms",
        "plain.interval.ms",
        "plain.max.bytes",
        "plain.retention.ms",
        "plain.unpublished.max.bytes",
        "request.max.bytes",
        "requests.in.flight.max.bytes",
        "topic.max.message.bytes",
        "topic.partitions",
        "topic.retention.bytes",
        "topic.retention.ms",
        "topic.segment.bytes",
    }
)
"""The settings that are read each time they are needed. All others are read only when the broker starts."""


class UnchangeableSetting(BadSetting):
    """The setting takes effect only at the start of the broker."""


class DynamicSettings:
    """The changed settings of this broker, on top of those that it started with.

    `on_change` is called after each change, for parts that keep values derived from settings.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.on_change: Callable[[], None] = lambda: None
        self._started_with = replace(settings)
        self._most: dict[str, int] = {}
        self._store: VersionedMap | None = None

    def fix(self, values: Mapping[str, int]) -> None:
        """Fix settings that the data directory determines."""
        for name, value in values.items():
            object.__setattr__(self.settings, FIELDS[name].name, value)

    def limit(self, name: str, most: int) -> None:
        """Cap this setting at `most` from now on, whatever is set."""
        self._most[name] = most
        self._apply()

    def load(self, store: VersionedMap) -> None:
        """Apply what the store holds. Unknown settings and illegal values are skipped."""
        self._store = store
        self._apply()

    def of(self, resource: str) -> dict[str, str]:
        """The settings of a resource: a broker's number, or `DEFAULT` for all."""
        return settings_in(self._store.get(PREFIX + resource)) if self._store is not None else {}

    async def change(self, resource: str, decide: Decide, *, validate_only: bool = False) -> None:
        """Change the settings of a resource to what `decide` makes of them, durably. It is asked again if
        they change meanwhile. Raises UnchangeableSetting, BadSetting, and what `decide` raises.
        """
        while True:
            found = self._store.get(PREFIX + resource) if self._store is not None else None
            decided = decide(settings_in(found))
            values = {name: text.strip() for name, text in decided.items() if text is not None}
            ensure_changeable(values)
            if validate_only or self._store is None:
                return
            with contextlib.suppress(Conflict):
                await self._store.transact(
                    {PREFIX + resource: found.version if found is not None else ABSENT},
                    {PREFIX + resource: json.dumps(values, sort_keys=True).encode() if values else None},
                )
                break
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
            object.__setattr__(
                self.settings, field, min(value, self._most[name]) if name in self._most else value
            )
        self.on_change()


def settings_in(found: Versioned | None) -> dict[str, str]:
    """The settings in a record of the store; none if there is no record."""
    return dict(json.loads(found.value)) if found is not None else {}


def ensure_changeable(values: Mapping[str, str]) -> None:
    """Raise UnchangeableSetting, or BadSetting, unless a running broker can be given these settings."""
    for name, text in values.items():
        if name in WITHOUT_EFFECT:
            check_without_effect(name, text)
            continue
        if name in FIELDS and name not in CHANGEABLE:
            raise UnchangeableSetting(
                f"setting {name} is read when the broker starts: restart it with --set {name}={text[:100]}"
            )
        parse(name, text, "set while the broker runs")

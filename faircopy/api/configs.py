"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs: of topics, and of the broker."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

from faircopy.api.context import Body, Context, Message, message_of
from faircopy.api.topics import RefusedTopic, code_of
from faircopy.cluster.dynamic_settings import CHANGEABLE, DEFAULT, DynamicSettings, UnchangeableSetting
from faircopy.cluster.topic_configs import CONFIGS, Kind, check_configs, elements
from faircopy.errors import FaircopyError
from faircopy.hosting.catalog import Catalog, HostedTopic, broker_default
from faircopy.settings.table import BadSetting, Settings
from faircopy.wire.error_codes import ErrorCode

TOPIC, BROKER = 2, 4
SOURCE_TOPIC, SOURCE_DYNAMIC_BROKER, SOURCE_DYNAMIC_DEFAULT, SOURCE_STATIC_BROKER, SOURCE_DEFAULT = range(1, 6)
SET, DELETE, APPEND, SUBTRACT = range(4)
KINDS = {"bool": Kind.BOOLEAN, "str": Kind.STRING, "int": Kind.LONG}


class ConfigHandlers:
    """Settings of topics and of the broker."""

    def __init__(self, catalog: Catalog, dynamic: DynamicSettings) -> None:
        self._catalog = catalog
        self._dynamic = dynamic

    @property
    def _settings(self) -> Settings:
        return self._dynamic.settings

    # -- describing ----------------------------------------------------------------------------------------------

    async def describe_configs(self, request: Message, context: Context) -> Body:
        """DescribeConfigs. A resource that is asked for twice is described once."""
        different = {(resource.resource_type, resource.resource_name): resource for resource in request.resources}
        resources = context.pace.over(different.values())
        return {"results": [self._describe(resource) async for resource in resources]}

    def _describe(self, resource: Message) -> Body:
        answer = {
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
            "configs": [],
        }
        try:
            rows = self._rows(resource)
        except FaircopyError as error:
            return answer | {"error_code": code_of(error), "error_message": message_of(error)}
        wanted = resource.configuration_keys
        rows = [row for row in rows if wanted is None or row["name"] in wanted]
        return answer | {"error_code": ErrorCode.NONE, "configs": rows}

    def _rows(self, resource: Message) -> list[Body]:
        if resource.resource_type == TOPIC:
            return self._topic_rows(self._catalog.known(resource.resource_name))
        name = self._broker(resource)
        return self._broker_rows() if name != DEFAULT else self._default_rows()

    def _broker(self, resource: Message) -> str:
        """The resource of the dynamic settings: this broker, or all of them, whose name is empty."""
        name: str = resource.resource_name
        if resource.resource_type != BROKER or name not in ("", str(self._settings.node_id)):
            raise RefusedTopic(
                ErrorCode.INVALID_REQUEST,
                f"no settings for resource type {resource.resource_type} named {name!r}: there are those of topics "
                f"(type {TOPIC}) and of broker {self._settings.node_id} (type {BROKER})",
            )
        return name or DEFAULT

    def _topic_rows(self, hosted: HostedTopic) -> list[Body]:
        return [
            {
                "name": name,
                "value": hosted.config(name),
                "read_only": False,
                "config_source": self._source(hosted, name),
                "is_sensitive": False,
                "synonyms": [],
                "config_type": config.kind,
                "documentation": config.about,
            }
            for name, config in CONFIGS.items()
        ]

    def _source(self, hosted: HostedTopic, name: str) -> int:
        if name in hosted.topic.configs:
            return SOURCE_TOPIC
        default = broker_default(self._settings, name)
        return SOURCE_DEFAULT if default in (None, CONFIGS[name].default) else SOURCE_STATIC_BROKER

    def _broker_rows(self) -> list[Body]:
        mine, all_brokers = self._dynamic.of(str(self._settings.node_id)), self._dynamic.of(DEFAULT)
        rows = []
        for field in dataclasses.fields(self._settings):
            value, name = getattr(self._settings, field.name), field.name.replace("_", ".")
            source = SOURCE_DEFAULT if value == field.default else SOURCE_STATIC_BROKER
            source = SOURCE_DYNAMIC_DEFAULT if name in all_brokers else source
            source = SOURCE_DYNAMIC_BROKER if name in mine else source
            rows.append(broker_row(field, str(value), source))
        return rows

    def _default_rows(self) -> list[Body]:
        """What was set for all brokers, and nothing else, as Kafka answers."""
        values = self._dynamic.of(DEFAULT)
        fields = {field.name.replace("_", "."): field for field in dataclasses.fields(self._settings)}
        return [broker_row(fields[name], value, SOURCE_DYNAMIC_DEFAULT) for name, value in values.items()]

    # -- altering ------------------------------------------------------------------------------------------------

    async def alter_configs(self, request: Message, context: Context) -> Body:
        """AlterConfigs: the given settings replace all that the resource had."""
        answers = []
        async for resource in context.pace.through(request.resources):
            configs = {config.name: config.value for config in resource.configs}
            answers.append(await self._replace(resource, configs, request.validate_only))
        return {"responses": answers}

    async def incremental_alter_configs(self, request: Message, context: Context) -> Body:
        """IncrementalAlterConfigs (KIP-339)."""
        answers = []
        async for resource in context.pace.through(request.resources):
            try:
                configs = changed(resource.configs, self._present(resource))
            except FaircopyError as error:
                answers.append(outcome(resource, error))
                continue
            answers.append(await self._replace(resource, configs, request.validate_only))
        return {"responses": answers}

    def _present(self, resource: Message) -> dict[str, str]:
        """What the resource has of its own."""
        if resource.resource_type == TOPIC:
            return self._catalog.known(resource.resource_name).topic.configs
        return self._dynamic.of(self._broker(resource))

    async def _replace(self, resource: Message, configs: Mapping[str, str | None], validate_only: bool) -> Body:
        try:
            values = {name: value for name, value in configs.items() if value is not None}
            if resource.resource_type != TOPIC:
                await self._dynamic.replace(self._broker(resource), values, validate_only=validate_only)
                return outcome(resource, None)
            self._catalog.known(resource.resource_name)
            check_configs(configs)
            if not validate_only:
                await self._catalog.configure(resource.resource_name, values)
        except UnchangeableSetting as error:
            return outcome(resource, RefusedTopic(ErrorCode.INVALID_REQUEST, str(error)))
        except BadSetting as error:
            return outcome(resource, RefusedTopic(ErrorCode.INVALID_CONFIG, str(error)))
        except FaircopyError as error:
            return outcome(resource, error)
        return outcome(resource, None)


def broker_row(field: dataclasses.Field[object], value: str, source: int) -> Body:
    """A setting of the broker, as DescribeConfigs shows it."""
    name = field.name.replace("_", ".")
    return {
        "name": name,
        "value": value,
        "read_only": name not in CHANGEABLE,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": [],
        "config_type": KINDS[str(field.type)],
        "documentation": field.metadata["about"],
    }


def changed(changes: list[Message], present: Mapping[str, str]) -> dict[str, str]:
    """What a resource has of its own after the changes. Raises RefusedTopic."""
    configs = dict(present)
    times = Counter(change.name for change in changes)
    for change in changes:
        name, operation = change.name, change.config_operation
        if times[name] > 1:
            raise RefusedTopic(ErrorCode.INVALID_REQUEST, f"setting {name!r} is changed twice in one request")
        if operation == DELETE:
            configs.pop(name, None)
        elif operation not in (SET, APPEND, SUBTRACT) or change.value is None:
            raise RefusedTopic(ErrorCode.INVALID_REQUEST, f"setting {name!r}: operation {operation} without a value")
        elif operation == SET:
            configs[name] = change.value
        else:
            configs[name] = changed_list(name, configs.get(name), change.value, is_more=operation == APPEND)
    return configs


def changed_list(name: str, present: str | None, change: str, *, is_more: bool) -> str:
    """A list with the elements of `change`, each once, or without them. Raises RefusedTopic."""
    config = CONFIGS.get(name)
    if config is None or config.kind is not Kind.LIST:
        verb = "APPEND to" if is_more else "SUBTRACT from"
        raise RefusedTopic(ErrorCode.INVALID_CONFIG, f"can't {verb} setting {name!r}, which is no list: SET it")
    parts = elements(config.default if present is None else present)
    parts = [*parts, *elements(change)] if is_more else [part for part in parts if part not in elements(change)]
    return ",".join(dict.fromkeys(parts))


def outcome(resource: Message, error: FaircopyError | None) -> Body:
    """The answer for one resource of an alteration."""
    return {
        "error_code": code_of(error) if error is not None else ErrorCode.NONE,
        "error_message": message_of(error) if error is not None else None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }

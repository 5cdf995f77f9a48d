"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs."""

from __future__ import annotations

import dataclasses

from faircopy.broker.catalog import Catalog, HostedTopic, broker_default
from faircopy.broker.handlers.context import Body, Context, Message, message_of
from faircopy.broker.handlers.topics import RefusedTopic, code_of
from faircopy.broker.settings import Settings
from faircopy.cluster.topic_configs import CONFIGS, check_configs
from faircopy.errors import FaircopyError
from faircopy.wire.error_codes import ErrorCode

TOPIC, BROKER = 2, 4
SOURCE_TOPIC, SOURCE_STATIC_BROKER, SOURCE_DEFAULT = 1, 4, 5
SET, DELETE, APPEND, SUBTRACT = range(4)
KINDS = {"bool": 1, "str": 2, "int": 5}


class ConfigHandlers:
    """Settings of topics, and those of the broker for reading."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings

    async def describe_configs(self, request: Message, context: Context) -> Body:
        """DescribeConfigs."""
        return {"results": [self._describe(resource) for resource in request.resources]}

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
        if resource.resource_type == BROKER and resource.resource_name in ("", str(self._settings.node_id)):
            return self._broker_rows()
        raise RefusedTopic(
            ErrorCode.INVALID_REQUEST,
            f"no settings for resource type {resource.resource_type} named {resource.resource_name!r}",
        )

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
        return [
            {
                "name": field.name.replace("_", "."),
                "value": str(getattr(self._settings, field.name)),
                "read_only": True,
                "config_source": SOURCE_STATIC_BROKER,
                "is_sensitive": False,
                "synonyms": [],
                "config_type": KINDS[str(field.type)],
                "documentation": field.metadata["about"],
            }
            for field in dataclasses.fields(self._settings)
        ]

    async def alter_configs(self, request: Message, context: Context) -> Body:
        """AlterConfigs: the given settings replace all that the topic had."""
        answers = []
        for resource in request.resources:
            configs = {config.name: config.value for config in resource.configs}
            answers.append(await self._replace(resource, configs, request.validate_only))
        return {"responses": answers}

    async def incremental_alter_configs(self, request: Message, context: Context) -> Body:
        """IncrementalAlterConfigs (KIP-339)."""
        answers = []
        for resource in request.resources:
            try:
                configs = self._changed(resource)
            except FaircopyError as error:
                answers.append(outcome(resource, error))
                continue
            answers.append(await self._replace(resource, configs, request.validate_only))
        return {"responses": answers}

    def _changed(self, resource: Message) -> dict[str, str | None]:
        self._ensure_topic(resource)
        configs: dict[str, str | None] = dict(self._catalog.known(resource.resource_name).topic.configs)
        for change in resource.configs:
            if change.config_operation == SET:
                configs[change.name] = change.value
            elif change.config_operation == DELETE:
                configs.pop(change.name, None)
            elif change.config_operation in (APPEND, SUBTRACT):
                # The only list is cleanup.policy, of which faircopy has one value: appending it changes nothing.
                configs[change.name] = change.value if change.config_operation == APPEND else None
            else:
                raise RefusedTopic(ErrorCode.INVALID_REQUEST, f"unknown operation {change.config_operation}")
        return configs

    async def _replace(self, resource: Message, configs: dict[str, str | None], validate_only: bool) -> Body:
        try:
            self._ensure_topic(resource)
            self._catalog.known(resource.resource_name)
            check_configs(configs)
            if not validate_only:
                await self._catalog.configure(
                    resource.resource_name, {k: v for k, v in configs.items() if v is not None}
                )
        except FaircopyError as error:
            return outcome(resource, error)
        return outcome(resource, None)

    def _ensure_topic(self, resource: Message) -> None:
        if resource.resource_type != TOPIC:
            raise RefusedTopic(
                ErrorCode.INVALID_REQUEST,
                "only settings of topics can be changed while the broker runs; restart it with --set for its own",
            )


def outcome(resource: Message, error: FaircopyError | None) -> Body:
    """The answer for one resource of an alteration."""
    return {
        "error_code": code_of(error) if error is not None else ErrorCode.NONE,
        "error_message": message_of(error) if error is not None else None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }

"""IncrementalAlterConfigs: changes settings one by one (KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faircopy.catalogue.topic_configs import CONFIGS, ConfigType, elements
from faircopy.serving.codes import Refused
from faircopy.serving.config_resources import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    ConfigChange,
    alter_each,
    ensure_each_once,
)
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 44 IncrementalAlterConfigs 0-1 flexible 1+
  request
    resources                 []
        resource_type         int8
        resource_name         string
        configs               []
            name              string
            config_operation  int8
            value             string?
    validate_only             bool              = false
  response
    throttle_time_ms          int32             = 0
    responses                 []
        error_code            int16
        error_message         string?           = null
        resource_type         int8
        resource_name         string
""")


async def incremental_alter_configs(request: Message, context: Context) -> Body:
    """IncrementalAlterConfigs."""
    return await alter_each(request, context, change_of, changed)


def change_of(config: Message) -> ConfigChange:
    """One change of the request."""
    return ConfigChange(config.name, config.value, config.config_operation)


def changed(changes: Sequence[ConfigChange], before: Mapping[str, str]) -> dict[str, str]:
    """The settings that a resource has of its own after the changes. Raises Refused."""
    configs = dict(before)
    ensure_each_once(changes)
    for change in changes:
        name, operation = change.name, change.operation
        if operation == DELETE:
            configs.pop(name, None)
        elif operation not in (SET, APPEND, SUBTRACT) or change.value is None:
            raise Refused(
                ErrorCode.INVALID_REQUEST, f"setting {name!r}: operation {operation} without a value"
            )
        elif operation == SET:
            configs[name] = change.value
        else:
            configs[name] = changed_list(name, configs.get(name), change.value, is_more=operation == APPEND)
    return configs


def changed_list(name: str, present: str | None, change: str, *, is_more: bool) -> str:
    """The list with the elements of `change` added, each once, or removed. Raises Refused."""
    config = CONFIGS.get(name)
    if config is None or config.type is not ConfigType.LIST:
        verb = "APPEND to" if is_more else "SUBTRACT from"
        raise Refused(ErrorCode.INVALID_CONFIG, f"can't {verb} setting {name!r}, which is not a list: SET it")
    parts = elements(config.default if present is None else present)
    parts = (
        [*parts, *elements(change)] if is_more else [part for part in parts if part not in elements(change)]
    )
    return ",".join(dict.fromkeys(parts))


ROUTE = Route(SCHEMA, incremental_alter_configs)

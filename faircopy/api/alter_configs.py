"""AlterConfigs: the given settings replace all settings of the resource (KIP-133)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faircopy.serving.config_resources import ConfigChange, alter_each, ensure_each_once
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 33 AlterConfigs 0-2 flexible 2+
  request
    resources          []
        resource_type  int8
        resource_name  string
        configs        []
            name       string
            value      string?
    validate_only      bool              = false
  response
    throttle_time_ms   int32             = 0
    responses          []
        error_code     int16
        error_message  string?           = null
        resource_type  int8
        resource_name  string
""")


async def alter_configs(request: Message, context: Context) -> Body:
    """AlterConfigs."""
    return await alter_each(request, context, change_of, as_given)


def change_of(config: Message) -> ConfigChange:
    """One setting of the request."""
    return ConfigChange(config.name, config.value)


def as_given(changes: Sequence[ConfigChange], _present: Mapping[str, str]) -> Mapping[str, str | None]:
    """The settings of the request, whatever there was before. Raises Refused."""
    ensure_each_once(changes)
    return {change.name: change.value for change in changes}


ROUTE = Route(SCHEMA, alter_configs)

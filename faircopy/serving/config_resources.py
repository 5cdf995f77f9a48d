"""The resources whose settings are changed or described: a topic, this broker, or all brokers."""

from __future__ import annotations

from collections.abc import Mapping

from faircopy.cluster.dynamic_settings import DEFAULT, UnchangeableSetting
from faircopy.cluster.topic_configs import check_configs
from faircopy.errors import FaircopyError
from faircopy.serving.codes import Refused, code_of, message_of
from faircopy.serving.parts import Parts
from faircopy.serving.route import Body, Message
from faircopy.settings.table import BadSetting, Settings
from faircopy.wire.error_codes import ErrorCode

TOPIC, BROKER = 2, 4


def broker_resource(settings: Settings, resource: Message) -> str:
    """The resource of dynamic settings: this broker, or all brokers if the name is empty. Raises Refused."""
    name: str = resource.resource_name
    if resource.resource_type != BROKER or name not in ("", str(settings.node_id)):
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"no settings for resource type {resource.resource_type} named {name!r}: there are those of "
            f"topics (type {TOPIC}) and of broker {settings.node_id} (type {BROKER})",
        )
    return name or DEFAULT


def present(parts: Parts, resource: Message) -> Mapping[str, str]:
    """The settings that a resource has of its own. Raises Refused, UnknownTopic."""
    if resource.resource_type == TOPIC:
        return parts.catalog.known(resource.resource_name).topic.configs
    return parts.dynamic_settings.of(broker_resource(parts.settings, resource))


async def replace(
    parts: Parts, resource: Message, configs: Mapping[str, str | None], *, validate_only: bool
) -> Body:
    """Replace all settings of a resource. Returns its part of the response."""
    values = {name: value for name, value in configs.items() if value is not None}
    try:
        if resource.resource_type == TOPIC:
            await replace_of_topic(
                parts, resource.resource_name, configs, values, validate_only=validate_only
            )
        else:
            name = broker_resource(parts.settings, resource)
            await parts.dynamic_settings.replace(name, values, validate_only=validate_only)
    except UnchangeableSetting as error:
        return outcome(resource, Refused(ErrorCode.INVALID_REQUEST, str(error)))
    except BadSetting as error:
        return outcome(resource, Refused(ErrorCode.INVALID_CONFIG, str(error)))
    except FaircopyError as error:
        return outcome(resource, error)
    return outcome(resource, None)


async def replace_of_topic(
    parts: Parts,
    topic: str,
    configs: Mapping[str, str | None],
    values: Mapping[str, str],
    *,
    validate_only: bool,
) -> None:
    """Replace all settings of a topic. Raises UnknownTopic, InvalidTopicConfig."""
    parts.catalog.known(topic)
    check_configs(configs)
    parts.catalog.ensure_columns(topic, values)
    if not validate_only:
        await parts.catalog.configure(topic, values)


def outcome(resource: Message, error: FaircopyError | None) -> Body:
    """The answer for one altered resource."""
    return {
        "error_code": code_of(error) if error is not None else ErrorCode.NONE,
        "error_message": message_of(error) if error is not None else None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }

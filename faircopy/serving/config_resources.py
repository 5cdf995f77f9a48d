"""The resources whose settings are changed or described: a topic, this broker, or all brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from faircopy.catalogue.dynamic_settings import DEFAULT, Decide, UnchangeableSetting
from faircopy.errors import FaircopyError
from faircopy.serving.codes import Refused, code_of, message_of
from faircopy.serving.parts import Parts
from faircopy.serving.repeated import Named
from faircopy.serving.route import Body, Context, Message
from faircopy.settings.kafka_names import OURS
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


SET, DELETE, APPEND, SUBTRACT = range(4)


class ConfigChange(NamedTuple):
    """What a request does to one setting, which has the name that we have for it."""

    name: str
    value: str | None
    operation: int = SET


ChangeOf = Callable[[Message], ConfigChange]
DecideByRequest = Callable[[Sequence[ConfigChange], Mapping[str, str]], Mapping[str, str | None]]
"""Makes the new settings of a resource from those of the request and those that it has of its own; it may
raise FaircopyError.
"""


async def alter_each(
    request: Message, context: Context, change_of: ChangeOf, decide: DecideByRequest
) -> Body:
    """Change the settings of each resource that the request names. Returns the response."""
    different = {key_of(resource): resource for resource in request.resources}
    named = Named(map(key_of, request.resources))
    answers = []
    async for resource in context.pace.through(different.values()):
        changes = [change_of(config) for config in resource.configs]
        if resource.resource_type == BROKER:
            changes = [change._replace(name=OURS.get(change.name, change.name)) for change in changes]
        decided = partial(decide, changes)
        answers.append(await alter(context.parts, resource, named, decided, request.validate_only))
    return {"responses": answers}


def key_of(resource: Message) -> tuple[int, str]:
    """The same for the same resource."""
    return resource.resource_type, resource.resource_name


def ensure_each_once(changes: Sequence[ConfigChange]) -> None:
    """Raise Refused if a setting is named more than once."""
    named = Named(change.name for change in changes)
    for change in changes:
        named.ensure_once(change.name, f"setting {change.name!r}")


async def alter(parts: Parts, resource: Message, named: Named, decide: Decide, validate_only: bool) -> Body:
    """Change the settings of a resource. Returns its part of the response."""
    try:
        named.ensure_once(key_of(resource), f"resource {resource.resource_name!r}")
        if resource.resource_type == TOPIC:
            await parts.catalog.configure(resource.resource_name, decide, validate_only=validate_only)
        else:
            name = broker_resource(parts.settings, resource)
            await parts.dynamic_settings.change(name, decide, validate_only=validate_only)
    except UnchangeableSetting as error:
        return outcome(resource, Refused(ErrorCode.INVALID_REQUEST, str(error)))
    except BadSetting as error:
        return outcome(resource, Refused(ErrorCode.INVALID_CONFIG, str(error)))
    except FaircopyError as error:
        return outcome(resource, error)
    return outcome(resource, None)


def outcome(resource: Message, error: FaircopyError | None) -> Body:
    """The answer for one altered resource."""
    return {
        "error_code": code_of(error) if error is not None else ErrorCode.NONE,
        "error_message": message_of(error) if error is not None else None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }

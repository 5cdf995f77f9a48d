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
    """Change the settings of each resource that the request names; those of all topics by one write. Returns
    the response.
    """
    parts, pace, validate_only = context.parts, context.pace, request.validate_only
    resources = {key_of(resource): resource for resource in request.resources}
    names = Named(map(key_of, request.resources))
    refused = names.repeated(lambda key: f"resource {key[1]!r}")
    decisions = {
        key: partial(by_request, resource, change_of, decide)
        for key, resource in resources.items()
        if key not in refused
    }
    topics = {name: decision for (kind, name), decision in decisions.items() if kind == TOPIC}
    if topics:
        changes = await parts.administration.configure(topics, pace, validate_only=validate_only)
        refused |= {(TOPIC, str(name)): error for name, error in changes.refused.items()}
    async for key in pace.through([key for key in decisions if key[0] != TOPIC]):
        error = await alter_broker(parts, resources[key], decisions[key], validate_only)
        if error is not None:
            refused[key] = error
    return {"responses": [outcome(resource, refused.get(key)) for key, resource in resources.items()]}


def by_request(
    resource: Message, change_of: ChangeOf, decide: DecideByRequest, present: Mapping[str, str]
) -> Mapping[str, str | None]:
    """The new settings of a resource. Raises what `decide` raises."""
    changes = [change_of(config) for config in resource.configs]
    if resource.resource_type == BROKER:
        changes = [change._replace(name=OURS.get(change.name, change.name)) for change in changes]
    return decide(changes, present)


def key_of(resource: Message) -> tuple[int, str]:
    """The same for the same resource."""
    return resource.resource_type, resource.resource_name


def ensure_each_once(changes: Sequence[ConfigChange]) -> None:
    """Raise Refused if a setting is named more than once."""
    named = Named(change.name for change in changes)
    for change in changes:
        named.ensure_once(change.name, f"setting {change.name!r}")


async def alter_broker(
    parts: Parts, resource: Message, decide: Decide, validate_only: bool
) -> FaircopyError | None:
    """Change the settings of this broker, or of all. Returns why not, if they can't be changed."""
    try:
        name = broker_resource(parts.settings, resource)
        await parts.dynamic_settings.change(name, decide, validate_only=validate_only)
    except UnchangeableSetting as error:
        return Refused(ErrorCode.INVALID_REQUEST, str(error))
    except BadSetting as error:
        return Refused(ErrorCode.INVALID_CONFIG, str(error))
    except FaircopyError as error:
        return error
    return None


def outcome(resource: Message, error: FaircopyError | None) -> Body:
    """The answer for one altered resource."""
    return {
        "error_code": code_of(error) if error is not None else ErrorCode.NONE,
        "error_message": message_of(error) if error is not None else None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }

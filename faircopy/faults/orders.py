"""faircopy's own API Faults: what goes wrong on request, as JSON. Only a broker for tests has it.

It is not advertised, since it is not part of Kafka's protocol.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from faircopy.api.routes import ROUTES
from faircopy.errors import FaircopyError
from faircopy.faults.fault import BadFault, parse_fault
from faircopy.faults.parts import FaultyParts
from faircopy.faults.producers import expire, fence, with_open_transactions
from faircopy.hosting.topic_changes import NewTopic
from faircopy.serving.codes import code_of
from faircopy.serving.route import Body, Context, Message, Route
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.schema import Schema

SCHEMA = Schema("""
api 20100 Faults 0
  request
    order       string
    document    string
  response
    error_code  int16
    document    string
""")
SCHEMAS = {api_key: route.schema for api_key, route in ROUTES.items()}


async def faults(request: Message, context: Context) -> Body:
    """Faults. Carries out an order, and returns the document that answers it, or says why not."""
    order = ORDERS.get(request.order)
    try:
        if order is None:
            raise BadFault(f"there is no order {request.order!r}: give one of {', '.join(ORDERS)}")
        given = json.loads(request.document)
        document = await order(cast(FaultyParts, context.parts), context, **given)
    except FaircopyError as error:
        return {"error_code": code_of(error) or ErrorCode.UNKNOWN_SERVER_ERROR, "document": str(error)}
    except (TypeError, ValueError) as error:
        return {"error_code": ErrorCode.INVALID_REQUEST, "document": f"order {request.order!r}: {error}"}
    return {"error_code": ErrorCode.NONE, "document": json.dumps(document)}


async def install(parts: FaultyParts, context: Context, **fault: Any) -> None:
    """Plan one more fault: see `parse_fault`."""
    parts.fault_plan.add(parse_fault(fault, SCHEMAS))


async def clear(parts: FaultyParts, context: Context) -> None:
    """Plan nothing more, count requests anew, and give the disk its space back."""
    parts.fault_plan.clear()
    await free_disk(parts, context)


async def planned(parts: FaultyParts, context: Context) -> list[dict[str, Any]]:
    """The faults that have not all happened."""
    return [
        {
            "api": SCHEMAS[each.api_key].name,
            "effect": each.effect,
            "committed": each.committed,
            "transactional_id": each.transactional_id,
            "topic": each.topic,
            "skip": each.skip,
            "times": each.times,
        }
        for each in parts.fault_plan.faults
    ]


async def requests(parts: FaultyParts, context: Context) -> dict[str, int]:
    """How many requests of each API have come since faults were cleared."""
    counted = parts.fault_plan.requests.items()
    return {SCHEMAS[api_key].name: count for api_key, count in counted if api_key in SCHEMAS}


async def fence_producer(parts: FaultyParts, context: Context, transactional_id: str) -> None:
    """Fence a producer, as another instance of it would."""
    await fence(parts, transactional_id, context.connection)


async def expire_transactions(
    parts: FaultyParts, context: Context, transactional_id: str | None = None
) -> list[str]:
    """Abort the open transaction of a producer, or all, as their timeouts would. Returns whose they were."""
    ids = with_open_transactions(parts) if transactional_id is None else [transactional_id]
    for each in ids:
        await expire(parts, each)
    return ids


async def fill_disk(parts: FaultyParts, context: Context) -> None:
    """Leave no free byte on the broker's disk."""
    parts.full_disk.fill()
    await parts.look_for_space()


async def free_disk(parts: FaultyParts, context: Context) -> None:
    """Give the disk its space back."""
    if parts.full_disk.is_full:
        parts.full_disk.free()
        await parts.look_for_space()


async def drop_connections(parts: FaultyParts, context: Context) -> int:
    """Close the connections of all clients but the one that asks. Returns how many there were."""
    others = [each for each in parts.server.admission.connections if each.number != context.connection]
    for each in others:
        each.abort()
    return len(others)


async def create_topic(
    parts: FaultyParts, context: Context, name: str, partitions: int, configs: dict[str, str]
) -> None:
    """Create a topic. Raises FaircopyError."""
    wanted = {name: partial(NewTopic, partitions, configs)}
    for error in (await parts.administration.create(wanted, context.pace)).refused.values():
        raise error


Order = Callable[..., Awaitable[Any]]
ORDERS: dict[str, Order] = {
    "install": install,
    "clear": clear,
    "planned": planned,
    "requests": requests,
    "fence": fence_producer,
    "expire": expire_transactions,
    "fill_disk": fill_disk,
    "free_disk": free_disk,
    "drop_connections": drop_connections,
    "create_topic": create_topic,
}
ROUTE = Route(SCHEMA, faults, is_advertised=False)

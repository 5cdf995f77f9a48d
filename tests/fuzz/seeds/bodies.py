"""Plain bodies of requests and responses, with one element in each array."""

from __future__ import annotations

from typing import Any

from faircopy.wire.schema import REQUIRED, STRUCTURE, Field
from tests.fuzz import broker
from tests.fuzz.world import TOPIC

PLAIN: dict[str, Any] = {
    "bool": False, "int8": 0, "int16": 0, "uint16": 0, "int32": 0, "int64": 0, "float64": 0.0,
    "uuid": bytes(16), "string": TOPIC, "bytes": broker.ASSIGNMENT, "records": broker.BATCH,
}  # fmt: skip


def plain_body(fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """A body with one element in each array."""
    return {field.name: plain_value(field, version) for field in fields if field.versions.has(version)}


def plain_value(field: Field, version: int) -> Any:
    if field.tag is not None and field.default is not REQUIRED:
        return field.default
    value = plain_body(field.fields, version) if field.type == STRUCTURE else PLAIN[field.type]
    return [value] if field.array else value

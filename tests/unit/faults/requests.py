"""Requests of any API, with one element in each list, as a client would send them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faircopy.wire import codec
from faircopy.wire.codec import Message
from faircopy.wire.schema import STRUCTURE, Field, Schema

VALUES: dict[str, Any] = {
    "bool": True, "string": "a", "bytes": b"a", "records": b"a", "uuid": bytes(range(16)), "float64": 1.0,
}  # fmt: skip


def request_of(schema: Schema, version: int, **given: Any) -> Message:
    """A request, as the broker decodes it. `given` has fields of its first level."""
    out = bytearray()
    codec.writer(schema, version, "request")(out, structure(schema.request) | given)
    return codec.reader(schema, version, "request")(memoryview(bytes(out)), 0)[0]


def structure(fields: Sequence[Field]) -> dict[str, Any]:
    return {field.name: value(field) for field in fields}


def value(field: Field) -> Any:
    one = structure(field.fields) if field.type == STRUCTURE else VALUES.get(field.type, 1)
    return [one] if field.array else one

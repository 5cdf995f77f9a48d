"""Readers and writers of Kafka messages, one per API, version and direction, compiled when first used.

`reader(...)` and `writer(...)` are the entry points. Whatever bytes a client sends, a reader raises only
`MalformedMessage`. Whatever values our own code passes, a writer raises only `UnencodableMessage`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

from faircopy.errors import FaircopyError
from faircopy.wire.primitives import ElementBudget, MalformedMessage
from faircopy.wire.reading import Dialect, Message, structure_reader
from faircopy.wire.schema import Field, Schema
from faircopy.wire.writing import UnencodableMessage, structure_writer

__all__ = [
    "Body",
    "Direction",
    "MalformedMessage",
    "Message",
    "UnencodableMessage",
    "UnknownMessage",
    "is_flexible",
    "reader",
    "writer",
]

Direction = Literal["request", "response"]
Body = Mapping[str, Any] | Message
ReadMessage = Callable[[memoryview, int], tuple[Message, int]]
Write = Callable[[bytearray, Body], None]

_READ_ERRORS = (IndexError, struct.error, UnicodeDecodeError)
_WRITE_ERRORS = (TypeError, ValueError, AttributeError)


class UnknownMessage(FaircopyError):
    """The API has no such version."""


def _make_reader(schema: Schema, version: int, direction: Direction) -> ReadMessage:
    """`read(buffer, at) -> (message, next)` for a body that starts at byte `at`; bytes after the body are
    ignored.

    `buffer` is a memoryview of bytes. Fields of type `records` are slices of it, without a copy.
    Raises UnknownMessage; the reader raises MalformedMessage.
    """
    name, fields, dialect = _layout(schema, version, direction)
    step, renew = structure_reader(name, fields, dialect), dialect.budget.renew

    def read(buffer: memoryview, at: int) -> tuple[Message, int]:
        into: list[Message] = []
        renew()
        try:
            at = step(buffer, at, into)
        except _READ_ERRORS as error:
            raise MalformedMessage(f"{name} version {version} is cut short or not UTF-8: {error}") from None
        return into[0], at

    return read


reader = cache(_make_reader)
reader_on_thread = cache(_make_reader)
"""A reader counts elements, so it can read only one message at a time. These readers are for threads other
than the event loop's, one thread at a time."""


@cache
def writer(schema: Schema, version: int, direction: Direction) -> Write:
    """`write(out, body)`, which appends the body to a bytearray.

    Raises UnknownMessage. The writer raises UnencodableMessage, and may then have appended a part of the
    body.
    """
    name, fields, dialect = _layout(schema, version, direction)
    put = structure_writer(name, fields, dialect)

    def write(out: bytearray, body: Body) -> None:
        try:
            put(out, body)
        except _WRITE_ERRORS as error:
            raise UnencodableMessage(f"{name} version {version}: {error}") from error

    return write


def is_flexible(schema: Schema, version: int) -> bool:
    """Whether this version has compact lengths and tagged fields (KIP-482)."""
    return version >= schema.flexible_from


def _layout(schema: Schema, version: int, direction: Direction) -> tuple[str, tuple[Field, ...], Dialect]:
    if not schema.versions.has(version):
        raise UnknownMessage(f"{schema.name} version {version} is not known here")
    fields = schema.request if direction == "request" else schema.response
    budget = ElementBudget() if direction == "request" else None
    return f"{schema.name}.{direction}", fields, Dialect(version, version >= schema.flexible_from, budget)

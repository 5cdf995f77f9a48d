"""Bounded readers of Kafka messages, compiled from their layouts.

A `ReadValue` reads one part of a message, appends the value to a list and returns the byte where the next
part starts. It compares every length and count with the number of bytes that remain before it allocates
anything. So a message can allocate at most a few tens of times its size: the smallest element of an array of
structures takes a byte or two on the wire and about a hundred in memory. In requests, the number of elements
is bounded as well.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from faircopy.wire.primitives import (
    ElementBudget,
    MalformedMessage,
    read_tag_count,
    read_tag_head,
    read_varint,
)
from faircopy.wire.schema import STRUCTURE, Field

ReadValue = Callable[[memoryview, int, list[Any]], int]
_Elements = Callable[[memoryview, int, int, list[Any]], int]
"""Like a `ReadValue`, for as many elements as the third argument says."""
_Length = Callable[[memoryview, int], tuple[int, int]]
"""Reads a length or count. Returns the number, or -1 for null, and the byte where the content starts."""

FIXED = {"bool": "?", "int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d"}
"""Primitives of one size, with their codes for `struct`."""

_INT16 = struct.Struct(">h").unpack_from
_INT32 = struct.Struct(">i").unpack_from
_UUID_BYTES = 16
NO_BOUND = 1 << 62


if TYPE_CHECKING:

    class Message:
        """A decoded message: attributes named as in the schema, arrays as lists, structures as messages.

        Immutable; two messages with the same values are equal.
        """

        def __getattr__(self, name: str) -> Any: ...
        def as_dict(self) -> dict[str, Any]: ...

else:

    class Message(tuple):
        __slots__ = ()
        _names: ClassVar[tuple[str, ...]] = ()

        def as_dict(self) -> dict[str, Any]:
            """The message's own level as a dict; nested messages stay messages."""
            return dict(zip(self._names, self, strict=True))

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in self.as_dict().items())})"


class Dialect:
    """How fields look on the wire: this depends on the message's version, and on whether it is flexible
    (KIP-482).

    `budget` limits the elements that a reader may take; the caller of the reader renews it for each message.
    """

    def __init__(self, version: int, flexible: bool, budget: ElementBudget | None = None) -> None:
        self.version = version
        self.flexible = flexible
        self.budget = budget or ElementBudget(NO_BOUND)

    def has(self, field: Field) -> bool:
        """Whether the message has this field in this version."""
        return field.versions.has(self.version)

    def may_be_null(self, field: Field) -> bool:
        """Whether the field may be null in this version."""
        return field.nullable is not None and field.nullable.has(self.version)


def structure_reader(name: str, fields: Sequence[Field], dialect: Dialect) -> ReadValue:
    """The step that reads a structure and appends it as a `Message`; `name` is for errors."""
    plain, tagged = [f for f in fields if f.tag is None], [f for f in fields if f.tag is not None]
    steps = list(_plain_steps(name, plain, dialect))
    if dialect.flexible:
        steps.append(_tags_reader(name, tagged, dialect))
    elif tagged:
        steps.append(_absent_reader(tagged))
    kind = _message_class(name, [f.name for f in (*plain, *tagged)])

    def read(buffer: memoryview, at: int, into: list[Any]) -> int:
        values: list[Any] = []
        for step in steps:
            at = step(buffer, at, values)
        into.append(kind(values))
        return at

    return read


def _message_class(name: str, names: Sequence[str]) -> Callable[[Sequence[Any]], Message]:
    members: dict[str, Any] = {n: property(itemgetter(i)) for i, n in enumerate(names)}
    return type(name, (Message,), {"__slots__": (), "_names": tuple(names), **members})


def _plain_steps(name: str, fields: Sequence[Field], dialect: Dialect) -> Iterator[ReadValue]:
    """Steps for untagged fields. Neighbouring fields of fixed sizes share a step, and so do neighbouring
    absent fields."""
    for sort, run in runs(fields, dialect):
        if sort == "absent":
            yield _absent_reader(run)
        elif sort == "fixed":
            yield _fixed_reader(run)
        else:
            yield _field_reader(f"{name}.{run[0].name}", run[0], dialect)


def runs(fields: Sequence[Field], dialect: Dialect) -> Iterator[tuple[str, list[Field]]]:
    """`fields` cut into runs: ("absent" | "fixed", neighbours) and ("other", one field)."""
    run: list[Field] = []
    last = ""
    for field in fields:
        sort = _sort(field, dialect)
        if run and (sort != last or sort == "other"):
            yield last, run
            run = []
        run.append(field)
        last = sort
    if run:
        yield last, run


def _sort(field: Field, dialect: Dialect) -> str:
    if not dialect.has(field):
        return "absent"
    return "fixed" if field.type in FIXED and not field.array else "other"


def fixed_layout(fields: Sequence[Field]) -> struct.Struct:
    """One struct for neighbouring fields of fixed sizes."""
    return struct.Struct(">" + "".join(FIXED[f.type] for f in fields))


def _absent_reader(fields: Sequence[Field]) -> ReadValue:
    append = _absent_values(fields)

    def read(_buffer: memoryview, at: int, into: list[Any]) -> int:
        append(into)
        return at

    return read


def _absent_values(fields: Sequence[Field]) -> Callable[[list[Any]], None]:
    """A function that appends the values of `fields` that are not on the wire, with new lists each time."""
    values = tuple(f.absent_value() for f in fields)
    if not any(isinstance(value, list) for value in values):
        return lambda into: into.extend(values)
    return lambda into: into.extend([v.copy() if isinstance(v, list) else v for v in values])


def _fixed_reader(fields: Sequence[Field]) -> ReadValue:
    layout = fixed_layout(fields)
    unpack, size = layout.unpack_from, layout.size

    def read(buffer: memoryview, at: int, into: list[Any]) -> int:
        into += unpack(buffer, at)
        return at + size

    return read


def _field_reader(what: str, field: Field, dialect: Dialect) -> ReadValue:
    """The reader of one field that is not in a run."""
    nullable = dialect.may_be_null(field)
    if field.array:
        return _array_reader(what, field, dialect, nullable)
    return _value_reader(what, field, dialect, nullable)


def _value_reader(what: str, field: Field, dialect: Dialect, nullable: bool) -> ReadValue:
    if field.type == STRUCTURE:
        structure = structure_reader(what, field.fields, dialect)
        return _nullable_reader(structure) if nullable else structure
    if field.type in FIXED:
        return _fixed_reader([field])
    if field.type == "uuid":
        return _uuid_reader(what)
    length = _length_reader(what, dialect, nullable, _INT16 if field.type == "string" else _INT32)
    return _blob_reader(what, length, _TAKE[field.type])


def _nullable_reader(structure: ReadValue) -> ReadValue:
    """The reader of a structure after a byte that is negative if there is none."""

    def read(buffer: memoryview, at: int, into: list[Any]) -> int:
        if buffer[at] & 0x80:
            into.append(None)
            return at + 1
        return structure(buffer, at + 1, into)

    return read


_TAKE: dict[str, Callable[[memoryview], Any]] = {
    "string": lambda view: str(view, "utf-8"),
    "bytes": bytes,
    "records": lambda view: view,
}


def _uuid_reader(what: str) -> ReadValue:
    def read(buffer: memoryview, at: int, into: list[Any]) -> int:
        end = at + _UUID_BYTES
        if end > len(buffer):
            raise MalformedMessage(f"{what} is cut short at byte {at}")
        into.append(bytes(buffer[at:end]))
        return end

    return read


def _blob_reader(what: str, length: _Length, take: Callable[..., Any]) -> ReadValue:
    def read(buffer: memoryview, at: int, into: list[Any]) -> int:
        size, at = length(buffer, at)
        if size < 0:
            into.append(None)
            return at
        end = at + size
        if end > len(buffer):
            raise MalformedMessage(f"{what} says {size} bytes at byte {at}, {len(buffer) - at} remain")
        into.append(take(buffer[at:end]))
        return end

    return read


def _length_reader(what: str, dialect: Dialect, nullable: bool, fixed: Callable[..., tuple[int]]) -> _Length:
    least = -1 if nullable else 0
    width = 2 if fixed is _INT16 else 4

    def read_compact(buffer: memoryview, at: int) -> tuple[int, int]:
        number = buffer[at]
        at += 1
        if number > 0x7F:
            number, at = read_varint(buffer, at - 1)
        if number <= least:
            raise MalformedMessage(f"{what} is null at byte {at - 1}")
        return number - 1, at

    def read_fixed(buffer: memoryview, at: int) -> tuple[int, int]:
        number = fixed(buffer, at)[0]
        if number < least:
            raise MalformedMessage(f"{what} has length {number} at byte {at}")
        return number, at + width

    return read_compact if dialect.flexible else read_fixed


def _array_reader(what: str, field: Field, dialect: Dialect, nullable: bool) -> ReadValue:
    length = _length_reader(what, dialect, nullable, _INT32)
    element_bytes = max(1, _least_bytes(field, dialect))
    elements = _primitives_reader(field) if field.type in FIXED else _elements_reader(what, field, dialect)
    take = dialect.budget.take

    def read(buffer: memoryview, at: int, into: list[Any]) -> int:
        count, at = length(buffer, at)
        if count < 0:
            into.append(None)
            return at
        if count * element_bytes > len(buffer) - at:
            left = len(buffer) - at
            raise MalformedMessage(f"{what} counts {count} elements at byte {at}, {left} bytes remain")
        values: list[Any] = []
        into.append(values)
        return elements(buffer, at, take(count), values)

    return read


def _primitives_reader(field: Field) -> _Elements:
    code, size = FIXED[field.type], struct.calcsize(">" + FIXED[field.type])

    def read(buffer: memoryview, at: int, count: int, into: list[Any]) -> int:
        into += struct.unpack_from(f">{count}{code}", buffer, at)
        return at + count * size

    return read


def _elements_reader(what: str, field: Field, dialect: Dialect) -> _Elements:
    element = _value_reader(what, field, dialect, nullable=False)

    def read(buffer: memoryview, at: int, count: int, into: list[Any]) -> int:
        for _ in range(count):
            at = element(buffer, at, into)
        return at

    return read


def _least_bytes(field: Field, dialect: Dialect) -> int:
    """The fewest bytes that one value (of an array: one element) can take on the wire."""
    if field.type == STRUCTURE:
        inner = [f for f in field.fields if f.tag is None and dialect.has(f)]
        return sum(_least_bytes_of_field(f, dialect) for f in inner) + dialect.flexible
    if field.type in FIXED:
        return struct.calcsize(">" + FIXED[field.type])
    return _UUID_BYTES if field.type == "uuid" else _length_bytes(field.type, dialect)


def _least_bytes_of_field(field: Field, dialect: Dialect) -> int:
    if field.array:
        return _length_bytes("array", dialect)
    if field.type == STRUCTURE and dialect.may_be_null(field):
        return 1
    return _least_bytes(field, dialect)


def _length_bytes(kind: str, dialect: Dialect) -> int:
    """The fewest bytes that the length takes of a value of this kind, or of an array."""
    if dialect.flexible:
        return 1
    return 2 if kind == "string" else 4


def _tags_reader(name: str, fields: Sequence[Field], dialect: Dialect) -> ReadValue:
    """The reader of a structure's tagged fields. It skips unknown ones and those newer than the version."""
    known = {
        field.tag: (place - len(fields), _field_reader(f"{name}.{field.name}", field, dialect))
        for place, field in enumerate(fields)
        if dialect.has(field)
    }
    append_absent = _absent_values(fields)

    def read(buffer: memoryview, at: int, into: list[Any]) -> int:
        append_absent(into)
        count, at = read_tag_count(buffer, at)
        seen: set[int] = set()
        for _ in range(count):
            tag, size, at = read_tag_head(buffer, at)
            if tag in known:
                place, step = known[tag]
                into[place] = _tag_value(name, tag, seen, step, buffer[: at + size], at)
            at += size
        return at

    return read


def _tag_value(name: str, tag: int, seen: set[int], step: ReadValue, buffer: memoryview, at: int) -> Any:
    """The value of a known tagged field, which must fill `buffer` to its end."""
    if tag in seen:
        raise MalformedMessage(f"{name}: tagged field {tag} comes twice")
    seen.add(tag)
    values: list[Any] = []
    end = step(buffer, at, values)
    if end != len(buffer):
        raise MalformedMessage(f"{name}: tagged field {tag} says {len(buffer) - at} bytes and has {end - at}")
    return values[0]

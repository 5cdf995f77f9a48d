"""Writers of Kafka messages, compiled from their layouts.

A `WriteValue` appends one value to a bytearray. A structure is given as a dict or as a `Message`; names that
the version does not have are ignored, and missing names take the schema's default.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from faircopy.errors import FaircopyError
from faircopy.wire.primitives import varint
from faircopy.wire.reading import FIXED, Dialect, Message, fixed_layout, runs
from faircopy.wire.schema import REQUIRED, STRUCTURE, Field

WriteValue = Callable[[bytearray, Any], None]
_Step = Callable[[bytearray, tuple[Any, ...]], None]

_INT16 = struct.Struct(">h").pack
_INT32 = struct.Struct(">i").pack
_UUID_BYTES = 16
_PRESENT, _NO_STRUCTURE = b"\1", b"\xff"


class UnencodableMessage(FaircopyError):
    """The values cannot be encoded: one is missing, or does not fit its field. Nothing was sent."""


def structure_writer(name: str, fields: Sequence[Field], dialect: Dialect) -> WriteValue:
    """The writer of a structure; `name` is for errors."""
    present = [f for f in fields if dialect.has(f)]
    plain, tagged = [f for f in present if f.tag is None], [f for f in present if f.tag is not None]
    pick = _picker(name, plain)
    steps = list(_plain_steps(name, plain, dialect))
    put_tags = _tags_writer(name, tagged, dialect)

    def put(out: bytearray, value: Any) -> None:
        given = value.as_dict() if isinstance(value, Message) else value
        values = pick(given)
        for step in steps:
            step(out, values)
        if put_tags:
            put_tags(out, given)

    return put


def _picker(name: str, fields: Sequence[Field]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """A function that takes the values of `fields` from the given mapping, in order."""
    names = [f.name for f in fields]
    defaults = {f.name: f.default for f in fields if f.default is not REQUIRED}
    get: Callable[..., Any] = itemgetter(*names) if names else lambda _: ()

    def pick(given: Mapping[str, Any]) -> tuple[Any, ...]:
        try:
            values = get({**defaults, **given})
        except KeyError as error:
            raise UnencodableMessage(f"{name} was given no {error.args[0]}") from None
        return values if len(names) != 1 else (values,)

    return pick


def _plain_steps(name: str, fields: Sequence[Field], dialect: Dialect) -> Iterator[_Step]:
    at = 0
    for sort, run in runs(fields, dialect):
        yield _fixed_step(name, run, at) if sort == "fixed" else _step(name, run[0], at, dialect)
        at += len(run)


def _fixed_step(name: str, fields: Sequence[Field], at: int) -> _Step:
    pack = fixed_layout(fields).pack
    what = f"{name}.{'/'.join(f.name for f in fields)}"
    end = at + len(fields)

    def step(out: bytearray, values: tuple[Any, ...]) -> None:
        try:
            out += pack(*values[at:end])
        except (struct.error, OverflowError) as error:
            raise UnencodableMessage(f"{what} = {values[at:end]}: {error}") from None

    return step


def _step(name: str, field: Field, at: int, dialect: Dialect) -> _Step:
    put = _field_writer(f"{name}.{field.name}", field, dialect)

    def step(out: bytearray, values: tuple[Any, ...]) -> None:
        put(out, values[at])

    return step


def _field_writer(what: str, field: Field, dialect: Dialect) -> WriteValue:
    put = _array_writer(what, field, dialect) if field.array else _value_writer(what, field, dialect)
    null = _null(field, dialect)
    if null and field.type == STRUCTURE and not field.array:
        put = _present_writer(put)

    def put_or_null(out: bytearray, value: Any) -> None:
        if value is not None:
            put(out, value)
        elif null:
            out += null
        else:
            raise UnencodableMessage(f"{what} may not be null in version {dialect.version}")

    return put_or_null


def _null(field: Field, dialect: Dialect) -> bytes:
    """The encoding of null for this field; empty if the field may not be null."""
    if not dialect.may_be_null(field):
        return b""
    if field.type == STRUCTURE and not field.array:
        return _NO_STRUCTURE
    if dialect.flexible:
        return b"\0"
    return _INT16(-1) if field.type == "string" and not field.array else _INT32(-1)


def _present_writer(put_structure: WriteValue) -> WriteValue:
    def put(out: bytearray, value: Any) -> None:
        out += _PRESENT
        put_structure(out, value)

    return put


def _value_writer(what: str, field: Field, dialect: Dialect) -> WriteValue:
    if field.type == STRUCTURE:
        return structure_writer(what, field.fields, dialect)
    if field.type in FIXED:
        return _primitive_writer(what, field)
    if field.type == "uuid":
        return _uuid_writer(what)
    put_length = _length_writer(what, dialect, _INT16 if field.type == "string" else _INT32)
    return _string_writer(what, put_length) if field.type == "string" else _bytes_writer(what, put_length)


def _primitive_writer(what: str, field: Field) -> WriteValue:
    pack = fixed_layout([field]).pack

    def put(out: bytearray, value: Any) -> None:
        try:
            out += pack(value)
        except (struct.error, OverflowError) as error:
            raise UnencodableMessage(f"{what} = {value!r}: {error}") from None

    return put


def _uuid_writer(what: str) -> WriteValue:
    def put(out: bytearray, value: Any) -> None:
        if len(value) != _UUID_BYTES:
            raise UnencodableMessage(f"{what} has {len(value)} bytes, a uuid has {_UUID_BYTES}")
        out += value

    return put


def _string_writer(what: str, put_length: WriteValue) -> WriteValue:
    def put(out: bytearray, value: Any) -> None:
        try:
            encoded = value.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise UnencodableMessage(f"{what} = {value!r} is not text: {error}") from None
        put_length(out, len(encoded))
        out += encoded

    return put


def _bytes_writer(what: str, put_length: WriteValue) -> WriteValue:
    def put(out: bytearray, value: Any) -> None:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise UnencodableMessage(f"{what} wants bytes, was given {type(value).__name__}")
        put_length(out, len(value))
        out += value

    return put


def _length_writer(what: str, dialect: Dialect, pack: Callable[[int], bytes]) -> WriteValue:
    def put_compact(out: bytearray, number: int) -> None:
        if number < 0x7F:
            out.append(number + 1)
        else:
            out += varint(number + 1)

    def put_fixed(out: bytearray, number: int) -> None:
        try:
            out += pack(number)
        except struct.error:
            raise UnencodableMessage(f"{what} is too long: {number}") from None

    return put_compact if dialect.flexible else put_fixed


def _array_writer(what: str, field: Field, dialect: Dialect) -> WriteValue:
    put_length = _length_writer(what, dialect, _INT32)
    put_element = _value_writer(what, field, dialect)

    def put(out: bytearray, value: Any) -> None:
        put_length(out, len(value))
        for element in value:
            put_element(out, element)

    def put_primitives(out: bytearray, value: Any) -> None:
        put_length(out, len(value))
        try:
            out += struct.pack(f">{len(value)}{FIXED[field.type]}", *value)
        except (struct.error, OverflowError) as error:
            raise UnencodableMessage(f"{what} = {value!r}: {error}") from None

    return put_primitives if field.type in FIXED else put


def _tags_writer(name: str, fields: Sequence[Field], dialect: Dialect) -> WriteValue | None:
    """The writer of a structure's tagged fields, lowest tag first; default values are left out."""
    if not dialect.flexible:
        return None
    ordered = sorted(fields, key=lambda f: f.tag or 0)
    writers = [(f.name, f.absent_value(), _tag_writer(f"{name}.{f.name}", f, dialect)) for f in ordered]

    def put(out: bytearray, given: Mapping[str, Any]) -> None:
        chosen = [w for w in writers if given.get(w[0], w[1]) != w[1]]
        out += varint(len(chosen))
        for field_name, _, put_tag in chosen:
            put_tag(out, given[field_name])

    return put


def _tag_writer(what: str, field: Field, dialect: Dialect) -> WriteValue:
    tag, put_value = varint(field.tag or 0), _field_writer(what, field, dialect)

    def put(out: bytearray, value: Any) -> None:
        content = bytearray()
        put_value(content, value)
        out += tag + varint(len(content)) + content

    return put

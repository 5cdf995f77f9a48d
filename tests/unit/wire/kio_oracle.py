"""kio as the oracle of the codec: its entities to and from the plain values that our reader and writer use.

Our fields and kio's are paired by their order on the wire.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import io
import uuid
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from faircopy.api.routes import ROUTES, schema_of
from faircopy.wire.codec import Direction, Message
from faircopy.wire.schema import STRUCTURE, Field

RENAMED = {
    "generation_id_or_member_epoch": "generation_id",
    "results_by_topic_v3_and_below": "results",
    "results_by_partition": "partitions",
    "partition_error_code": "error_code",
}
EPOCH = datetime.datetime.fromtimestamp(0, tz=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)
INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
TIMEDELTA_MS_MAX = 10**12


def all_messages() -> Iterator[tuple[int, int, Direction]]:
    """Every (api key, version, direction) that we have a layout for and that is Kafka's, not our own."""
    for api_key in sorted(ROUTES.keys() & set(api_key_map)):
        versions = schema_of(api_key).versions
        for version in range(versions.first, versions.last + 1):
            yield api_key, version, "request"
            yield api_key, version, "response"


def our_fields(api_key: int, direction: Direction) -> tuple[Field, ...]:
    schema = schema_of(api_key)
    return schema.request if direction == "request" else schema.response


def kio_class(api_key: int, version: int, direction: Direction) -> Any:
    module = importlib.import_module(f"kio.schema.{api_key_map[api_key]}.v{version}.{direction}")
    entities = [c for c in vars(module).values() if isinstance(c, type) and hasattr(c, "__type__")]
    return next(c for c in entities if c.__type__.name == direction)


def paired(fields: tuple[Field, ...], entity: Any, version: int) -> list[tuple[Field, Any]]:
    """Our fields of this version beside kio's."""
    present = [f for f in fields if f.versions.has(version)]
    return list(zip(present, dataclasses.fields(entity), strict=True))


def kio_name(field: Any) -> str:
    """What we call kio's field."""
    timed = kafka_type(field).startswith(("timedelta", "datetime")) and not field.name.endswith("_ms")
    plain: str = RENAMED.get(field.name, field.name).removeprefix("v3_and_below_")
    return plain + "_ms" if timed else plain


def kafka_type(field: Any) -> str:
    return str(field.metadata.get("kafka_type", ""))


def element_class(field: Any) -> Any:
    """kio's class of the structures in this field."""
    outer = getattr(field.type, "__args__", ())
    nested = [inner for t in outer for inner in getattr(t, "__args__", ())]
    return next(t for t in (field.type, *outer, *nested) if dataclasses.is_dataclass(t))


def messages(fields: tuple[Field, ...], entity: Any, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies that both sides can say."""
    return st.fixed_dictionaries(
        {ours.name: _values(ours, theirs, version) for ours, theirs in paired(fields, entity, version)}
    )


def _values(ours: Field, theirs: Any, version: int) -> st.SearchStrategy[Any]:
    one = _one_value(ours, theirs, version)
    values = st.lists(one, max_size=3) if ours.array else one
    if (ours.nullable and ours.nullable.has(version)) or (ours.type == STRUCTURE and not ours.array):
        return st.none() | values
    return values


def _one_value(ours: Field, theirs: Any, version: int) -> st.SearchStrategy[Any]:
    if ours.type == STRUCTURE:
        return messages(ours.fields, element_class(theirs), version)
    if kafka_type(theirs) == "error_code":
        return st.sampled_from([int(code) for code in ErrorCode])
    if kafka_type(theirs) == "datetime_i64":
        return st.integers(-1 if theirs.default is None else 0, 10**12)
    return _primitive(ours.type, bounded=kafka_type(theirs).startswith("timedelta"))


def _primitive(kind: str, bounded: bool) -> st.SearchStrategy[Any]:
    if kind in INTEGERS:
        limit = min(1 << INTEGERS[kind], TIMEDELTA_MS_MAX if bounded else 1 << 63)
        return st.integers(-limit, limit - 1)
    if kind == "bool":
        return st.booleans()
    if kind == "uint16":
        return st.integers(0, (1 << 16) - 1)
    if kind == "float64":
        return st.floats(allow_nan=False)
    if kind == "uuid":
        return st.binary(min_size=16, max_size=16)
    if kind == "string":
        return st.text(max_size=4) | st.just("long " * 40)
    return st.binary(max_size=4) | st.just(b"\0" * 20_000)


def to_kio(body: dict[str, Any], fields: tuple[Field, ...], entity: Any, version: int) -> Any:
    """kio's entity with the values of `body`; a structure that is None becomes kio's default."""
    values = {}
    for ours, theirs in paired(fields, entity, version):
        value = body[ours.name]
        if value is None and ours.type == STRUCTURE and not ours.array:
            continue
        values[theirs.name] = _to_kio(value, ours, theirs, version)
    return entity(**values)


def _to_kio(value: Any, ours: Field, theirs: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(_to_kio(v, ours, theirs, version) for v in value)
    if ours.type == STRUCTURE:
        return to_kio(value, ours.fields, element_class(theirs), version)
    if kafka_type(theirs) == "error_code":
        return ErrorCode(value)
    if kafka_type(theirs).startswith("timedelta"):
        return value * MILLISECOND
    if kafka_type(theirs) == "datetime_i64":
        return None if value < 0 else EPOCH + value * MILLISECOND
    if ours.type == "uuid":
        # For kio the default is no id. An id of zeros is another value, which it would write.
        return None if theirs.default is None and not any(value) else uuid.UUID(bytes=value)
    return value


def from_kio(entity: Any, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """The values of kio's entity, as our reader would give them."""
    pairs = paired(fields, type(entity), version)
    return {ours.name: _from_kio(getattr(entity, theirs.name), ours, version) for ours, theirs in pairs}


def _from_kio(value: Any, ours: Field, version: int) -> Any:
    if isinstance(value, tuple):
        return [_from_kio(v, ours, version) for v in value]
    if dataclasses.is_dataclass(value):
        body = from_kio(value, ours.fields, version)
        return None if ours.tag is not None and not ours.array and is_default(body, ours) else body
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // MILLISECOND
    if isinstance(value, datetime.timedelta):
        return value // MILLISECOND
    if isinstance(value, uuid.UUID):
        return value.bytes
    if value is None:
        return {"uuid": bytes(16), "int64": -1}.get(ours.type)
    return bytes(value) if isinstance(value, bytes) else value


def kio_default(theirs: Any, ours: Field, version: int) -> Any:
    return _from_kio(theirs.default, ours, version)


def is_default(body: dict[str, Any], structure: Field) -> bool:
    return all(body[f.name] == f.default for f in structure.fields)


def normal(body: dict[str, Any], fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """`body`, with tagged structures of nothing but defaults as None: on the wire they are the same."""
    present = [f for f in fields if f.versions.has(version)]
    return {f.name: _normal(body[f.name], f, version) for f in present}


def _normal(value: Any, field: Field, version: int) -> Any:
    if isinstance(value, list):
        return [_normal(v, field, version) if field.type == STRUCTURE else v for v in value]
    if not isinstance(value, dict):
        return value
    if field.tag is not None and not field.array and is_default(value, field):
        return None
    return normal(value, field.fields, version)


def plain(value: Any, fields: tuple[Field, ...], version: int) -> Any:
    """A message of ours as dicts, with only the fields of this version, and records as bytes."""
    if isinstance(value, list):
        return [plain(v, fields, version) for v in value]
    if isinstance(value, Message):
        present = [f for f in fields if f.versions.has(version)]
        return {f.name: plain(getattr(value, f.name), f.fields, version) for f in present}
    return bytes(value) if isinstance(value, memoryview) else value


def kio_bytes(entity: Any) -> bytes:
    with io.BytesIO() as out:
        entity_writer(type(entity))(out, entity)
        return out.getvalue()


def kio_read(entity: Any, data: bytes) -> Any:
    value, size = entity_reader(entity)(data, 0)
    assert size == len(data)
    return value

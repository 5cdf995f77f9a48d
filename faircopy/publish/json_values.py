"""Values that are JSON objects, as Arrow columns: for plain tables, and for the Spark source.

A value *fits* a schema if it is one JSON object, and what it has of the schema's fields has their types.
Fields that it lacks are null, and fields that the schema lacks are left out. A missing value (null) fits,
with nulls only. A value that does not fit has nulls only. Whether a value fits depends on it alone, not on
its neighbours.

    JSON                                    column
    true, false                             boolean
    a number without point or exponent      tinyint, smallint, int, bigint, if it is within their limits
    a number                                float, double
    a number, or a string with one          decimal, if no digit is lost
    a string                                string
    a string YYYY-MM-DD                     date
    a string, ISO 8601, in UTC if there     timestamp, with up to 6 digits of a second
    is no offset
    an array, an object                     array, struct
    null                                    any

pyarrow parses many values at once. They are handed to it as one text, a line for each. It does not mind where
lines end, so two flawed values could pass for two sound ones; and it crashes on a text that is only `null`.
So only such values are in the text as begin with `{`, end with `}`, and have nothing after a `}` that could
begin another value (if they have, it may be within a string, so Python's parser decides). Then each boundary
between two objects of the text is one between two values. If the text is refused, its halves are tried.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

EMPTY_OBJECT = b"{}"
_OBJECT = r"(?s)^\s*\{.*\}\s*$"
_ANOTHER = r"\}\s*[^\s,\]}]"


class Parsed(NamedTuple):
    """The columns of some values, and which values fit."""

    columns: list[pa.Array]
    fits: pa.BooleanArray


def parse_json(values: pa.Array, schema: pa.Schema) -> Parsed:
    """The columns of `schema` from `values`, a binary array of what should be JSON objects."""
    given = pc.fill_null(values, EMPTY_OBJECT)
    trusted = _are_objects(given)
    texts = pc.if_else(trusted, given, EMPTY_OBJECT).to_pylist()
    reader = _ObjectReader(schema)
    tables = [schema.empty_table(), *reader.read(texts, 0)]
    table = pa.concat_tables(tables).combine_chunks()
    columns = [_in_one_chunk(table.column(place), schema.types[place]) for place in range(len(schema))]
    if not reader.misfits:
        return Parsed(columns, trusted)
    numbers = pa.array(range(len(values)), pa.int64())
    misfits = pc.is_in(numbers, value_set=pa.array(reader.misfits, pa.int64()))
    return Parsed(columns, pc.and_(trusted, pc.invert(misfits)))


def _in_one_chunk(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _are_objects(values: pa.Array) -> pa.Array:
    """Which values may be handed to pyarrow: those that can't be taken for more or less than one object."""
    plain = pc.and_not(pc.match_substring_regex(values, _OBJECT), pc.match_substring_regex(values, _ANOTHER))
    if not are_text(values):
        plain = pc.and_(plain, pa.array(map(is_text, values.to_pylist()), pa.bool_()))
    if pc.all(plain).as_py():
        return plain
    pairs = zip(plain.to_pylist(), values.to_pylist(), strict=True)
    return pa.array([is_plain or is_object(value) for is_plain, value in pairs], pa.bool_())


def misfits(values: pa.Array, fits: pa.Array) -> pa.Array:
    """The texts of the values that do not fit, and null for the others."""
    if pc.all(fits).as_py():
        return pa.nulls(len(values), pa.string())
    pairs = zip(values.to_pylist(), fits.to_pylist(), strict=True)
    return pa.array([None if fit else value.decode(errors="replace") for value, fit in pairs], pa.string())


def are_text(values: pa.Array) -> bool:
    """Whether all values are UTF-8."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def is_text(value: bytes) -> bool:
    """Whether a value is UTF-8."""
    return are_text(pa.array([value], pa.binary()))


def is_object(value: bytes) -> bool:
    """Whether a value is one JSON object, as Python sees it."""
    try:
        return isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False


class _ObjectReader:
    """Reads objects as tables with the columns of a schema. `misfits` are the numbers of those that do not
    fit.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.misfits: list[int] = []
        self._schema = schema
        self._read_as = pa.schema([pa.field(field.name, _as_read(field.type)) for field in schema])
        self._options = pa_json.ParseOptions(
            self._read_as, newlines_in_values=True, unexpected_field_behavior="ignore"
        )

    def read(self, texts: Sequence[bytes], first: int) -> list[pa.Table]:
        """The rows of `texts`, of which the first has number `first`; those that don't fit have nulls."""
        if not texts:
            return []
        table = self._at_once(texts)
        if table is not None:
            return [table]
        if len(texts) == 1:
            self.misfits.append(first)
            return [pa.table([pa.nulls(1, kind) for kind in self._schema.types], schema=self._schema)]
        middle = len(texts) // 2
        halves = (self.read(texts[:middle], first), self.read(texts[middle:], first + middle))
        return list(chain.from_iterable(halves))

    def _at_once(self, texts: Sequence[bytes]) -> pa.Table | None:
        """The rows; None if one of them does not fit."""
        text = b"\n".join(texts)
        reading = pa_json.ReadOptions(use_threads=False, block_size=len(text) + 2)
        try:
            table = pa_json.read_json(io.BytesIO(text), reading, self._options)
            table = table.select(self._read_as.names).cast(self._schema)
            table.validate(full=True)  # strings must be UTF-8
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return table if table.num_rows == len(texts) else None


def _as_read(kind: pa.DataType) -> pa.DataType:
    """What pyarrow shall read for a type. For a date it would take a number of days."""
    if pa.types.is_date(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _as_read(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _as_read(field.type)) for field in kind])
    return kind

"""The columns that a table has of its own, after those that all tables have.

They come from the topic settings `plain.schema` (one for each field, and `_corrupt_record`) and
`plain.partition.by` (`day`). A table never loses a column, and none changes its type: files with fewer
columns stay as they are, and readers take what is missing for null. The columns of a table are those of its
file without rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from faircopy.errors import FaircopyError
from faircopy.publish.files import Files
from faircopy.publish.layout import Layout
from faircopy.publish.schema import DAY_FIELD, MISFIT_FIELD, SCHEMA
from faircopy.settings.columns import Column, ColumnType, parse_columns

_SCALARS = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


class TableSchemaError(FaircopyError):
    """Topics ask for columns that a table can't have; nothing was changed."""


def arrow_type(kind: ColumnType) -> pa.DataType:
    """The Arrow type of a column, as Spark's own conversion gives it."""
    if kind.kind == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.kind == "array":
        return pa.list_(pa.field("element", arrow_type(kind.parts[0].type)))
    if kind.kind == "struct":
        return pa.struct(list(arrow_schema(kind.parts)))
    return _SCALARS[kind.kind]


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """Columns as Arrow has them; all are nullable."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def own_columns(schema: pa.Schema) -> list[pa.Field]:
    """The columns of a table that not every table has."""
    return list(schema)[len(SCHEMA) :]


def extended(schema: pa.Schema, layout: Layout) -> pa.Schema:
    """The columns of a table that has those of `schema`, and shall have those of a layout.

    Raises TableSchemaError if one should change its type, or BadTableSchema.
    """
    fields = list(schema)
    known = {field.name.lower(): field for field in fields}
    for wanted in _wanted(layout):
        field = known.setdefault(wanted.name.lower(), wanted)
        if field is wanted:
            fields.append(wanted)
        elif field != wanted:
            raise TableSchemaError(
                f"column {field.name} is {field.type}, and topic setting plain.schema asks for {wanted.name} "
                f"{wanted.type}: columns of a table don't change. Give the topic another table (plain.table)"
            )
    return pa.schema(fields)


def _wanted(layout: Layout) -> Iterable[pa.Field]:
    for topic in sorted(layout.topics):
        yield from arrow_schema(parse_columns(topic.schema))
    if layout.topics:
        yield MISFIT_FIELD
    if layout.by_day:
        yield DAY_FIELD


def is_by_day(schema: pa.Schema) -> bool:
    """Whether a table with these columns is one by days."""
    return DAY_FIELD.name in schema.names


def with_columns(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Rows with all columns of a table; those that they lack are null."""
    present = set(rows.schema.names)
    arrays = [
        rows.column(field.name).cast(field.type) if field.name in present else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def schema_in(files: Files, path: Path) -> pa.Schema:
    """The columns of a data file. Raises OSError, or pyarrow's errors for damage."""
    with files.open_to_read(path) as file, pq.ParquetFile(file) as parquet:
        found = parquet.schema_arrow
    own = [pa.field(field.name, field.type) for field in own_columns(found)]
    return pa.schema([*SCHEMA, *own])

"""Values that are JSON objects, as columns: pyarrow parses many at once; if one is bad, each by itself."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from faircopy.errors import FaircopyError
from faircopy.spark.source_columns import CORRUPT, DROPMALFORMED, FAILFAST

EMPTY_OBJECT = b"{}"


class BadValue(FaircopyError):
    """A value is not a JSON object with the fields that are asked for."""


class JsonColumns:
    """Turns values into columns. `schema` is Arrow's, of the columns that are asked for."""

    def __init__(self, schema: Any, mode: str, *, has_corrupt_column: bool) -> None:
        self._schema = schema
        self._mode = mode
        self._has_corrupt_column = has_corrupt_column

    def add_to(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows, with the columns of their values. Raises BadValue under FAILFAST."""
        values = rows.column("value")
        columns = self._at_once(values)
        kept = [name for name in rows.schema.names if name != "value" and name not in self._schema.names]
        corrupt = pa.nulls(len(values), pa.string())
        if columns is None:
            columns, corrupt = self._one_by_one(rows)
        names = [*kept, *self._schema.names]
        arrays = [*map(rows.column, kept), *columns]
        if self._has_corrupt_column:
            names, arrays = [*names, CORRUPT], [*arrays, corrupt]
        found = pa.RecordBatch.from_arrays(arrays, names=names)
        return found.filter(corrupt.is_null()) if self._mode == DROPMALFORMED else found

    def _at_once(self, values: Any) -> list[Any] | None:
        """The columns of all values; None if one of them is bad."""
        text = b"\n".join(pc.fill_null(values, EMPTY_OBJECT).to_pylist())
        options = pa_json.ParseOptions(
            self._schema, newlines_in_values=True, unexpected_field_behavior="ignore"
        )
        reading = pa_json.ReadOptions(use_threads=False, block_size=max(len(text), 1) + 1)
        try:
            table = pa_json.read_json(io.BytesIO(text), reading, options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != len(values):
            return None
        return [table.column(name).combine_chunks() for name in self._schema.names]

    def _one_by_one(self, rows: pa.RecordBatch) -> tuple[list[Any], Any]:
        parsed, corrupt = [], []
        for number, value in enumerate(rows.column("value").to_pylist()):
            columns = self._at_once(pa.array([value], pa.binary())) if is_object(value) else None
            if columns is None and self._mode == FAILFAST:
                raise BadValue(place_of(rows, number))
            parsed.append(columns)
            corrupt.append(None if columns is not None else (value or b"").decode(errors="replace"))
        return [self._column(parsed, place) for place in range(len(self._schema))], pa.array(
            corrupt, pa.string()
        )

    def _column(self, parsed: Sequence[list[Any] | None], place: int) -> Any:
        kind = self._schema.field(place).type
        cells = [columns[place] if columns is not None else pa.nulls(1, kind) for columns in parsed]
        return pa.concat_arrays(cells) if cells else pa.array([], kind)


def is_object(value: bytes | None) -> bool:
    """Whether a value is one JSON object, or is missing."""
    try:
        return value is None or isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False


def place_of(rows: pa.RecordBatch, number: int) -> str:
    """Where a bad value is, for people."""
    topic, partition, offset = (
        rows.column(name)[number].as_py() for name in ("topic", "partition", "offset")
    )
    return (
        f"the value of {topic}-{partition} at offset {offset} is not a JSON object with the columns of "
        f"option 'value.schema'. With option 'value.mode' permissive, such rows have nulls instead; "
        f"dropmalformed leaves them out"
    )

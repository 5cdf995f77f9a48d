"""The columns of values that are JSON objects, as `value.mode` asks for them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from faircopy.errors import FaircopyError
from faircopy.publish.json_values import misfits, parse_json
from faircopy.spark.source_columns import CORRUPT, DROPMALFORMED, FAILFAST


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
        columns, fits = parse_json(values, self._schema)
        if self._mode == FAILFAST and not pc.all(fits).as_py():
            raise BadValue(place_of(rows, fits.index(False).as_py()))
        kept = [name for name in rows.schema.names if name != "value" and name not in self._schema.names]
        names = [*kept, *self._schema.names]
        arrays = [*map(rows.column, kept), *columns]
        if self._has_corrupt_column:
            names, arrays = [*names, CORRUPT], [*arrays, misfits(values, fits)]
        found = pa.RecordBatch.from_arrays(arrays, names=names)
        return found.filter(fits) if self._mode == DROPMALFORMED else found


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

"""What producers write as JSON, and people as a schema of it."""

from __future__ import annotations

import json

import pyarrow as pa

from faircopy.publish.json_values import is_object, parse_json
from faircopy.publish.table_columns import arrow_schema
from faircopy.settings.columns import BadTableSchema, format_columns, parse_columns
from tests.fuzz.choices import Choices
from tests.fuzz.documents import odd_document

COLUMNS = arrow_schema(
    parse_columns("id bigint, name string, at date, on timestamp, tags array<string>, o struct<x: double>")
)
SOUND = {"id": 1, "name": "n", "at": "2024-02-29", "on": "2024-01-01T00:00:00Z", "tags": ["t"], "o": {"x": 1}}
VALUES_MAX = 8


def feed_json(data: bytes) -> bool:
    """Some values: each fits or not whatever its neighbours are. What fits is an object for Python, too."""
    choices = Choices(data)
    values: list[bytes] = []
    while not choices.is_over and len(values) < VALUES_MAX:
        values.append(choices.some() if choices.number() % 2 else odd_document(SOUND, choices))
    columns, fits = parse_json(pa.array(values, pa.binary()), COLUMNS)
    rows = pa.RecordBatch.from_arrays(columns, schema=COLUMNS)
    rows.validate(full=True)
    for number, value in enumerate(values):
        alone, fit = parse_json(pa.array([value], pa.binary()), COLUMNS)
        assert are_equal(rows.slice(number, 1), pa.RecordBatch.from_arrays(alone, schema=COLUMNS))
        assert fit[0].as_py() == fits[number].as_py()
        assert not fit[0].as_py() or is_object(value) or is_deep(value)
    return all(fits.to_pylist())


def are_equal(some: pa.RecordBatch, others: pa.RecordBatch) -> bool:
    """Whether rows are equal. Here NaN is, which pyarrow reads as a number, to itself."""
    with_nan = repr(some["o"].to_pylist()) == repr(others["o"].to_pylist())
    return with_nan and some.drop_columns(["o"]).equals(others.drop_columns(["o"]))


def is_deep(value: bytes) -> bool:
    """Whether Python may give up on a value that is nested so deep, or has numbers that are so long."""
    try:
        json.loads(value)
    except (RecursionError, ValueError) as error:
        return isinstance(error, RecursionError) or "digits" in str(error)
    return False


def feed_schema(data: bytes) -> bool:
    """The text of a schema: it is refused, or means the same when it is written again."""
    try:
        columns = parse_columns(data.decode("utf-8", "replace"))
    except BadTableSchema:
        return False
    assert parse_columns(format_columns(columns)) == columns
    assert len(arrow_schema(columns)) == len(columns)
    return True

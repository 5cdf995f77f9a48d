"""JSON values as columns: whether a value fits depends on it alone, and sound ones have what Python reads."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish.json_values import misfits, parse_json

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("at", pa.struct([("x", pa.float64()), ("day", pa.date32())])),
        ("tags", pa.list_(pa.string())),
    ]
)

documents: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
objects = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(-(2**63), 2**63 - 1) | documents,
        "name": st.text() | documents,
        "at": st.fixed_dictionaries({}, optional={"x": st.floats(-9, 9), "day": st.dates().map(str)})
        | documents,
        "tags": st.lists(st.none() | st.text()) | documents,
        "more": documents,
    },
)
PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"null",
    b"1",
    b'"id"',
    b'{"id":1}',
    b"\n",
    b" ",
    b"\xff",
    b"\xef\xbb\xbf",
]
garbage = st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)
values = st.lists(
    st.none()
    | objects.map(lambda each: json.dumps(each).encode())
    | documents.map(lambda each: json.dumps(each).encode())
    | garbage,
    max_size=12,
)


def parsed(values: list[bytes | None], schema: pa.Schema = SCHEMA) -> tuple[list[dict[str, Any]], list[bool]]:
    columns, fits = parse_json(pa.array(values, pa.binary()), schema)
    return pa.RecordBatch.from_arrays(columns, schema=schema).to_pylist(), fits.to_pylist()


@given(values)
def test_neighbours_do_not_matter(values: list[bytes | None]) -> None:
    alone = [parsed([value]) for value in values]
    rows, fits = parsed(values)
    assert rows == [row for (row,), _ in alone]
    assert fits == [fit for _, (fit,) in alone]


@given(values)
def test_what_fits_is_what_python_reads(values: list[bytes | None]) -> None:
    rows, fits = parsed(values)
    for value, row, fit in zip(values, rows, fits, strict=True):
        if not fit:
            assert row == dict.fromkeys(SCHEMA.names)
            continue
        document = json.loads(value) if value is not None else {}
        assert isinstance(document, dict)
        at = document.get("at")
        assert row["id"] == document.get("id") and not isinstance(document.get("id"), bool | float)
        assert row["name"] == document.get("name")
        assert row["tags"] == document.get("tags")
        assert (row["at"] is None) == (at is None)
        if at is not None:
            assert row["at"]["x"] == pytest.approx(at.get("x"), nan_ok=True)
            assert row["at"]["day"] == (date.fromisoformat(at["day"]) if at.get("day") is not None else None)


@pytest.mark.parametrize(
    "flawed",
    [
        [b"null"],
        [b"null", b"null"],
        [b'{"id":1}{"id":2}', b""],
        [b'{"id":', b'1}{"id":2}'],
        [b'{"id":1} null {"id":2}'],
        [b'{"id":1},{"id":2}'],
        [b'[{"id":1}]'],
        [b'{"name":"\xff"}'],
        [b'{"id":1,"id":2}'],
        [b'"text"', b"1", b"true", b"NaN", b""],
    ],
)
def test_what_does_not_fit(flawed: list[bytes]) -> None:
    """A text that is only `null` ends a process that hands it to pyarrow."""
    rows, fits = parsed([*flawed, b'{"id":7}'])
    assert fits == [False] * len(flawed) + [True]
    assert [row["id"] for row in rows] == [None] * len(flawed) + [7]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.bool_(), "true", True),
        (pa.bool_(), "1", ...),
        (pa.int8(), "127", 127),
        (pa.int8(), "128", ...),
        (pa.int32(), "1.0", ...),
        (pa.int64(), '"1"', ...),
        (pa.float64(), "1", 1.0),
        (pa.string(), "1", ...),
        (pa.string(), '"}x{"', "}x{"),
        (pa.date32(), '"2024-02-29"', date(2024, 2, 29)),
        (pa.date32(), '"2023-02-29"', ...),
        (pa.date32(), "1", ...),
        (pa.timestamp("us", "UTC"), '"2024-01-01T00:00:00+02:00"', datetime(2023, 12, 31, 22, tzinfo=UTC)),
        (pa.timestamp("us"), '"2024-01-01T00:00:00.5"', datetime(2024, 1, 1, 0, 0, 0, 500_000)),
        (pa.timestamp("us", "UTC"), '"2024-01-01 00:00:00"', datetime(2024, 1, 1, tzinfo=UTC)),
        (pa.timestamp("us", "UTC"), "1700000000000", ...),
        (pa.decimal128(5, 2), "1.5", Decimal("1.50")),
        (pa.decimal128(5, 2), '"1.5"', Decimal("1.50")),
        (pa.decimal128(5, 2), "1.555", ...),
        (pa.list_(pa.int32()), "[1,null]", [1, None]),
        (pa.list_(pa.date32()), '["2024-01-01"]', [date(2024, 1, 1)]),
        (pa.list_(pa.int32()), "1", ...),
    ],
)  # fmt: skip
def test_types(kind: pa.DataType, text: str, expected: Any) -> None:
    """Three dots: the value does not fit."""
    rows, fits = parsed([b"{}", b'{"it":%s}' % text.encode(), b'{"it":null}'], pa.schema([("it", kind)]))
    assert [row["it"] for row in rows] == [None, None if expected is ... else expected, None]
    assert fits == [True, expected is not ..., True]


def test_texts_of_misfits() -> None:
    values = pa.array([b"{}", b"\xff", None, b""], pa.binary())
    _, fits = parse_json(values, SCHEMA)
    assert misfits(values, fits).to_pylist() == [None, "\ufffd", None, ""]

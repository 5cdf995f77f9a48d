"""The columns that a topic's values become in its plain table: a schema as Spark's SQL writes it. Pure.

    id bigint, name string, price decimal(10,2), at timestamp, tags array<string>, place struct<x: double>

Types are Spark's, by any of their SQL names, in any case. Names are as they stand in the JSON objects; those
with other characters than letters, digits and `_` stand in backticks. All columns are nullable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from faircopy.errors import FaircopyError

FIXED_COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "txid",
)
"""The columns that every plain table has."""
MISFIT_COLUMN = "_corrupt_record"
"""The text of a value that does not fit. Spark's JSON reader and `format("faircopy")` have the same name."""
DAY_COLUMN = "day"
RESERVED = {name.lower() for name in (*FIXED_COLUMNS, MISFIT_COLUMN, DAY_COLUMN)}

SCALARS = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
}
"""Names of types without parts, and the name that each has here."""
DECIMALS = ("decimal", "dec", "numeric")
PRECISION_MAX = 38
COLUMNS_MAX = 1_000
DEPTH_MAX = 8
KNOWN = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), string, date, timestamp, "
    "array<...>, struct<name: ...>"
)

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([A-Za-z0-9_]+)|(.))", re.DOTALL)
_FORBIDDEN = re.compile(r"[ ,;{}()\n\t=.`]")  # Delta tables can't have the most of them in names


class BadTableSchema(FaircopyError):
    """A schema is not one that a plain table can have."""


class ColumnType(NamedTuple):
    """A type: `kind` is one of the names in SCALARS' values, "decimal", "array" or "struct".

    `parts` are the fields of a struct, or the element of an array, which has no name.
    """

    kind: str
    precision: int = 0
    scale: int = 0
    parts: tuple[Column, ...] = ()

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.kind == "array":
            return f"array<{self.parts[0].type}>"
        if self.kind == "struct":
            return f"struct<{','.join(f'{quoted(each.name)}:{each.type}' for each in self.parts)}>"
        return self.kind


class Column(NamedTuple):
    """A column, or a field of a struct."""

    name: str
    type: ColumnType


def quoted(name: str) -> str:
    """A name as it stands in a schema."""
    return name if re.fullmatch(r"[A-Za-z0-9_]+", name) else f"`{name}`"


def format_columns(columns: Iterable[Column]) -> str:
    """The schema with these columns, as `parse_columns` reads it."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)


def parse_columns(schema: str) -> tuple[Column, ...]:
    """The columns of a schema. Raises BadTableSchema, which says what is wrong, and where."""
    parser = _Parser(schema)
    columns = parser.columns()
    if len(columns) > COLUMNS_MAX:
        raise BadTableSchema(f"it has {len(columns)} columns: give at most {COLUMNS_MAX}")
    _ensure_distinct(columns, "a plain table")
    for column in columns:
        if column.name.lower() in RESERVED:
            raise BadTableSchema(
                f"column {column.name!r} is one that plain tables have anyway ({', '.join(FIXED_COLUMNS)}, "
                f"{MISFIT_COLUMN}, {DAY_COLUMN}), and names differ in more than their case: name it otherwise"
            )
    return columns


def conflict(mine: Iterable[Column], others: Iterable[Column]) -> str | None:
    """How two schemas contradict each other, or None. A name must have one type, and one spelling."""
    known = {column.name.lower(): column for column in others}
    for column in mine:
        other = known.get(column.name.lower(), column)
        if other != column:
            return (
                f"column {quoted(column.name)} {column.type} here is {quoted(other.name)} {other.type} there"
            )
    return None


def _ensure_distinct(columns: Iterable[Column], where: str) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise BadTableSchema(
                f"column {column.name!r} comes twice in {where}; upper and lower case are the same"
            )
        seen.add(column.name.lower())


class _Token(NamedTuple):
    """A word, a name in backticks (without them), or a single character; "" at the end."""

    text: str
    at: int
    is_quoted: bool = False


class _Parser:
    """Reads a schema from left to right."""

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self._tokens = [*_tokens(schema), _Token("", len(schema))]
        self._next = 0

    def columns(self) -> tuple[Column, ...]:
        """All columns, to the end of the text."""
        columns = [self._column(in_struct=False, depth=0)]
        while self._peek().text:
            self._expect(",", "a comma, and the next column")
            columns.append(self._column(in_struct=False, depth=0))
        return tuple(columns)

    def _column(self, *, in_struct: bool, depth: int) -> Column:
        token = self._take()
        if not token.is_quoted and not re.fullmatch(r"[A-Za-z0-9_]+", token.text):
            raise self._refused(token, "the name of a column")
        if not token.text or _FORBIDDEN.search(token.text):
            raise BadTableSchema(
                f"{token.text!r} at character {token.at + 1} can't be the name of a column: it is empty, or "
                f"has a blank, a dot or one of ,;{{}}()=`, which Delta tables don't have"
            )
        if in_struct and self._peek().text == ":":
            self._take()
        return Column(token.text, self._type(token.text, depth))

    def _type(self, column: str, depth: int) -> ColumnType:
        token = self._take()
        word = "" if token.is_quoted else token.text.lower()
        if depth > DEPTH_MAX:
            raise BadTableSchema(f"column {column!r} is nested more than {DEPTH_MAX} deep")
        if word in SCALARS:
            return ColumnType(SCALARS[word])
        if word in DECIMALS:
            return self._decimal(token)
        if word == "array":
            self._expect("<", "<, and the type of the elements")
            element = Column("element", self._type(column, depth + 1))
            self._expect(">", ">, the end of the array")
            return ColumnType("array", parts=(element,))
        if word == "struct":
            return ColumnType("struct", parts=self._fields(column, depth))
        raise self._refused(token, f"the type of column {column!r}: one of {KNOWN}")

    def _decimal(self, word: _Token) -> ColumnType:
        precision, scale = 10, 0
        if self._peek().text == "(":
            self._take()
            precision = self._number()
            if self._peek().text == ",":
                self._take()
                scale = self._number()
            self._expect(")", ")")
        if not 1 <= precision <= PRECISION_MAX or not 0 <= scale <= precision:
            raise BadTableSchema(
                f"decimal({precision},{scale}) at character {word.at + 1}: give 1 to {PRECISION_MAX} digits "
                f"in all, and no more than these after the point"
            )
        return ColumnType("decimal", precision, scale)

    def _number(self) -> int:
        token = self._take()
        if not re.fullmatch(r"[0-9]{1,3}", token.text):
            raise self._refused(token, "a number of digits")
        return int(token.text)

    def _fields(self, column: str, depth: int) -> tuple[Column, ...]:
        self._expect("<", "<, and the fields of the struct")
        fields = [self._column(in_struct=True, depth=depth + 1)]
        while self._peek().text == ",":
            self._take()
            fields.append(self._column(in_struct=True, depth=depth + 1))
        self._expect(">", "a comma, or >, the end of the struct")
        _ensure_distinct(fields, f"the struct {column!r}")
        return tuple(fields)

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._peek()
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _expect(self, text: str, what: str) -> None:
        token = self._take()
        if token.is_quoted or token.text != text:
            raise self._refused(token, what)

    def _refused(self, token: _Token, expected: str) -> BadTableSchema:
        found = f"{token.text!r}" if token.text else "the end"
        return BadTableSchema(f"character {token.at + 1} is {found}, where there should be {expected}")


def _tokens(schema: str) -> Iterable[_Token]:
    at, end = 0, len(schema.rstrip())
    while at < end:
        match = _TOKEN.match(schema, at)
        assert match
        name, word, other = match.groups()
        start = match.end() - len(match[0].lstrip())
        if name is not None:
            yield _Token(name[1:-1].replace("``", "`"), start, is_quoted=True)
        else:
            yield _Token(word or other, start)
        at = match.end()

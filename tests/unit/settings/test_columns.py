"""The schema of a table's values, as text: what is taken, and what the errors say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.settings.columns import (
    DECIMALS,
    FIXED_COLUMNS,
    RESERVED,
    SCALARS,
    BadTableSchema,
    Column,
    ColumnType,
    conflict,
    format_columns,
    parse_columns,
)

names = st.text(st.sampled_from("abcXYZ019_-ü$"), min_size=1, max_size=6).filter(
    lambda name: name.lower() not in RESERVED
)


def fields(types: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[tuple[Column, ...]]:
    columns = st.lists(
        st.builds(Column, names, types), min_size=1, max_size=4, unique_by=lambda column: column.name.lower()
    )
    return columns.map(tuple)


scalars = st.sampled_from(sorted(set(SCALARS.values()))).map(ColumnType)
decimals = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: ColumnType("decimal", precision, scale))
)
types = st.recursive(
    scalars | decimals,
    lambda inner: st.one_of(
        inner.map(lambda kind: ColumnType("array", parts=(Column("element", kind),))),
        fields(inner).map(lambda parts: ColumnType("struct", parts=parts)),
    ),
    max_leaves=6,
)


@given(fields(types))
def test_what_is_written_is_read(columns: tuple[Column, ...]) -> None:
    assert parse_columns(format_columns(columns)) == columns


@given(st.text(st.sampled_from("ab ,<>():`struct array int decimal 12\n"), max_size=40))
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        columns = parse_columns(text)
    except BadTableSchema as error:
        assert str(error)
    else:
        assert parse_columns(format_columns(columns)) == columns


def test_spellings() -> None:
    text = " id LONG,\n`Total-1` Decimal , a array < struct<x:int,`y` REAL>>, d dec(3) , e numeric(5, 2)"
    assert format_columns(parse_columns(text)) == (
        "id bigint, `Total-1` decimal(10,0), a array<struct<x:int,y:float>>, d decimal(3,0), e decimal(5,2)"
    )
    assert {"decimal"} < set(DECIMALS)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "character 1 is the end, where there should be the name of a column"),
        ("id", "character 3 is the end, where there should be the type of column 'id': one of boolean, "),
        ("id doubel", "character 4 is 'doubel', where there should be the type of column 'id'"),
        ("id int name string", "character 8 is 'name', where there should be a comma, and the next column"),
        ("id int,", "character 8 is the end, where"),
        ("id int not null", "character 8 is 'not', where"),
        ("m map<string,int>", "character 3 is 'map', where"),
        ("b binary", "character 3 is 'binary', where"),
        ("a array<int", "character 12 is the end, where there should be >, the end of the array"),
        ("s struct<>", "character 10 is '>', where there should be the name of a column"),
        ("s struct<a int, A int>", "column 'A' comes twice in the struct 's'"),
        ("id int, ID int", "column 'ID' comes twice"),
        ("d decimal(39)", "decimal(39,0) at character 3: give 1 to 38 digits"),
        ("d decimal(3,4)", "decimal(3,4) at character 3"),
        ("d decimal(x)", "character 11 is 'x', where there should be a number of digits"),
        ("`a.b` int", "'a.b' at character 1 can't be the name of a column"),
        ("`` int", "'' at character 1 can't be the name of a column"),
        ("Timestamp timestamp", "column 'Timestamp' is one that plain tables have anyway"),
        ("_corrupt_record string", "is one that plain tables have anyway"),
        ("day date", "is one that plain tables have anyway"),
        ("a " + "array<" * 20 + "int" + ">" * 20, "nested more than 8 deep"),
        (", ".join(f"c{number} int" for number in range(1_001)), "1001 columns: give at most 1000"),
    ],
)
def test_errors_say_what_is_wrong_and_where(text: str, why: str) -> None:
    with pytest.raises(BadTableSchema) as refused:
        parse_columns(text)
    assert why in str(refused.value)


@pytest.mark.parametrize("name", FIXED_COLUMNS)
def test_names_of_the_fixed_columns_are_taken(name: str) -> None:
    with pytest.raises(BadTableSchema, match="anyway"):
        parse_columns(f"{name.upper()} string")


def test_conflicts() -> None:
    mine = parse_columns("id int, name string")
    assert conflict(mine, parse_columns("name string, other date")) is None
    assert conflict(mine, parse_columns("id bigint")) == "column id int here is id bigint there"
    assert conflict(mine, parse_columns("Name string")) == "column name string here is Name string there"

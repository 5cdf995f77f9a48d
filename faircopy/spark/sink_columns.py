"""The columns that a DataFrame must have to be written. Pure."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from faircopy.errors import FaircopyError

HEADERS = "array<struct<key:string,value:binary>>"
TEXT_OR_BYTES = (StringType, BinaryType)
KINDS: dict[str, tuple[type[DataType], ...]] = {
    "key": TEXT_OR_BYTES,
    "value": TEXT_OR_BYTES,
    "topic": (StringType,),
    "partition": (IntegerType,),
    "headers": (ArrayType,),
}
"""The columns that count, as in Spark's Kafka sink, and the types that they may have. Others are ignored."""


class BadColumns(FaircopyError):
    """The columns of a DataFrame can't be written."""


def ensure_columns(schema: StructType, topic: str | None) -> None:
    """Raise BadColumns for a DataFrame that can't be written."""
    fields = {field.name.lower(): field.dataType for field in schema.fields}
    if "value" not in fields:
        raise BadColumns(
            f"there is no column 'value' among {schema.fieldNames()}: select what is to be written as it"
        )
    if topic is None and "topic" not in fields:
        raise BadColumns("no topic is given: set option 'topic', or add a column 'topic'")
    for name, kinds in KINDS.items():
        if name in fields and not isinstance(fields[name], kinds):
            expected = (
                " or ".join(kind().simpleString() for kind in kinds if kind is not ArrayType) or HEADERS
            )
            raise BadColumns(f"column {name!r} is {fields[name].simpleString()}, not {expected}: cast it")
    if "headers" in fields and fields["headers"].simpleString() != HEADERS:
        raise BadColumns(f"column 'headers' is {fields['headers'].simpleString()}, not {HEADERS}")

"""The columns of rows that are read, as Spark's Kafka source names them, and what becomes of bad values."""

from __future__ import annotations

COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
    "txid": "string",
}
"""The columns of a row, with Spark's types; `headers` only if they are asked for."""

PERMISSIVE, FAILFAST, DROPMALFORMED = "permissive", "failfast", "dropmalformed"
"""What option `value.mode` says of values that are not JSON with the columns that are asked for."""
CORRUPT = "_corrupt_record"
"""The column with the text of such values."""

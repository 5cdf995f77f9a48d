"""The names of a table's files. They show whether a data file was ever published.

    d-0000000040-120..179.1f2e3d4c.parquet   published by entry 40: offsets 120 to 179 of its only partition
    d-0000000041-4p.1f2e3d4c.parquet         published by entry 41: rows of four partitions
    d-0000000032-schema.1f2e3d4c.parquet     no rows: Spark learns the columns from it
    S-9999999951-schema.1f2e3d4c.parquet     the same, in its place, since entry 48 brought more columns
    _m=0000000047-0.1f2e3d4c._COPYING_       merged from older files, listed by entry 47
    .d-0000000040-4p.parquet.tmp             being written
    _spark_metadata, _delta_log, _faircopy.json, _faircopy.lock

While a table is being deleted, its directory is called .orders~

The eight hexadecimal digits are the file's checksum (`publish.checksum`), known once it is written.

Merged files repeat the rows of smaller ones. So only readers that know from a log which of both to read may
find them: Spark, which reads a file that its log lists, if it lies in the table's own directory, and if its
name has no leading dot, and a leading underscore only with a "=". Everything else that lists a directory
leaves such a name out: Arrow and pandas for the underscore, Spark for the ending (that of HDFS's unfinished
copies), DuckDB and polars because it is not `.parquet`.

Readers take the columns from the first file that they find, by its name (Spark, pyarrow, polars, DuckDB). So
the file without rows must be the first one, also before merged files, and the newest one before others: its
number is 9,999,999,999 less that of the entry that lists it.

Rows whose values do not fit the schema may have a table of their own, beside the one that lacks them
(`plain.bad.values`). For the table `orders` its directory is orders~bad
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_DOOMED = "~"  # no topic, and so no table, can have it in its name
_DEAD_LETTERS = "~bad"
_CHECKSUM = re.compile(r"\.([0-9a-f]{8})\.(?:parquet|_COPYING_)")
_DATA_FILE = re.compile(r"d-(\d{10,19})-[^/]*\.parquet|_m=(\d{10,19})-[^/]*\._COPYING_")
_LATER_SCHEMA = re.compile(r"S-(\d{10})-schema\.[^/]*parquet")
_LAST = 9_999_999_999
_MERGED = "_m="
_SCHEMA = re.compile(r"d-\d{10,19}-schema\.[^/]*parquet")
TEMPORARY = ".tmp"

SPARK_LOG = "_spark_metadata"
DELTA_LOG = "_delta_log"
STATE = "_faircopy.json"
LOCK = "_faircopy.lock"

UNREADABLE = frozenset({SPARK_LOG, DELTA_LOG, "_SUCCESS"})
"""Names that no table's directory can have: Spark takes all that is in a directory with the first one for its
log, and finds none with the last one; readers of Delta tables do not find a log in one with the second.
"""


def published(sequence: int, ranges: Sequence[tuple[int, int]]) -> str:
    """The data file of entry `sequence`, before its checksum is known; `ranges` has first and end offset of
    each partition in it.
    """
    if len(ranges) != 1:
        return f"d-{sequence:010}-{len(ranges)}p.parquet"
    first, end = ranges[0]
    return f"d-{sequence:010}-{first}..{end - 1}.parquet"


def merged(sequence: int, number: int) -> str:
    """The `number`-th merged file that entry `sequence` lists."""
    return f"{_MERGED}{sequence:010}-{number}._COPYING_"


def is_merged(name: str) -> bool:
    """Whether this is a merged file, which repeats the rows of others."""
    return name.startswith(_MERGED)


def is_schema(name: str) -> bool:
    """Whether this is the file without rows."""
    return _SCHEMA.fullmatch(name) is not None or _LATER_SCHEMA.fullmatch(name) is not None


def schema(sequence: int) -> str:
    """The file without rows that the first entry lists."""
    return f"d-{sequence:010}-schema.parquet"


def later_schema(sequence: int) -> str:
    """The file without rows that entry `sequence` lists in place of a former one."""
    return f"S-{_LAST - sequence:010}-schema.parquet"


def with_checksum(name: str, checksum: int) -> str:
    """The name of a data file that is written completely."""
    stem, _, ending = name.rpartition(".")
    return f"{stem}.{checksum:08x}.{ending}"


def checksum_of(name: str) -> int | None:
    """The checksum in the name of a data file, or None."""
    match = _CHECKSUM.search(name)
    return int(match[1], 16) if match and match.end() == len(name) else None


def temporary(name: str) -> str:
    """The name of a file while it is being written."""
    return f".{name}{TEMPORARY}"


def doomed(table: str) -> str:
    """The name of a table's directory while it is being deleted."""
    return f".{table}{_DOOMED}"


def dead_letters(table: str) -> str:
    """The name of the table with those rows of `table` whose values do not fit."""
    return f"{table}{_DEAD_LETTERS}"


def all_of(table: str) -> list[str]:
    """The names of all directories that belong to a table, also while they are being deleted."""
    return [each for name in (table, dead_letters(table)) for each in (name, doomed(name))]


def is_temporary(name: str) -> bool:
    """Whether this is the name of a file that is being written."""
    return name.startswith(".") and name.endswith(TEMPORARY)


def sequence_of(name: str) -> int | None:
    """The entry that lists, or was meant to list, a data file; None for files of other kinds."""
    if later := _LATER_SCHEMA.fullmatch(name):
        return _LAST - int(later[1])
    match = _DATA_FILE.fullmatch(name)
    return int(match[1] or match[2]) if match else None

"""A data source in Python that writes nothing: it counts its rows. It shows what Spark's own way of handing
rows to Python costs, which is the floor of any sink in Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType


@dataclass
class Counted(WriterCommitMessage):
    """How many rows a task got."""

    rows: int


class CountingWriter(DataSourceArrowWriter):
    """Counts rows."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Counted:
        """Count the rows of one task."""
        return Counted(sum(batch.num_rows for batch in iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """There is nothing to commit."""


class CountingDataSource(DataSource):
    """The data source of this sink."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "faircopy_counting"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Counts once."""
        return CountingWriter()

"""The data source that Spark finds under the name `faircopy`."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
)
from pyspark.sql.types import StructType

from faircopy.publish.arrow import ensure_arrow
from faircopy.spark.options import BadOption
from faircopy.spark.sink import BatchWriter, SinkOptions, StreamWriter
from faircopy.spark.source import BatchReader, StreamReader
from faircopy.spark.source_options import SourceOptions


class FaircopyDataSource(DataSource):
    """Reads committed messages, whole transactions at a time, and writes each row exactly once."""

    def __init__(self, options: dict[str, str]) -> None:
        """Raises NoArrow: without pyarrow, Spark's own processes would just end, and say nothing of it."""
        ensure_arrow('format("faircopy")')
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "faircopy"

    def schema(self) -> str:
        """The columns of what is read."""
        return SourceOptions.read(self.options).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads once."""
        return BatchReader(schema, SourceOptions.read(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Reads micro-batches."""
        return StreamReader(schema, SourceOptions.read(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Writes once."""
        ensure_append(overwrite)
        return BatchWriter(schema, SinkOptions.read(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Writes micro-batches."""
        ensure_append(overwrite)
        return StreamWriter(schema, SinkOptions.read(self.options))


def ensure_append(overwrite: bool) -> None:
    """Raise BadOption for a write that would replace what is there."""
    if overwrite:
        raise BadOption('a log is only appended to: use mode("append"), or output mode append or update')

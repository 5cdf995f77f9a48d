"""The rows of one range of the log: what a task of the source yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from faircopy.client import EARLIEST, BlockingClient, DataLost
from faircopy.spark.decoding import Txids, for_spark, rows_of
from faircopy.spark.json_values import JsonColumns
from faircopy.spark.source_columns import CORRUPT
from faircopy.spark.source_options import SourceOptions
from faircopy.spark.splits import Split


class TaskReader:
    """Reads what a task is to read. `lose` is told what is gone, and may raise."""

    def __init__(
        self, client: BlockingClient, schema: StructType, options: SourceOptions, lose: Callable[[str], None]
    ) -> None:
        self._client = client
        self._schema = schema
        self._options = options
        self._lose = lose

    def read(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The rows of a split, with Spark's types. Raises what `lose` raises."""
        schema = to_arrow_schema(self._schema, timezone="UTC")
        rows_read = 0
        for batch in self._rows(split):
            rows_read += batch.num_rows
            yield for_spark(self._decoded(batch), schema)
        if rows_read < split.end - split.start:
            missing = split.end - split.start - rows_read
            self._lose(
                f"{missing} messages between offsets {split.start} and {split.end} of "
                f"{split.topic}-{split.partition} can't be read or decoded"
            )

    def _rows(self, split: Split) -> Iterator[pa.RecordBatch]:
        """The rows that are there. What is gone, also while others are read, is told to `lose`."""
        while split.start < split.end:
            try:
                for batch in self._batches(split):
                    yield batch
                    split = split._replace(start=batch.column("offset")[-1].as_py() + 1)
                return
            except DataLost as error:
                self._lose(str(error))
            split = split._replace(start=self._next_there(split))

    def _batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        where, topic_id = split[:4], split.topic_id
        has_txids = "txid" in self._schema.fieldNames()
        txids = Txids(self._client.spans(*where, topic_id=topic_id) if has_txids else [])
        for piece in self._client.read_pieces(*where, topic_id=topic_id):
            yield from rows_of(piece, split, txids)

    def _next_there(self, split: Split) -> int:
        """The first offset that is left of a split; its end if there is none."""
        try:
            (earliest,) = self._client.offsets_at(
                {split[:2]: EARLIEST}, topic_ids={split.topic: split.topic_id}
            ).values()
        except DataLost:
            return split.end
        return earliest if earliest is not None and earliest > split.start else split.end

    def _decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self._json.add_to(batch) if self._json is not None else batch

    @cached_property
    def _json(self) -> JsonColumns | None:
        if self._options.value_schema is None:
            return None
        metadata = self._options.metadata
        names = [name for name in self._schema.fieldNames() if name not in (*metadata, CORRUPT)]
        fields = StructType([self._schema[name] for name in names])
        return JsonColumns(
            to_arrow_schema(fields, timezone="UTC"),
            self._options.value_mode,
            has_corrupt_column=CORRUPT in self._schema.fieldNames(),
        )

"""faircopy's sink without transactions: the same rows, encoded the same way, as plain messages. It shows what
the transaction of a micro-batch costs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa
from crc32c import crc32c
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from faircopy.client.blocking import BlockingMember, Loop
from faircopy.client.brokers import Brokers
from faircopy.client.member import JointMember
from faircopy.client.outgoing import Describe, Encode, ProducerIdentity, nowhere
from faircopy.spark.data_source import FaircopyDataSource
from faircopy.spark.sink import BatchWriter, SinkOptions, TaskWrote
from faircopy.wire.batch import CRC_START

TIMEOUT_SECONDS = 60.0
NOBODY = ProducerIdentity(-1, -1)
ATTRIBUTES = struct.Struct(">h")
ATTRIBUTES_AT, CRC_AT, TRANSACTIONAL = 21, 17, 0x10


class PlainMember(JointMember):
    """Sends plain batches, of no producer and no transaction."""

    async def send_batch(
        self, topic: str, partition: int, records: int, encode: Encode, describe: Describe = nowhere
    ) -> None:
        """Send a batch, without the mark of a transaction."""
        await super().send_batch(
            topic, partition, records, lambda _identity, _sequence: plain(encode), describe
        )

    async def _add(self, topic: str, partition: int) -> None:
        """There is no transaction."""

    def _produce(self, topic: str, partition: int, payload: bytes | bytearray) -> dict[str, object]:
        return super()._produce(topic, partition, payload) | {"transactional_id": None}


def plain(encode: Encode) -> bytes:
    """A batch without the mark of a transaction."""
    batch = bytearray(encode(NOBODY, -1))
    (attributes,) = ATTRIBUTES.unpack_from(batch, ATTRIBUTES_AT)
    ATTRIBUTES.pack_into(batch, ATTRIBUTES_AT, attributes & ~TRANSACTIONAL)
    batch[CRC_AT:CRC_START] = crc32c(memoryview(batch)[CRC_START:]).to_bytes(4, "big")
    return bytes(batch)


class PlainWriter(BatchWriter):
    """Writes what it gets at once. What a task has written is there, even if the job fails."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrote:
        """Write the rows of one task."""
        context = TaskContext.get()
        assert context is not None
        brokers = Brokers([self._options.servers], self._options.client_id)
        member = PlainMember(brokers, "", -1, -1, TIMEOUT_SECONDS)
        self._write_rows(BlockingMember(Loop(), member), context.partitionId(), iterator)
        return TaskWrote(self._key, None)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Everything is there."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing can be taken back."""


class PlainDataSource(FaircopyDataSource):
    """The data source of this sink."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "faircopy_plain"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Writes once."""
        return PlainWriter(schema, SinkOptions.read(self.options))

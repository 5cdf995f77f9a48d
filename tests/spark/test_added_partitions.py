"""Partitions that are added between two batches of the sink, or while a task writes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from faircopy.client import BlockingClient
from faircopy.wire.murmur2 import partition_for
from tests.broker_process import BrokerProcess
from tests.client_library.test_added_partitions import MORE, add_partitions, written
from tests.joint.asking import PARTITIONS, TOPIC
from tests.spark.test_sink import write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = [b"%d" % number for number in range(40)]


def test_the_next_batch_goes_to_added_partitions(spark: SparkSession, sink_broker: BrokerProcess) -> None:
    frame = spark.range(len(KEYS)).selectExpr("cast(id as string) key", "'v' value").repartition(2)
    write(frame, sink_broker)
    add_partitions(sink_broker)
    write(frame, sink_broker)
    write(spark.range(1).selectExpr("'named' key", "'v' value", f"{MORE - 1} partition"), sink_broker)
    with BlockingClient(sink_broker.address) as client:
        expected = {key: {partition_for(key, PARTITIONS), partition_for(key, MORE)} for key in KEYS}
        assert written(client) == expected | {b"named": {MORE - 1}}


def test_a_row_may_name_a_partition_that_is_added_meanwhile(
    sink_broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import TaskContext

    monkeypatch.setattr(
        TaskContext, "get", lambda: SimpleNamespace(partitionId=lambda: 0, taskAttemptId=lambda: 0)
    )
    writer = writer_of(sink_broker)
    writer.commit([writer.write(rows_while_partitions_are_added(sink_broker))])
    with BlockingClient(sink_broker.address) as client:
        assert written(client) == {b"before": {0}, b"after": {MORE - 1}}
    with pytest.raises(Exception, match=f"partition {MORE} of topic '{TOPIC}' is not there"):
        writer_of(sink_broker).write(iter([rows_of(b"beyond", MORE)]))


def rows_while_partitions_are_added(broker: BrokerProcess) -> Iterator[Any]:
    yield rows_of(b"before", 0)
    add_partitions(broker)
    yield rows_of(b"after", MORE - 1)


def rows_of(key: bytes, partition: int) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict({"key": [key], "value": [b"v"], "partition": [partition]})


def writer_of(broker: BrokerProcess) -> Any:
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType

    from faircopy.spark.data_source import FaircopyDataSource

    columns = StructType(
        [
            StructField("key", StringType()),
            StructField("value", StringType()),
            StructField("partition", IntegerType()),
        ]
    )
    return FaircopyDataSource({"bootstrap.servers": broker.address, "topic": TOPIC}).writer(
        columns, overwrite=False
    )

"""A topic is deleted and made anew between the planning of a read and its tasks: format("faircopy") reads
nothing of the new one in place of the old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from faircopy.client import BlockingClient
from tests.broker_process import BrokerProcess
from tests.spark.query import WAIT_SECONDS, finish
from tests.spark.test_source import broker_with_topics, make_topics, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 20
MADE_ANEW = r"orders was deleted, or deleted and made anew(?s:.*)failOnDataLoss(?s:.*)new checkpoint"
Batches = dict[int, list[str]]


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_with_topics(tmp_path_factory) as broker:
        yield broker


def write(broker: BrokerProcess, topic: str, value: str) -> None:
    """So many rows in one transaction."""
    with BlockingClient(broker.address) as client, client.begin() as transaction:
        for number in range(ROWS):
            transaction.send(topic, value.encode(), partition=number % 2)


def make_anew(broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    for deleted in admin.delete_topics([topic]).values():
        deleted.result(WAIT_SECONDS)
    make_topics(broker, topic)


def run(frame: DataFrame, checkpoint: Path, *, fails: bool = False) -> Batches:
    """The values of each micro-batch of a stream up to its present end. `fails`: the first one does."""
    batches: Batches = {}

    def take(rows: DataFrame, number: int) -> None:
        if fails:
            raise RuntimeError("this batch fails on purpose")
        batches[number] = [row.value.decode() for row in rows.select("value").collect()]

    query = (
        frame.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    finish(query)
    return batches


def test_a_repeated_micro_batch_delivers_no_rows_of_another_topic(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    write(broker, "orders", "old")
    write(broker, "payments", "kept")
    frame = stream(spark, broker)
    with pytest.raises(Exception, match="fails on purpose"):
        run(frame, tmp_path, fails=True)
    make_anew(broker, "orders")
    write(broker, "orders", "new")
    with pytest.raises(Exception, match=MADE_ANEW):
        run(frame, tmp_path)
    going_on = run(stream(spark, broker, failOnDataLoss="false"), tmp_path)
    assert going_on == {0: ["kept"] * ROWS, 1: ["new"] * ROWS}


def test_a_repeated_micro_batch_of_a_topic_that_came_later_and_is_gone(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    """It was planned from the start of a topic that the micro-batch before did not know."""
    options: dict[str, Any] = {"subscribe": None, "subscribePattern": "payments|later"}
    write(broker, "payments", "first")
    assert run(stream(spark, broker, **options), tmp_path) == {0: ["first"] * ROWS}
    make_topics(broker, "later")
    write(broker, "later", "old")
    with pytest.raises(Exception, match="fails on purpose"):
        run(stream(spark, broker, **options), tmp_path, fails=True)
    make_anew(broker, "later")
    with pytest.raises(Exception, match=MADE_ANEW.replace("orders", "later")):
        run(stream(spark, broker, **options), tmp_path)
    write(broker, "later", "new")
    going_on = run(stream(spark, broker, **options, failOnDataLoss="false"), tmp_path)
    assert going_on == {1: [], 2: ["new"] * ROWS}


@pytest.mark.parametrize("columns", [["value"], ["value", "txid"]])
def test_a_batch_that_was_planned_for_a_topic_reads_no_other(
    broker: BrokerProcess, columns: list[str]
) -> None:
    from faircopy.spark.data_source import FaircopyDataSource

    def planned(**options: str) -> tuple[Any, list[Any]]:
        given = {"bootstrap.servers": broker.address, "subscribe": "orders,payments"} | options
        source = FaircopyDataSource(given)
        reader = source.reader(schema_of(source, columns))
        return reader, list(reader.partitions())

    write(broker, "orders", "old")
    write(broker, "payments", "kept")
    (reader, tasks), (lenient, lenient_tasks) = planned(), planned(failOnDataLoss="false")
    assert sorted(values_of(reader, tasks)) == ["kept"] * ROWS + ["old"] * ROWS
    make_anew(broker, "orders")
    write(broker, "orders", "new")
    with pytest.raises(Exception, match=MADE_ANEW):
        values_of(reader, tasks)
    assert values_of(lenient, lenient_tasks) == ["kept"] * ROWS


def schema_of(source: Any, columns: list[str]) -> Any:
    from pyspark.sql.types import StructType, _parse_datatype_string

    whole = _parse_datatype_string(source.schema())
    assert isinstance(whole, StructType)
    return StructType([whole[name] for name in columns])


def values_of(reader: Any, tasks: list[Any]) -> list[str]:
    batches = [batch for task in tasks for batch in reader.read(task)]
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


# -- the sink ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later_tasks", [0, 1])
def test_a_batch_is_not_committed_for_a_topic_that_its_tasks_did_not_all_write_to(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, later_tasks: int
) -> None:
    """The rows of tasks that wrote before the topic was deleted are gone with it."""
    from pyspark import TaskContext

    monkeypatch.setattr(
        TaskContext, "get", lambda: SimpleNamespace(partitionId=lambda: 0, taskAttemptId=lambda: 0)
    )
    first, repeated = writer_of(broker), writer_of(broker)
    messages = [write_rows(first, "before")]
    make_anew(broker, "orders")
    messages += [write_rows(first, "after") for _ in range(later_tasks)]
    with pytest.raises(
        Exception, match=r"topic orders was deleted, or deleted and made anew(?s:.*)run it again"
    ):
        first.commit(messages)
    first.abort(messages)
    assert values_in(broker, "orders") == []
    repeated.commit([write_rows(repeated, "again")])
    assert values_in(broker, "orders") == [b"again"]


def writer_of(broker: BrokerProcess) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    from faircopy.spark.data_source import FaircopyDataSource

    options = {"bootstrap.servers": broker.address, "topic": "orders", "job": "a job"}
    return FaircopyDataSource(options).writer(
        StructType([StructField("value", StringType())]), overwrite=False
    )


def write_rows(writer: Any, value: str) -> Any:
    import pyarrow as pa

    return writer.write(iter([pa.RecordBatch.from_pydict({"value": [value]})]))


def values_in(broker: BrokerProcess, topic: str) -> list[bytes | None]:
    with BlockingClient(broker.address) as client:
        cut = client.cut([(topic, number) for number in range(client.partitions_of(topic))])
        return [record.value for place, ends in cut.items() for record in client.read(*place, *ends)]

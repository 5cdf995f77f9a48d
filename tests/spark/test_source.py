"""format("faircopy") as a source, with real Spark: whole transactions, and what is lost is an error."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.client import BlockingClient
from tests.broker_process import BrokerProcess
from tests.spark.query import WAIT_SECONDS, finish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS = ("orders", "payments")
PARTITIONS = 2
TRANSACTIONS = 40
PER_PARTITION = 3


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with broker_with_topics(tmp_path_factory) as broker:
        yield broker


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker for all that is refused: nobody ever writes to it."""
    with broker_with_topics(tmp_path_factory) as broker:
        yield broker


@contextmanager
def broker_with_topics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("source"), "plain.enabled=false") as broker:
        make_topics(broker, *TOPICS)
        yield broker


def make_topics(broker: BrokerProcess, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in names]).values():
        made.result(WAIT_SECONDS)


def write(broker: BrokerProcess, first: int = 0, count: int = TRANSACTIONS) -> None:
    """Transactions over all partitions of both topics, and an aborted one after each."""
    with BlockingClient(broker.address) as client:
        for number in range(first, first + count):
            with client.begin() as transaction:
                for topic in TOPICS:
                    for partition in range(PARTITIONS):
                        for part in range(PER_PARTITION):
                            value = b"%d:%d" % (number, part)
                            transaction.send(topic, value, key=b"k", partition=partition)
            aborted = client.begin()
            aborted.send(TOPICS[0], b"aborted", partition=0)
            aborted.abort()


def write_plain(broker: BrokerProcess, partition: int, rows: int, batches: int) -> None:
    """Batches of so many rows, of no transaction."""
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 10_000})
    for _ in range(batches):
        for number in range(rows):
            producer.produce("orders", b"%d" % number, partition=partition)
        producer.flush(WAIT_SECONDS)


def read(spark: SparkSession, broker: BrokerProcess, **options: Any) -> DataFrame:
    reader = spark.read.format("faircopy").option("kafka.bootstrap.servers", broker.address)
    for name, value in ({"subscribe": ",".join(TOPICS)} | options).items():
        if value is not None:
            reader = reader.option(name, value)
    return reader.load()


def stream(spark: SparkSession, broker: BrokerProcess, **options: Any) -> DataFrame:
    reader = spark.readStream.format("faircopy").option("kafka.bootstrap.servers", broker.address)
    for name, value in ({"subscribe": ",".join(TOPICS), "startingOffsets": "earliest"} | options).items():
        if value is not None:
            reader = reader.option(name, value)
    return reader.load()


def delete_below(broker: BrokerProcess, topic: str, partition: int, offset: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    for deleted in admin.delete_records([KafkaPartition(topic, partition, offset)]).values():
        deleted.result(WAIT_SECONDS)


def collect(frame: DataFrame, directory: Path) -> dict[int, list[tuple[str, str | None]]]:
    """The (value, txid) pairs of each micro-batch of a stream, up to its present end."""
    batches: dict[int, list[tuple[str, str | None]]] = {}

    def take(rows: DataFrame, number: int) -> None:
        batches[number] = [(row.value.decode(), row.txid) for row in rows.select("value", "txid").collect()]

    run(frame, directory, take)
    return batches


def run(frame: DataFrame, directory: Path, take: Callable[[DataFrame, int], None]) -> None:
    """Give the micro-batches of a stream, up to its present end, to a function."""
    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(directory))
    finish(query.trigger(availableNow=True).start())


def whole(rows: list[tuple[str, str | None]]) -> set[int]:
    """The numbers of the transactions in some rows, each of which is whole."""
    parts: dict[str | None, list[str]] = defaultdict(list)
    for value, txid in rows:
        parts[txid].append(value)
    numbers = set()
    for txid, values in parts.items():
        assert txid is not None
        (number,) = {int(value.split(":")[0]) for value in values}
        assert len(values) == len(TOPICS) * PARTITIONS * PER_PARTITION, f"{txid} is divided"
        numbers.add(number)
    return numbers


# -- batches -------------------------------------------------------------------------------------------------


def test_a_batch_has_the_columns_of_kafkas_source_and_txid(
    spark: SparkSession, broker: BrokerProcess
) -> None:
    write(broker)
    frame = read(spark, broker)
    assert frame.dtypes == [
        ("key", "binary"), ("value", "binary"), ("topic", "string"), ("partition", "int"),
        ("offset", "bigint"), ("timestamp", "timestamp"), ("timestampType", "int"), ("txid", "string"),
    ]  # fmt: skip
    rows = frame.collect()
    assert whole([(row.value.decode(), row.txid) for row in rows]) == set(range(TRANSACTIONS))
    assert {row.key for row in rows} == {b"k"}
    assert Counter(row.topic for row in rows) == dict.fromkeys(TOPICS, len(rows) // 2)
    offsets = sorted(row.offset for row in rows if (row.topic, row.partition) == ("orders", 1))
    assert offsets == list(range(TRANSACTIONS * PER_PARTITION))
    assert "headers" in read(spark, broker, includeHeaders="true").columns
    assert read(spark, broker, minPartitions=8).rdd.getNumPartitions() >= 8
    assert read(spark, broker, maxRecordsPerPartition=10).count() == len(rows)


def test_offsets_and_times_bound_a_batch(spark: SparkSession, broker: BrokerProcess) -> None:
    write(broker)
    some = json.dumps({"orders": {"0": 10, "1": -1}})
    until = json.dumps({"orders": {"0": 25, "1": -1}})
    bounded = read(spark, broker, subscribe="orders", startingOffsets=some, endingOffsets=until)
    assert sorted(row.offset for row in bounded.collect()) == list(range(10, 25))
    assert (
        read(spark, broker, assign='{"orders": [1]}', subscribe=None).count() == TRANSACTIONS * PER_PARTITION
    )
    assert (
        read(spark, broker, subscribePattern="pay.*", subscribe=None).select("topic").distinct().count() == 1
    )
    middle = read(spark, broker).selectExpr("unix_millis(timestamp) at").orderBy("at").collect()[200].at
    later = read(spark, broker, startingTimestamp=middle).count()
    earlier = read(spark, broker, endingTimestamp=middle).count()
    assert later + earlier == read(spark, broker).count()
    assert 0 < earlier <= 200
    by_topic = json.dumps({"orders": {"0": middle, "1": middle}})
    assert 0 < read(spark, broker, subscribe="orders", startingOffsetsByTimestamp=by_topic).count() < later
    with pytest.raises(Exception, match=r"nothing in .* is as new"):
        read(spark, broker, startingTimestamp=middle + 10**9).count()


@pytest.mark.parametrize("ending", [None, json.dumps({"orders": {"0": 50, "1": -1}})])
def test_a_batch_may_start_where_the_log_no_longer_is(
    spark: SparkSession, broker: BrokerProcess, ending: str | None
) -> None:
    write(broker)
    delete_below(broker, "orders", 0, 20)
    ends = {"0": 50 if ending else TRANSACTIONS * PER_PARTITION, "1": TRANSACTIONS * PER_PARTITION}
    options = {"subscribe": "orders", "endingOffsets": ending}
    first = json.dumps({"orders": {"0": 0, "1": 7}})
    with pytest.raises(Exception, match=r"orders-0(?s:.*)failOnDataLoss"):
        read(spark, broker, startingOffsets=first, **options).collect()
    left = read(spark, broker, startingOffsets=first, failOnDataLoss="false", **options).collect()
    found = sorted((row.partition, row.offset) for row in left)
    assert found == [
        *((0, each) for each in range(20, ends["0"])),
        *((1, each) for each in range(7, ends["1"])),
    ]
    beyond = json.dumps({"orders": {"0": 1_000, "1": 7}})
    with pytest.raises(Exception, match=r"orders-0(?s:.*)"):
        read(spark, broker, startingOffsets=beyond, subscribe="orders").collect()
    left = read(spark, broker, startingOffsets=beyond, failOnDataLoss="false", **options).collect()
    assert sorted((row.partition, row.offset) for row in left) == [(1, each) for each in range(7, ends["1"])]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribe": None}, "give exactly one of the options"),
        ({"assign": "{}"}, "give exactly one of the options"),
        ({"startingOffsets": "yesterday"}, "option 'startingOffsets'"),
        ({"startingOffsets": '{"others": {"0": 1}}'}, "not subscribed to"),
        ({"value.format": "json"}, "belong together"),
        ({"value.format": "json", "value.schema": "topic string"}, "columns that a row has already: topic"),
        ({"subscribe": "missing"}, "there is no topic or partition missing"),
        ({"startingOffsets": '{"orders": {"0": 7}}'}, "OFFSET_OUT_OF_RANGE"),
    ],
)
def test_what_can_not_be_read_is_refused(
    spark: SparkSession, untouched: BrokerProcess, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Exception, match=reason):
        read(spark, untouched, **options).count()


def test_a_message_may_have_many_headers(spark: SparkSession, broker: BrokerProcess) -> None:
    many = [(f"h{number}", b"x") for number in range(12_000)]
    with BlockingClient(broker.address) as client, client.begin() as transaction:
        transaction.send("orders", b"many", headers=many, partition=0)
        transaction.send("orders", b"none", partition=0)
    assert sorted(row.value for row in read(spark, broker).collect()) == [b"many", b"none"]
    first, second = read(spark, broker, includeHeaders="true").orderBy("offset").collect()
    assert [(header.key, bytes(header.value)) for header in first.headers] == many
    assert second.headers is None


def test_json_becomes_columns(spark: SparkSession, broker: BrokerProcess) -> None:
    with BlockingClient(broker.address) as client, client.begin() as transaction:
        for number in range(500):
            text = json.dumps({"id": number, "name": f"n{number}", "at": {"x": number / 2}, "more": 1})
            transaction.send("orders", text.encode(), partition=0)
    options = {"value.format": "json", "value.schema": "id bigint, name string, at struct<x: double>"}
    rows = read(spark, broker, **options).orderBy("id").collect()
    assert [(row.id, row.name, row.at.x) for row in rows] == [(n, f"n{n}", n / 2) for n in range(500)]
    assert "value" not in rows[0]
    with BlockingClient(broker.address) as client, client.begin() as transaction:
        transaction.send("orders", b"{not json", partition=0)
        transaction.send("orders", b'{"id": 500}', partition=0)
    kept = read(spark, broker, **options).where("_corrupt_record is not null or id = 500").collect()
    assert sorted((row.id or -1, row._corrupt_record) for row in kept) == [(-1, "{not json"), (500, None)]
    assert read(spark, broker, **options, **{"value.mode": "dropmalformed"}).count() == 501
    with pytest.raises(Exception, match="orders-0 at offset 500 is not a JSON object"):
        read(spark, broker, **options, **{"value.mode": "failfast"}).count()


def test_a_task_goes_on_where_the_log_begins_now(spark: SparkSession, broker: BrokerProcess) -> None:
    """Messages are deleted while a task reads them, and not all that it has yet to read."""
    rows, left = 20, 18
    with BlockingClient(broker.address) as client, client.begin() as transaction:
        for number in range(rows):
            transaction.send("orders", b"%d" % number + bytes(900_000), partition=0)
    strict, lenient = (reader_of(broker, "orders", failOnDataLoss=flag) for flag in ("true", "false"))
    (strict_task,), (lenient_task,) = strict.partitions(), lenient.partitions()
    found, failing = lenient.read(lenient_task), strict.read(strict_task)
    seen = [next(found).column("offset")[0].as_py(), next(failing).column("offset")[0].as_py()]
    delete_below(broker, "orders", 0, left)
    offsets = [offset for batch in found for offset in batch.column("offset").to_pylist()]
    assert seen == [0, 0] and set(range(left, rows)) < {0, *offsets} < set(range(rows))
    assert offsets == sorted(set(offsets))
    with pytest.raises(Exception, match=r"orders-0(?s:.*)failOnDataLoss"):
        list(failing)


def reader_of(broker: BrokerProcess, topics: str, **options: str) -> Any:
    """A reader, to plan and to read with no job of Spark around it."""
    from pyspark.sql.types import _parse_datatype_string

    from faircopy.spark.data_source import FaircopyDataSource

    source = FaircopyDataSource({"bootstrap.servers": broker.address, "subscribe": topics} | options)
    return source.reader(_parse_datatype_string(source.schema()))  # type: ignore[arg-type]


# -- streams -------------------------------------------------------------------------------------------------


def test_each_micro_batch_holds_whole_transactions_of_all_topics(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    write(broker)
    batches = collect(stream(spark, broker, maxOffsetsPerTrigger=100), tmp_path)
    assert len(batches) > 3
    found = [number for rows in batches.values() for number in whole(rows)]
    assert sorted(found) == list(range(TRANSACTIONS)), "each once"
    assert all(len(rows) <= 100 for rows in batches.values())
    broker.restart()
    write(broker, TRANSACTIONS, 5)
    more = collect(stream(spark, broker, maxOffsetsPerTrigger=100), tmp_path)
    assert {number for rows in more.values() for number in whole(rows)} == set(
        range(TRANSACTIONS, TRANSACTIONS + 5)
    )


def test_a_transaction_above_the_limit_comes_whole(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    write(broker, 0, 3)
    batches = collect(stream(spark, broker, maxOffsetsPerTrigger=1), tmp_path)
    assert sorted(number for rows in batches.values() for number in whole(rows)) == [0, 1, 2]


def test_all_that_was_there_is_read_while_a_partition_grows(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    """Each micro-batch could be filled with what has come since the query began."""
    large, small, limit = 100, 20, 50
    write_plain(broker, 0, small, batches=1)
    write_plain(broker, 1, large, batches=2)
    found: list[tuple[int, int]] = []

    def take(rows: DataFrame, _: int) -> None:
        places = [(row.partition, row.offset) for row in rows.select("partition", "offset").collect()]
        assert len(places) <= limit, "batches of no transaction are divided"
        found.extend(places)
        write_plain(broker, 0, small, batches=20)

    run(stream(spark, broker, subscribe="orders", maxOffsetsPerTrigger=limit), tmp_path, take)
    assert sorted(found) == [*((0, each) for each in range(small)), *((1, each) for each in range(2 * large))]


def test_transactions_stay_whole_while_a_partition_grows(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    write(broker, 0, 5)
    found: list[set[int]] = []

    def take(rows: DataFrame, _: int) -> None:
        values = [(row.value.decode(), row.txid) for row in rows.select("value", "txid").collect()]
        found.append(whole(values))
        write_plain(broker, 0, 10, batches=10)
        write(broker, 5 + len(found), 1)

    run(stream(spark, broker, maxOffsetsPerTrigger=20), tmp_path, take)
    assert sorted(number for numbers in found for number in numbers) == list(range(5))


def test_new_topics_of_a_pattern_are_read_from_their_start(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    write(broker, 0, 2)
    frame = stream(spark, broker, subscribe=None, subscribePattern="orders|later.*")
    assert sum(map(len, collect(frame, tmp_path).values())) == 2 * PARTITIONS * PER_PARTITION
    make_topics(broker, "later")
    with BlockingClient(broker.address) as client, client.begin() as transaction:
        transaction.send("later", b"7:0", partition=1)
    assert [value for rows in collect(frame, tmp_path).values() for value, _ in rows] == ["7:0"]


def test_a_stream_that_starts_at_the_end_reads_what_comes(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    write(broker, 0, 2)
    frame = stream(spark, broker, startingOffsets=None)
    assert collect(frame, tmp_path) in ({}, {0: []})
    write(broker, 2, 2)
    assert {number for rows in collect(frame, tmp_path).values() for number in whole(rows)} == {2, 3}


def test_lost_messages_fail_a_stream(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    write(broker, 0, 4)
    frame = stream(spark, broker)
    collect(frame, tmp_path / "read")
    write(broker, 4, 4)
    delete_below(broker, "orders", 0, 7 * PER_PARTITION)
    with pytest.raises(Exception, match=r"orders-0.*failOnDataLoss"):
        collect(frame, tmp_path / "read")
    going_on = collect(stream(spark, broker, failOnDataLoss="false"), tmp_path / "read")
    values = Counter(value for rows in going_on.values() for value, _ in rows)
    assert (values["7:0"], values["5:0"]) == (4, 3)


def test_a_topic_that_is_made_anew_fails_a_stream(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    write(broker, 0, 2)
    frame = stream(spark, broker)
    collect(frame, tmp_path)
    admin = AdminClient({"bootstrap.servers": broker.address})
    for deleted in admin.delete_topics(["orders"]).values():
        deleted.result(WAIT_SECONDS)
    make_topics(broker, "orders")
    write(broker, 2, 4)
    with pytest.raises(Exception, match="orders was deleted, or deleted and made anew"):
        collect(frame, tmp_path)
    anew = collect(stream(spark, broker, failOnDataLoss="false"), tmp_path)
    assert {number for rows in anew.values() for number in whole(rows)} == {2, 3, 4, 5}

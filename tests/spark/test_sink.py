"""format("faircopy") as a sink: each row once, whatever fails, with real Spark and a real broker."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from faircopy.client import BlockingClient
from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess, eventually
from tests.client_library.test_large_batches import NARROW, make_narrow, values_of
from tests.joint.asking import TOPIC, broker_with_topic, visible, visible_everywhere
from tests.spark.program import driver, has_ended, kill
from tests.spark.query import LINES, WAIT_SECONDS, finish, make_input, start_query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 4


@pytest.fixture
def broker(sink_broker: BrokerProcess) -> BrokerProcess:
    return sink_broker


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker for all that is refused: nobody ever writes to it."""
    with broker_with_topic(tmp_path_factory.mktemp("untouched"), "plain.enabled=false") as broker:
        yield broker
        assert visible_everywhere(broker) == []


def write(frame: DataFrame, broker: BrokerProcess, **options: Any) -> None:
    """Write a batch."""
    writer = frame.write.format("faircopy").mode("append").option("kafka.bootstrap.servers", broker.address)
    for name, value in ({"topic": TOPIC} | options).items():
        if value is not None:
            writer = writer.option(name, value)
    writer.save()


# -- batch jobs ----------------------------------------------------------------------------------------------


def test_a_batch_has_the_columns_of_kafkas_sink(
    spark: SparkSession, broker: BrokerProcess, seen: Callable[[], list[str]]
) -> None:
    headers = "array(named_struct('key', 'h', 'value', cast('x' as binary)))"
    frame = spark.range(1000).selectExpr(
        "cast(id as string) key",
        "binary(string(id)) value",
        "1 partition",
        f"{headers} headers",
        "'unused' more",
    )
    write(frame, broker)
    with BrokerConnection(broker.address) as connection:
        assert len(visible(connection, 1)) == 1000
    by_key = spark.range(100).selectExpr("cast(id as string) key", "cast(id as string) value")
    write(by_key.repartition(3), broker, **{"compression.type": "zstd"})
    assert Counter(seen())["7"] == 2


def test_a_named_job_writes_once(
    spark: SparkSession, broker: BrokerProcess, seen: Callable[[], list[str]]
) -> None:
    frame = spark.range(100).selectExpr("cast(id as string) value")
    for _ in range(2):
        write(frame, broker, job="nightly")
    assert len(seen()) == 100
    write(frame, broker, job="nightly", batch=1)
    write(frame, broker)
    write(frame, broker)
    assert set(Counter(seen()).values()) == {4}
    with BrokerConnection(broker.address) as connection:
        # A job without a name leaves nothing.
        eventually(lambda: groups_of(connection) == ["nightly"], WAIT_SECONDS)


def groups_of(connection: BrokerConnection) -> list[str]:
    import json

    from faircopy.api.inspect import SCHEMA as INSPECT

    document = connection.ask(INSPECT, 0, {"subject": "joint_groups"}).document
    return [row["group"] for row in json.loads(document)]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("if(id = 57, null, 'joint') topic, 'v' value", "row 57 of its task: its topic is null"),
        ("'joint' topic, 'v' value, if(id = 57, 9, 0) partition", "row 57 of its task: partition 9"),
        (
            "'joint' topic, if(id = 57, repeat('x', 2e6), 'v') value",
            "row 57 of its task.*MESSAGE_TOO_LARGE",
        ),
    ],
)
def test_a_bad_row_fails_the_batch_and_is_named(
    spark: SparkSession, untouched: BrokerProcess, query: str, reason: str
) -> None:
    frame = spark.range(0, 100, 1, 1).selectExpr(*split(query))
    with pytest.raises(Exception, match=reason):
        write(frame, untouched, topic=None)
    assert visible_everywhere(untouched) == []


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_batches_that_a_topic_does_not_take_are_divided(
    spark: SparkSession, broker: BrokerProcess, codec: str
) -> None:
    make_narrow(broker)
    frame = spark.range(0, 2_000, 1, 2).selectExpr("cast(id as string) value")
    write(frame, broker, topic=NARROW, **{"compression.type": codec})
    with BlockingClient(broker.address) as client:
        assert sorted(values_of(client)) == sorted(b"%d" % number for number in range(2_000))
    large = spark.range(0, 100, 1, 1).selectExpr("if(id = 57, repeat('x', 5000), 'v') value")
    if codec == "none":
        reason = r"row 57 of its task(?s:.*)one record: raise max\.message\.bytes of the topic"
        with pytest.raises(Exception, match=reason):
            write(large, broker, topic=NARROW)
    else:
        write(large, broker, topic=NARROW, **{"compression.type": codec})


def split(query: str) -> list[str]:
    """The expressions of a query, which have commas of their own."""
    found, depth, text = [], 0, ""
    for character in query:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            found.append(text)
            text = ""
        else:
            text += character
    return [*found, text]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"topik": "x"}, "did you mean topic"),
        ({"topic": None}, "no topic is given"),
        ({"batch": 1}, "option 'job'"),
        ({"kafka.security.protocol": "SSL"}, "speaks PLAINTEXT only"),
        ({"compression.type": "rar"}, "give one of none"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(
    spark: SparkSession, untouched: BrokerProcess, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Exception, match=reason):
        write(spark.range(1).selectExpr("'v' value"), untouched, **options)


def test_bad_columns_are_refused(spark: SparkSession, untouched: BrokerProcess) -> None:
    with pytest.raises(Exception, match="no column 'value'"):
        write(spark.range(1).selectExpr("id"), untouched)
    with pytest.raises(Exception, match="column 'value' is bigint"):
        write(spark.range(1).selectExpr("id value"), untouched)
    with pytest.raises(Exception, match="only appended to"):
        spark.range(1).selectExpr("'v' value").write.format("faircopy").mode("overwrite").option(
            "bootstrap.servers", untouched.address
        ).option("topic", TOPIC).save()


# -- streams -------------------------------------------------------------------------------------------------


def test_tasks_that_fail_after_their_drafts_count_once(
    spark: SparkSession, broker: BrokerProcess, seen: Callable[[], list[str]], tmp_path: Path
) -> None:
    lines = make_input(tmp_path, FILES)
    finish(start_query(spark, broker.address, tmp_path, "tasks fail"))
    assert sorted(seen()) == sorted(lines)
    assert len(list(tmp_path.glob("0-*"))) >= FILES, "attempts have failed"


def test_drivers_and_brokers_that_are_killed_lose_and_repeat_nothing(
    spark: SparkSession, broker: BrokerProcess, seen: Callable[[], list[str]], tmp_path: Path
) -> None:
    lines = make_input(tmp_path, FILES)
    with at_work(broker, seen, tmp_path, batches=1) as program:
        kill(program)
    broker.restart()
    with at_work(broker, seen, tmp_path, batches=2) as program:
        broker.restart()
        kill(program)
    broker.restart()
    finish(start_query(spark, broker.address, tmp_path))
    assert sorted(seen()) == sorted(lines)


@contextmanager
def at_work(
    broker: BrokerProcess, seen: Callable[[], list[str]], directory: Path, batches: int
) -> Iterator[subprocess.Popen[bytes]]:
    """A driver that has committed so many batches, and goes on."""
    count = len(seen()) + batches * LINES
    with driver(broker, directory) as program:
        eventually(lambda: len(seen()) >= count or has_ended(program, directory), WAIT_SECONDS)
        yield program


def test_the_group_of_a_query_is_its_id(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    make_input(tmp_path, files=1)
    query = start_query(spark, broker.address, tmp_path)
    finish(query)
    with BrokerConnection(broker.address) as connection:
        assert groups_of(connection) == [query.id]
    with BlockingClient(broker.address) as client:
        assert client.join(query.id, run="another", key=0, member="x") is None


def test_a_broker_that_is_away_for_a_while_only_delays(
    spark: SparkSession, broker: BrokerProcess, seen: Callable[[], list[str]]
) -> None:
    broker.kill()
    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start_when_missed, broker)
        write(spark.range(10).selectExpr("cast(id as string) value"), broker)
        starting.result()
    assert len(seen()) == 10


def start_when_missed(broker: BrokerProcess) -> None:
    """Start a broker again when a client has looked for it in vain."""
    host, port = broker.address.split(":")
    with socket.create_server((host, int(port))) as listener:
        listener.settimeout(WAIT_SECONDS)
        listener.accept()[0].close()
    broker.start()

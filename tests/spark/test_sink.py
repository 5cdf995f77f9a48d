"""format("faircopy") as a sink: each row once, whatever fails, with real Spark and a real broker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from faircopy.client import BlockingClient
from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess, eventually
from tests.joint.asking import TOPIC, visible
from tests.spark.program import FILES, kill, make_input, run, start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "key string, value string"


@pytest.fixture
def broker(sink_broker: BrokerProcess) -> BrokerProcess:
    return sink_broker


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
        eventually(lambda: groups_of(connection) == ["nightly"])  # a job without a name leaves nothing


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
    spark: SparkSession, broker: BrokerProcess, seen: Callable[[], list[str]], query: str, reason: str
) -> None:
    frame = spark.range(0, 100, 1, 1).selectExpr(*split(query))
    with pytest.raises(Exception, match=reason):
        write(frame, broker, topic=None)
    assert seen() == []


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
    spark: SparkSession, broker: BrokerProcess, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Exception, match=reason):
        write(spark.range(1).selectExpr("'v' value"), broker, **options)


def test_bad_columns_are_refused(spark: SparkSession, broker: BrokerProcess) -> None:
    with pytest.raises(Exception, match="no column 'value'"):
        write(spark.range(1).selectExpr("id"), broker)
    with pytest.raises(Exception, match="column 'value' is bigint"):
        write(spark.range(1).selectExpr("id value"), broker)
    with pytest.raises(Exception, match="only appended to"):
        spark.range(1).selectExpr("'v' value").write.format("faircopy").mode("overwrite").option(
            "bootstrap.servers", broker.address
        ).option("topic", TOPIC).save()


# -- programs of their own -----------------------------------------------------------------------------------


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("spark")
def test_tasks_that_fail_after_their_drafts_count_once(
    broker: BrokerProcess, seen: Callable[[], list[str]], tmp_path: Path
) -> None:
    lines = make_input(tmp_path)
    run(broker, tmp_path, "tasks fail")
    assert sorted(seen()) == sorted(lines)
    assert len(list(tmp_path.glob("0-*"))) >= FILES, "attempts have failed"


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("spark")
def test_drivers_and_brokers_that_are_killed_lose_and_repeat_nothing(
    broker: BrokerProcess, seen: Callable[[], list[str]], tmp_path: Path
) -> None:
    lines = make_input(tmp_path)
    for number in range(2):
        killed_at_work(broker, seen, tmp_path, 0.3 * number, kill_broker_first=number == 1)
        broker.restart()
    run(broker, tmp_path)
    assert sorted(seen()) == sorted(lines)


def killed_at_work(
    broker: BrokerProcess,
    seen: Callable[[], list[str]],
    directory: Path,
    after: float,
    *,
    kill_broker_first: bool,
) -> None:
    """A driver that is killed so long after it has committed something."""
    driver, count = start(broker, directory), len(seen())
    try:
        eventually(lambda: len(seen()) > count or driver.poll() is not None, 120)
        time.sleep(after)
        if kill_broker_first:
            broker.restart()
    finally:
        kill(driver)


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("spark")
def test_a_zombie_driver_writes_nothing(
    broker: BrokerProcess, seen: Callable[[], list[str]], tmp_path: Path
) -> None:
    """A driver is stopped in the middle; its successor finishes the work; then the first one wakes up."""
    lines = make_input(tmp_path)
    zombie = start(broker, tmp_path)
    try:
        eventually(lambda: seen() or zombie.poll() is not None, 120)
        os.killpg(zombie.pid, signal.SIGSTOP)
        run(broker, tmp_path)
        assert sorted(seen()) == sorted(lines)
        os.killpg(zombie.pid, signal.SIGCONT)
        zombie.wait(120)
        assert sorted(seen()) == sorted(lines)
    finally:
        if zombie.poll() is None:
            kill(zombie)


def test_the_group_of_a_query_is_its_id(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    make_input(tmp_path)
    query = (
        spark.readStream.schema("value string")
        .text(str(tmp_path / "input"))
        .writeStream.format("faircopy")
        .option("bootstrap.servers", broker.address)
        .option("topic", TOPIC)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    with BrokerConnection(broker.address) as connection:
        assert groups_of(connection) == [query.id]
    with BlockingClient(broker.address) as client:
        assert client.join(query.id, run="another", key=0, member="x") is None


def test_a_broker_that_is_away_for_a_while_only_delays(
    spark: SparkSession, broker: BrokerProcess, seen: Callable[[], list[str]]
) -> None:
    broker.kill()
    threading.Timer(3, broker.start).start()
    write(spark.range(10).selectExpr("cast(id as string) value"), broker)
    assert len(seen()) == 10

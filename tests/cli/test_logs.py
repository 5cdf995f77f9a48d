"""What a broker logs, and what `faircopy status` shows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from faircopy import __version__
from faircopy.api.create_topics import SCHEMA as CREATE_TOPICS
from faircopy.api.delete_topics import SCHEMA as DELETE_TOPICS
from faircopy.api.end_txn import SCHEMA as END_TXN
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess, environment, eventually
from tests.child_process import next_line, start_child

EVIL = "x\x1b[31m\n2026-01-01 00:00:00,000 INFO forged"


class VerboseBroker(BrokerProcess):
    """One that is started with --verbose."""

    def __init__(self, directory: Path, *settings: str) -> None:
        super().__init__(directory, *settings)
        self.arguments = ("--verbose",)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with VerboseBroker(tmp_path) as process:
        yield process
        process.ensure_no_traceback()


def create(address: str, name: str, partitions: int = 1) -> None:
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": -1,
        "assignments": [],
        "configs": [],
    }
    with BrokerConnection(address) as connection:
        connection.ask(CREATE_TOPICS, 5, {"topics": [topic], "timeout_ms": 10_000})


def producer_of(address: str, transactional_id: str, **config: Any) -> Producer:
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": transactional_id, "log_level": 0, **config}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    return producer


# -- what is done for clients --------------------------------------------------------------------------------


def test_connections_topics_and_refusals(broker: BrokerProcess) -> None:
    create(broker.address, "t", 2)
    create(broker.address, "t")
    with BrokerConnection(broker.address) as connection:
        connection.ask(DELETE_TOPICS, 5, {"topic_names": ["t"], "timeout_ms": 10_000})
        connection.ask(METADATA, 9, {"topics": [{"name": "nope"}], "allow_auto_topic_creation": False})
        body = {"transactional_id": "nobody", "producer_id": 1, "producer_epoch": 0, "committed": True}
        connection.ask(END_TXN, 1, body)
    eventually(lambda: "connection 3 of 127.0.0.1 closed" in broker.log)
    for line in (
        "connection 1 of 127.0.0.1 opened, by default",
        "INFO topic t made with 2 partition(s)",
        "refused to client 'faircopy-cli' at 127.0.0.1: CreateTopics (t): TOPIC_ALREADY_EXISTS: ",
        "INFO topic t deleted",
        "refused to client 'faircopy-cli' at 127.0.0.1: Metadata (nope): UNKNOWN_TOPIC_OR_PARTITION",
        "refused to client 'faircopy-cli' at 127.0.0.1: EndTxn: ",
    ):
        assert line in broker.log


def test_the_ends_of_transactions(broker: BrokerProcess) -> None:
    create(broker.address, "t")
    for transactional_id in ("committed", "aborted"):
        producer = producer_of(broker.address, transactional_id)
        producer.produce("t", b"x", partition=0)
        producer.flush(60)
        producer.commit_transaction(60) if transactional_id == "committed" else producer.abort_transaction(60)
    late = producer_of(broker.address, "late", **{"transaction.timeout.ms": 5_000})
    late.produce("t", b"x", partition=0)
    late.flush(60)
    eventually(lambda: "of 'late' is aborted: it was open for more than its timeout" in broker.log)
    eventually(lambda: "of 'late' is over: ABORTED, 1 partition(s)" in broker.log)
    assert "of 'committed' is over: COMMITTED, 1 partition(s)" in broker.log
    assert "of 'aborted' is over: ABORTED, 1 partition(s)" in broker.log


def test_generations_of_groups(broker: BrokerProcess) -> None:
    create(broker.address, "t")
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "g", "log_level": 0})
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(0.1)
    assert "group 'g' has generation 1: 1 member(s), 'range', led by 'rdkafka-" in broker.log
    consumer.close()
    eventually(lambda: "group 'g' has no members any more" in broker.log)


def test_a_batch_that_is_refused(broker: BrokerProcess) -> None:
    create(broker.address, "t")
    with BrokerConnection(broker.address) as connection:
        data = [{"name": "t", "partition_data": [{"index": 0, "records": b"\0" * 100}]}]
        body = {"acks": -1, "timeout_ms": 1_000, "transactional_id": None, "topic_data": data}
        connection.ask(PRODUCE, 7, body)
    assert "refused to 127.0.0.1: Produce to t-0: " in broker.log


def test_nobody_writes_lines_of_their_own(broker: BrokerProcess) -> None:
    create(broker.address, "t")
    producer = producer_of(broker.address, EVIL, **{"client.id": EVIL})
    producer.produce("t", b"x", partition=0)
    producer.commit_transaction(60)
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": EVIL, "client.id": EVIL, "log_level": 0}
    )
    with pytest.raises(KafkaException):
        consumer.commit(offsets=[TopicPartition("nope", 0, 1)], asynchronous=False)
    consumer.close()
    create(broker.address, EVIL)
    assert "forged" in broker.log
    assert "\x1b" not in broker.log
    assert not [line for line in broker.log.splitlines() if line.startswith("2026-01-01")]


def test_a_quiet_broker_logs_nothing_of_clients(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        with BrokerConnection(broker.address) as connection:
            connection.ask(METADATA, 9, {"topics": [{"name": "nope"}], "allow_auto_topic_creation": False})
        assert "DEBUG" not in broker.log
        assert "connection" not in broker.log


# -- starts --------------------------------------------------------------------------------------------------


def test_a_start_says_what_it_found(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "topic.partitions=3", "plain.enabled=false") as broker:
        assert f"INFO faircopy {__version__}, process {broker.pid}, on {broker.data_directory}" in broker.log
        assert "recovered 0 partition(s)" in broker.log
        assert f"listener default on {broker.address}; clients are told the same" in broker.log
        assert "topic.partitions=3, plain.enabled=False" in broker.log
        create(broker.address, "t", 2)
        committed = producer_of(broker.address, "committed")
        committed.produce("t", b"x" * 100, partition=0)
        committed.commit_transaction(60)
        opened = producer_of(broker.address, "open")
        opened.produce("t", b"x" * 100, partition=1)
        opened.flush(60)
        broker.restart(kill=False)
        assert "0 committed, 0 aborted, 1 go on" in recoveries(broker)[-1]
        assert " 0 bytes of journals read" in recoveries(broker)[-1]
        broker.restart(kill=True)
        assert "recovered 2 partition(s) in " in recoveries(broker)[-1]
        assert "0 aborted, 1 go on" in recoveries(broker)[-1]


def recoveries(broker: BrokerProcess) -> list[str]:
    return [line for line in broker.log.splitlines() if "INFO recovered " in line]


@pytest.mark.parametrize("name", ["t.*", "_catalogue"])
def test_torn_tails_are_counted(tmp_path: Path, name: str) -> None:
    with BrokerProcess(tmp_path) as broker:
        create(broker.address, "t")
        producer = Producer({"bootstrap.servers": broker.address})
        producer.produce("t", b"x" * 1_000, partition=0)
        producer.flush(60)
        broker.kill()
        (journal,) = (broker.data_directory / "journal").glob(f"{name}/0/*.journal")
        last = shown(broker, name)[-1]
        with journal.open("r+b") as file:
            file.seek(last["byte"] + last["bytes"])
            file.write(b"torn" * 10)
        broker.start()
        assert "1 torn tail(s) cut" in recoveries(broker)[-1]
        assert " 0 bytes of journals read" not in recoveries(broker)[-1]
        broker.restart()
        assert "0 torn tail(s) cut" in recoveries(broker)[-1]


def test_what_was_read_of_the_catalogue_is_counted(tmp_path: Path) -> None:
    """A first start reads nothing, although it founds the catalogue."""
    with BrokerProcess(tmp_path) as broker:
        assert " 0 bytes of journals read" in recoveries(broker)[-1]
        broker.restart()
        (length,) = (row["bytes"] for row in shown(broker, "_catalogue"))
        assert f" {length} bytes of journals read" in recoveries(broker)[-1]
        broker.restart(kill=False)
        assert " 0 bytes of journals read" in recoveries(broker)[-1]


def shown(broker: BrokerProcess, name: str) -> list[dict[str, Any]]:
    """The entries of the only segment of a journal."""
    (journal,) = (broker.data_directory / "journal").glob(f"{name}/0/*.journal")
    show = [sys.executable, "-m", "faircopy", "journal", "show", str(journal), "--json"]
    rows: list[dict[str, Any]] = json.loads(
        subprocess.run(show, capture_output=True, text=True, timeout=120).stdout
    )
    return rows


# -- a full disk ---------------------------------------------------------------------------------------------


FULL_DISK = """
import sys
from pathlib import Path
from faircopy.cli.main import main
from faircopy.storage.system import mount
from tests.soak.quota import QuotaSystem

with mount(QuotaSystem(Path(sys.argv.pop()))):
    main()
"""


def test_a_broker_on_a_full_disk_says_so(tmp_path: Path) -> None:
    full, log_path = tmp_path / "full", tmp_path / "log"
    arguments = [
        "--data-dir",
        str(tmp_path / "data"),
        "--listen",
        "127.0.0.1:0",
        "--set",
        "journal.segment.bytes=1048576",
    ]
    with running([sys.executable, "-c", FULL_DISK, "start", *arguments, str(full)], log_path) as address:
        create(address, "t")
        full.touch()
        producer = Producer({"bootstrap.servers": address})
        for _ in range(5):
            producer.produce("t", b"x" * 600_000, partition=0)
            producer.poll(0)
        eventually(lambda: "ERROR" in log_path.read_text())
        full.unlink()
        assert producer.flush(30) == 0
        eventually(lambda: "INFO the disk has space again" in log_path.read_text())
        assert log_path.read_text().count("ERROR") == 1
        assert "no space is left" in log_path.read_text()


@contextmanager
def running(command: list[str], log_path: Path) -> Iterator[str]:
    with log_path.open("w") as log:
        process = start_child(command, stdout=subprocess.PIPE, stderr=log, env=environment())
    assert process.stdout is not None
    try:
        yield next_line(process).split()[-1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# -- status --------------------------------------------------------------------------------------------------


def test_status(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, "topic.partitions=3") as broker:
        create(broker.address, "t", 2)
        command = [sys.executable, "-m", "faircopy", "status", "--broker", broker.address]
        about = json.loads(
            subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120).stdout
        )
        assert (about["version"], about["process_id"], about["durability"]) == (
            __version__,
            broker.pid,
            "fsync",
        )
        assert (about["topics"], about["partitions"], about["stopped_partitions"]) == (1, 2, [])
        assert (about["connections"], about["open_transactions"]) == (1, 0)
        assert about["listeners"] == [f"default://{broker.address}"]
        assert "topic.partitions=3" in about["settings"]
        for name in ("loop_stall_worst_ms", "loop_stalls"):
            assert about[name] >= 0
        assert 0 < about["uptime_ms"] < 60_000
        assert 0.05 < about["cpu_seconds"] < 60
        assert 10 << 20 < about["memory_bytes"] < 1 << 30
        lines = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout.splitlines()
        assert lines[0] == "what\tvalue"
        assert f"process_id\t{broker.pid}" in lines

"""Starting and stopping: settings, refusals, damage."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.cli.start import EX_IOERR
from faircopy.client.connection import BrokerConnection
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import STOP_SECONDS, BrokerProcess, environment
from tests.child_process import READY_SECONDS, next_line, start_child


def refusal(*arguments: str, **variables: str) -> str:
    """The one line with which `faircopy start` refuses."""
    command = [sys.executable, "-m", "faircopy", "start", *arguments]
    run = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
        env=environment() | variables,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert run.stderr.startswith("faircopy: ")
    assert run.stderr.count("\n") == 1
    return run.stderr


# -- settings ------------------------------------------------------------------------------------------------


def test_the_command_tells_what_is_wrong(tmp_path: Path) -> None:
    assert "did you mean durability?" in refusal("--set", "durabilty=os")
    assert "did you mean durability?" in refusal(FAIRCOPY_DURABILTY="os")
    assert "can't read" in refusal("--config", str(tmp_path / "missing.toml"))
    assert "give HOST:PORT" in refusal("--listen", "nowhere")


# -- directories and addresses -------------------------------------------------------------------------------


def test_one_broker_for_a_directory_and_an_address(fresh_broker: BrokerProcess, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    busy = refusal("--data-dir", str(fresh_broker.data_directory), "--listen", "127.0.0.1:0")
    assert "in use by another broker" in busy
    assert str(fresh_broker.pid) in busy
    assert "Address already in use" in refusal("--data-dir", other, "--listen", fresh_broker.address)
    assert not Path(other).exists()
    with BrokerConnection(fresh_broker.address) as connection:
        assert connection.ask(METADATA, 9, {"topics": None}).topics == []


def test_directories_that_are_not_ours(tmp_path: Path) -> None:
    def start(path: Path) -> str:
        return refusal("--data-dir", str(path), "--listen", "127.0.0.1:0")

    (tmp_path / "file").write_text("x")
    assert str(tmp_path / "file") in start(tmp_path / "file")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("x")
    assert "not a faircopy data directory" in start(foreign)
    assert [path.name for path in foreign.iterdir()] == ["thesis.txt"]
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "format.json").write_text(json.dumps({"format": 99, "cluster": "x"}))
    assert "install a newer faircopy" in start(newer)
    (newer / "format.json").write_text("{")
    assert "Restore it from a backup" in start(newer)


def test_the_number_of_journals_is_fixed(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        directory = str(broker.data_directory)
    message = refusal("--data-dir", directory, "--listen", "127.0.0.1:0", "--set", "metadata.journals=4")
    assert "was created with 8" in message


def test_a_directory_keeps_its_shape(tmp_path: Path) -> None:
    """Who leaves the number out gets what the directory was made with."""
    with BrokerProcess(tmp_path, "shards=3") as broker:
        directory = broker.data_directory
    message = refusal("--data-dir", str(directory), "--listen", "127.0.0.1:0", "--set", "shards=2")
    assert "was created with 3" in message
    with BrokerProcess(tmp_path):
        pass


def test_what_is_set_while_the_broker_runs_outlives_a_limit_of_its_descriptors(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.within = ("prlimit", "--nofile=512:512")
    with broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        entry = ConfigEntry("checkpoint.bytes", "123456", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(60)
        broker.restart()
        asked = ConfigResource(ConfigResource.Type.BROKER, "1")
        found = admin.describe_configs([asked])[asked].result(60)
        assert found["checkpoint.bytes"].value == "123456"
        assert int(found["connections.max"].value) < 512


FAILING_DISK = """
import errno, sys
from pathlib import Path
from faircopy.cli.main import main
from faircopy.storage.system import System, mount

broken = Path(sys.argv.pop())

class FailingSystem(System):
    def sync(self, descriptor):
        if broken.exists():
            raise OSError(errno.EIO, "the device has an error")
        super().sync(descriptor)

with mount(FailingSystem()):
    main()
"""


def test_a_disk_that_fails_while_it_stops(tmp_path: Path) -> None:
    """I10: an orderly end is not told, and the next start knows."""
    data, broken = tmp_path / "data", tmp_path / "broken"
    command = [
        sys.executable,
        "-c",
        FAILING_DISK,
        "start",
        "--data-dir",
        str(data),
        "--listen",
        "127.0.0.1:0",
    ]
    process = start_child([*command, str(broken)], stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    try:
        produce(next_line(process).rsplit(" ", 1)[1].strip(), "t", 10)
        broken.touch()
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == EX_IOERR
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert (data / "doubt").exists()


# -- damage --------------------------------------------------------------------------------------------------


def produce(address: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    for number in range(count):
        producer.produce(topic, b"%d" % number * 50, partition=0)
        producer.flush(60)


def end_offset(address: str, topic: str, partition: int) -> int:
    body = {"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}
    with BrokerConnection(address) as connection:
        answer = connection.ask(LIST_OFFSETS, 5, {"topics": [body]}).topics[0].partitions[0]
    return int(answer.offset) if not answer.error_code else -int(answer.error_code)


def test_a_damaged_journal_stops_its_partition_only(tmp_path: Path) -> None:
    """I9: bytes that were durable have changed; nothing is cut, and all others serve."""
    with BrokerProcess(tmp_path) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        for made in admin.create_topics([NewTopic("sound", 1), NewTopic("damaged", 1)]).values():
            made.result(60)
        for topic in ("sound", "damaged"):
            produce(broker.address, topic, 20)
        broker.kill()
        (journal,) = (broker.data_directory / "journal").glob("damaged.*/0/*.journal")
        data = bytearray(journal.read_bytes())
        data[400] ^= 0xFF
        journal.write_bytes(data)
        broker.start()
        assert journal.read_bytes() == data
        assert "is stopped" in broker.log
        assert f"{journal} is damaged at byte" in broker.log
        assert end_offset(broker.address, "damaged", 0) == -ErrorCode.KAFKA_STORAGE_ERROR
        assert produce_error(broker.address, "damaged") == KafkaError._MSG_TIMED_OUT
        produce(broker.address, "sound", 5)
        assert end_offset(broker.address, "sound", 0) == 25
        assert read(broker.address, "sound", 25) == 25


def produce_error(address: str, topic: str) -> int:
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": address, "message.timeout.ms": 1000, "log_level": 0})
    producer.produce(topic, b"x", partition=0, on_delivery=lambda error, _message: errors.append(error))
    producer.flush(60)
    assert errors[0] is not None
    return int(errors[0].code())


def read(address: str, topic: str, count: int) -> int:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = len(consumer.consume(count, 20))
    consumer.close()
    return found

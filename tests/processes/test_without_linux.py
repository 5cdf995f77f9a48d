"""A broker where uvloop is not installed, and where what Linux alone has is missing, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from faircopy.verify.directory import DirectoryCheck
from tests.broker_process import BrokerProcess

UVLOOP = ("uvloop",)
OF_LINUX = (
    "os:posix_fallocate", "os:fdatasync", "os:RWF_NOWAIT", "os:preadv", "os:pwritev", "os:sendfile",
    "time:CLOCK_BOOTTIME", "socket:MSG_MORE", "/proc",
)  # fmt: skip
LARGE = b"v" * 500_000


def commit(broker: BrokerProcess, values: list[bytes], *, does_commit: bool = True) -> None:
    """Write these in one transaction, which is committed or left open."""
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "t/1"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for value in values:
        producer.produce("t", value, partition=0)
    assert producer.flush(60) == 0
    if does_commit:
        producer.commit_transaction(60)


def read(broker: BrokerProcess, count: int) -> list[bytes]:
    """So many values, by a member of a group."""
    settings = {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe(["t"])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None and message.error() is None, message
        found.append(message.value() or b"")
    consumer.close()
    return found


@pytest.mark.parametrize("missing", [UVLOOP, OF_LINUX, UVLOOP + OF_LINUX])
def test_what_is_committed_is_read_after_a_kill(tmp_path: Path, missing: tuple[str, ...]) -> None:
    """Large values: their responses are sent from files (`net/file_sender.py`)."""
    broker = BrokerProcess(tmp_path, "plain.interval.ms=50")
    broker.program = ("tests.processes.without", ",".join(missing))
    committed = [b"%d" % number + LARGE for number in range(20)]
    with broker:
        commit(broker, committed)
        commit(broker, [b"never"], does_commit=False)
        broker.kill()
        broker.start()
        commit(broker, [b"last"])
        assert read(broker, 21) == [*committed, b"last"]
        broker.restart(kill=False)
        broker.ensure_no_traceback()
    assert ("uvloop is not installed" in broker.log) == ("uvloop" in missing)
    assert list(DirectoryCheck(broker.data_directory).run()) == []

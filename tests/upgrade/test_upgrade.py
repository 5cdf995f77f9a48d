"""A directory of an older format is upgraded, or refused. There is none yet, so format 0 is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from faircopy.storage.data_directory import FORMAT, DataDirectoryError, read_format
from tests.broker_process import BrokerProcess

UPGRADES = f"has format 0: this start upgrades it to format {FORMAT}"
UPGRADED = f"was upgraded from format 0 to {FORMAT}"


class OldDirectory:
    """A directory of format 0 that a killed broker has left, with one message that was committed."""

    def __init__(self, directory: Path) -> None:
        self.broker = BrokerProcess(directory, "plain.enabled=false", "disk.reserve.bytes=0")
        self.format_file = self.broker.data_directory / "format.json"
        with self.broker:
            commit(self.broker.address, b"old")
            self.broker.kill()
        self.format_file.write_bytes(read_format(self.format_file)._replace(version=0).encode())

    def knows(self) -> BrokerProcess:
        """A broker that upgrades format 0."""
        self.broker.program = ("tests.upgrade.knows_format_0",)
        return self.broker


@pytest.fixture
def old(tmp_path: Path) -> OldDirectory:
    return OldDirectory(tmp_path)


def commit(address: str, value: bytes) -> None:
    settings: dict[str, Any] = {"bootstrap.servers": address, "transactional.id": "orders/1"}
    producer = Producer(settings)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", value, partition=0)
    producer.commit_transaction(60)


def read(address: str) -> list[bytes | None]:
    """All messages of the partition."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    place = TopicPartition("orders", 0, 0)
    consumer.assign([place])
    _, end = consumer.get_watermark_offsets(place, 60)
    found = consumer.consume(end, 60)
    consumer.close()
    return [message.value() for message in found]


def test_an_old_directory_is_upgraded_once(old: OldDirectory) -> None:
    """And goes on, also with a broker that knows the newest format only."""
    with old.knows() as broker:
        assert broker.log.index(UPGRADES) < broker.log.index(UPGRADED)
        assert read_format(old.format_file).version == FORMAT
        commit(broker.address, b"new")
        broker.kill()
        broker.program = ("faircopy",)
        broker.start()
        assert broker.log.count(UPGRADES) == broker.log.count(UPGRADED) == 1
        assert read(broker.address) == [b"old", b"new"]


def test_a_start_that_fails_upgrades_nothing(old: OldDirectory) -> None:
    """An older faircopy can still be put back in its place."""
    paths = (old.broker.data_directory / "journal" / "_metadata").glob("*/*.journal")
    path = next(path for path in paths if any(path.read_bytes()[64:128]))
    content = bytearray(path.read_bytes())
    content[64 + 8] ^= 1
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="is damaged at byte"):
        old.knows().start()
    assert read_format_as_written(old.format_file) == 0
    assert path.read_bytes() == content


def read_format_as_written(path: Path) -> int:
    (number,) = (version for version in (0, FORMAT) if f'"format": {version},' in path.read_text())
    return number


def test_a_format_that_is_too_old_is_refused(old: OldDirectory) -> None:
    with pytest.raises(RuntimeError, match=r"has format 0, .* reads formats from 2 on"):
        old.broker.start()
    assert read_format_as_written(old.format_file) == 0


def test_a_directory_of_format_1_is_refused(old: OldDirectory) -> None:
    """The last one that had no catalogue's journal; its format file also held the cluster's id."""
    content = b'{"format": 1, "cluster": "0f1e2d3c4b5a69788796a5", "crc32c": 4253679992}'
    old.format_file.write_bytes(content)
    before = files_in(old.broker.data_directory)
    says = f"has format 1, .* reads formats from {FORMAT} on: choose a new directory with --data-dir"
    with pytest.raises(RuntimeError, match=says) as raised:
        old.broker.start()
    assert "MirrorMaker" in str(raised.value) and "Traceback" not in str(raised.value)
    assert files_in(old.broker.data_directory) == before
    assert old.format_file.read_bytes() == content
    with pytest.raises(DataDirectoryError, match="has format 1"):
        read_format(old.format_file)


def files_in(directory: Path) -> dict[Path, bytes]:
    """The content of all files but the lock, in which each start notes its process."""
    paths = (path for path in directory.rglob("*") if path.is_file() and path.name != "lock")
    return {path: path.read_bytes() for path in paths}


@pytest.mark.parametrize(("before", "after"), [(b"{", b"{ "), (b'"crc32c": ', b'"crc32c": 1')])
def test_a_changed_format_file_is_damaged(tmp_path: Path, before: bytes, after: bytes) -> None:
    broker = BrokerProcess(tmp_path, "disk.reserve.bytes=0")
    with broker:
        path = broker.data_directory / "format.json"
        content = path.read_bytes()
    assert content.count(before) == 1
    path.write_bytes(content.replace(before, after))
    with pytest.raises(DataDirectoryError, match="is damaged"):
        read_format(path)

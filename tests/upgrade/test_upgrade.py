"""A directory of an older format is upgraded, or refused.

Format 2 had no leader epochs by position in the checkpoints of journals.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from faircopy.journal.checkpoint import EPOCHS_FIELD
from faircopy.journal.entry import HEADER_BYTES as ENTRY_HEADER_BYTES
from faircopy.journal.segment import HEADER_BYTES as SEGMENT_HEADER_BYTES
from faircopy.storage.data_directory import FORMAT, OLDEST_FORMAT, DataDirectoryError, read_format
from faircopy.storage.state_store import Put, StateStore
from faircopy.transactions.metadata_journal import journal_identity
from faircopy.verify.directory import DirectoryCheck
from tests.broker_process import BrokerProcess

OLD = 2
UPGRADES = f"has format {OLD}: this start upgrades it to format {FORMAT}"
UPGRADED = f"was upgraded from format {OLD} to {FORMAT}"


class OldDirectory:
    """A directory of format 2 that a killed broker has left, with checkpoints and a committed message."""

    def __init__(self, directory: Path) -> None:
        self.broker = BrokerProcess(directory, "plain.enabled=false", "disk.reserve.bytes=0")
        self.format_file = self.broker.data_directory / "format.json"
        with self.broker:
            commit(self.broker.address, b"old")
        with self.broker:  # the stop has written checkpoints; a kill leaves entries after them
            commit(self.broker.address, b"later")
            self.broker.kill()
        asyncio.run(self._take_epochs_away())
        self.set_format(OLD)

    async def _take_epochs_away(self) -> None:
        store = StateStore(self.broker.data_directory / "state.lmdb", asyncio.get_running_loop())
        rows = {key: json.loads(row) for key, row in store.scan("checkpoints", b"")}
        self.positions = {key: row["position"] for key, row in rows.items()}
        assert sum(len(row.pop(EPOCHS_FIELD)) for row in rows.values()) >= len(rows) > 2
        await store.write([Put("checkpoints", key, json.dumps(row).encode()) for key, row in rows.items()])
        store.close()

    def entries_after_checkpoints(self) -> Iterator[tuple[Path, int]]:
        """The files of metadata journals that go on after their checkpoints, and the bytes where they do."""
        for path in (self.broker.data_directory / "journal" / "_metadata").glob("*/*.journal"):
            identity = journal_identity(int(path.parent.name))
            byte = SEGMENT_HEADER_BYTES + self.positions.get(identity, 0)
            if any(path.read_bytes()[byte : byte + ENTRY_HEADER_BYTES]):
                yield path, byte

    def set_format(self, version: int) -> None:
        """Write another number into the format file."""
        self.format_file.write_bytes(read_format(self.format_file)._replace(version=version).encode())


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
    """And goes on, with everything that was in it."""
    with old.broker as broker:
        assert broker.log.index(UPGRADES) < broker.log.index(UPGRADED)
        assert read_format(old.format_file).version == FORMAT
        commit(broker.address, b"new")
        broker.kill()
        broker.start()
        assert broker.log.count(UPGRADES) == broker.log.count(UPGRADED) == 1
        assert read(broker.address) == [b"old", b"later", b"new"]
    assert list(findings(broker.data_directory)) == []


def findings(directory: Path) -> Iterator[str]:
    """What `faircopy verify` finds: epochs before the upgrade are unknown, and not compared."""
    for finding in DirectoryCheck(directory).run():
        yield str(finding)


def test_a_start_that_fails_upgrades_nothing(old: OldDirectory) -> None:
    """An older faircopy can still be put back in its place."""
    path, byte = next(old.entries_after_checkpoints())
    content = bytearray(path.read_bytes())
    content[byte + 8] ^= 1
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="is damaged at byte"):
        old.broker.start()
    assert read_format(old.format_file).version == OLD
    assert path.read_bytes() == content


def test_a_format_that_is_too_old_is_refused(old: OldDirectory) -> None:
    old.set_format(0)
    content = old.format_file.read_bytes()
    with pytest.raises(RuntimeError, match=r"has format 0, .* reads formats from 2 on"):
        old.broker.start()
    assert old.format_file.read_bytes() == content


def test_a_directory_of_format_1_is_refused(old: OldDirectory) -> None:
    """The last one that had no catalogue's journal; its format file also held the cluster's id."""
    content = b'{"format": 1, "cluster": "0f1e2d3c4b5a69788796a5", "crc32c": 4253679992}'
    old.format_file.write_bytes(content)
    before = files_in(old.broker.data_directory)
    says = f"has format 1, .* reads formats from {OLDEST_FORMAT} on: choose a new directory with --data-dir"
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

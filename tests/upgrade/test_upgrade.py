"""A broker is started on a directory that an older faircopy has left: see `make_old_directory`."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from faircopy.api.cut import SCHEMA as CUT
from faircopy.api.end_txn import SCHEMA as END_TXN
from faircopy.api.produce.produce import SCHEMA as PRODUCE
from faircopy.client.connection import BrokerConnection
from faircopy.cluster.last_end import note_running
from faircopy.cluster.lmdb_store import LmdbStore
from faircopy.copier.checkpoint import delete_partition
from faircopy.journal.entry import Kind
from faircopy.storage.boot import boot_id
from faircopy.storage.data_directory import FORMAT, DataDirectoryError, read_format
from faircopy.storage.state_store import StateStore
from faircopy.verify.journal_entries import ShownEntry, open_to_show, shown_entries
from faircopy.verify.log_files import LogFile, log_files
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch
from tests.broker_process import BrokerProcess, environment
from tests.seeds import seed_for
from tests.upgrade.make_old_directory import SETTINGS, TOPICS, committed, read, transactional

HERE = Path(__file__).parent
OLD, NEW = b"FCJSEG01", b"FCJSEG02"
UPGRADES = f"this start upgrades it to format {FORMAT}"
SHOWN_BYTES = 32


class Found:
    """A directory of an older format, and what clients knew of it."""

    def __init__(self, directory: Path, name: str, version: int = 3) -> None:
        self.version = version
        self.directory = directory
        self.data = directory / "data"
        with tarfile.open(HERE / f"format_{version}_{name}.tar.gz") as archive:
            archive.extractall(directory, filter="data")
        self.known = json.loads((directory / "known.json").read_text())
        self.content: dict[str, list[bytes]] = {
            partition: [bytes.fromhex(message) for message in messages]
            for partition, messages in self.known["content"].items()
        }

    def broker(self) -> BrokerProcess:
        return BrokerProcess(self.directory, *SETTINGS)

    def segments(self) -> dict[Path, bytes]:
        """The files of all journals, and the magic of each."""
        return {path: path.read_bytes()[:8] for path in sorted((self.data / "journal").glob("*/*/*.journal"))}

    def journal(self, topic: str, partition: int) -> Path:
        (found,) = (self.data / "journal").glob(f"{topic}.*/{partition}")
        return found

    def entries(self, topic: str, partition: int) -> list[ShownEntry]:
        return list(shown_entries(open_to_show(self.journal(topic, partition))))

    def leader_epochs(self, topic: str, partition: int) -> list[int]:
        """Those of all batches in a log."""
        (directory,) = (self.data / "log").glob(f"{topic}.*/{partition}")
        batches = (batch for path in log_files(directory) for batch in LogFile(path).batches(None))
        return [batch.header.leader_epoch for batch in batches]

    def verify(self) -> list[dict[str, object]]:
        """What `faircopy verify` finds."""
        command = [sys.executable, "-m", "faircopy", "verify", str(self.data), "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)
        assert ran.returncode in (0, 1), ran.stderr
        findings: list[dict[str, object]] = json.loads(ran.stdout)
        return findings


@pytest.fixture(params=[(end, version) for version in (3, 4, 5, 6, 7) for end in ("killed", "stopped")])
def found(request: pytest.FixtureRequest, tmp_path: Path) -> Found:
    return Found(tmp_path, *request.param)


@pytest.fixture
def killed(tmp_path: Path) -> Found:
    return Found(tmp_path, "killed")


@pytest.fixture
def stopped(tmp_path: Path) -> Found:
    return Found(tmp_path, "stopped")


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Chance of a seed that is printed."""
    return random.Random(seed_for(request.node.name))


def check_content(address: str, found: Found) -> None:
    """All that was committed can be read."""
    for topic, partitions in TOPICS.items():
        for partition in range(partitions):
            messages = [each[:SHOWN_BYTES] for each in read(address, topic, partition)]
            assert messages == found.content[f"{topic}-{partition}"]


def commit_more(address: str, found: Found, number: int) -> None:
    """A transaction in all partitions, and a plain message."""
    producer = transactional(address, "orders/1")
    producer.begin_transaction()
    for topic, partitions in TOPICS.items():
        for partition in range(partitions):
            producer.produce(topic, b"new %d" % number, partition=partition)
            found.content[f"{topic}-{partition}"].append(b"new %d" % number)
    producer.commit_transaction(60)
    plain = Producer({"bootstrap.servers": address})
    plain.produce("audit", b"plain", partition=0)
    plain.flush(60)
    found.content["audit-0"].append(b"plain")


def test_an_old_directory_is_read_and_goes_on(found: Found) -> None:
    """Also after another crash: both formats stand in its journals then."""
    magic_before = OLD if found.version == 3 else NEW
    before = found.segments()
    places = [(topic, partition) for topic, partitions in TOPICS.items() for partition in range(partitions)]
    old_epochs = {place: found.leader_epochs(*place) for place in places}
    assert len(before) >= 6 and set(before.values()) == {magic_before}
    assert read_format(found.data / "format.json").version == found.version
    with found.broker() as broker:
        assert UPGRADES in broker.log
        assert broker.log.index(UPGRADES) < broker.log.index(
            f"was upgraded from format {found.version} to {FORMAT}"
        )
        assert "is stopped" not in broker.log
        check_content(broker.address, found)
        assert committed(broker.address) == found.known["offset"]
        commit_more(broker.address, found, 1)
        broker.kill()
        assert read_format(found.data / "format.json").version == FORMAT
        after = found.segments()
        assert set(after.values()) == {magic_before, NEW}
        assert all(after[path] == magic for path, magic in before.items())
        assert found.verify() == []
        broker.start()
        assert broker.log.count(UPGRADES) == 1
        check_content(broker.address, found)
        commit_more(broker.address, found, 2)
        broker.restart(kill=False)
        check_content(broker.address, found)
        broker.stop()
    assert found.verify() == []
    if found.version == 3:
        check_epochs(found, old_epochs)


@pytest.mark.parametrize("version", [3, 4])
def test_what_was_written_before_is_one_cut(tmp_path: Path, version: int) -> None:
    """Spans were not kept for the whole log. What is committed later is divided from it."""
    found = Found(tmp_path, "stopped", version)
    with found.broker() as broker:
        past = {name: len(messages) for name, messages in found.content.items()}
        commit_more(broker.address, found, 1)
        for _ in range(2):
            assert cut(broker.address, dict.fromkeys(past, 0)) == past
            assert cut(broker.address, past) == {name: end + 1 for name, end in past.items()}
            broker.restart(kill=False)
        broker.kill()


def test_spans_of_before_are_still_known(tmp_path: Path) -> None:
    """Format 5 has them all: what a crash left in the journals is cut transaction by transaction."""
    found = Found(tmp_path, "killed", 5)
    with found.broker() as broker:
        for _ in range(2):
            first = cut(broker.address, dict.fromkeys(found.content, 0))
            assert sum(first.values()) <= len(TOPICS) * 4
            broker.restart(kill=True)
        broker.kill()


def test_messages_of_before_are_found_by_time(found: Found) -> None:
    """The index has no times of theirs."""
    with found.broker() as broker:
        check_times(broker.address)
        commit_more(broker.address, found, 1)
        check_times(broker.address)
        broker.restart(kill=False)
        check_times(broker.address)
        broker.kill()


def check_times(address: str) -> None:
    """Compare what is found by time with all messages there are."""
    settings = {"bootstrap.servers": address, "group.id": "times", "enable.auto.commit": False}
    consumer, seeker = Consumer(settings), Consumer(settings)  # a fetch that waits holds up what follows it
    admin = AdminClient({"bootstrap.servers": address})
    for topic, partitions in TOPICS.items():
        for partition in range(partitions):
            times = times_of(consumer, topic, partition)
            for wanted in sorted({*times, times[0] - 1, max(times) + 1}):
                (asked,) = seeker.offsets_for_times([TopicPartition(topic, partition, wanted)], 60)
                later = [offset for offset, time in enumerate(times) if time >= wanted]
                assert asked.offset == (later[0] if later else OFFSET_END)
            place = TopicPartition(topic, partition)
            latest = admin.list_offsets({place: OffsetSpec.max_timestamp()})[place].result(60)
            assert (latest.offset, latest.timestamp) == (times.index(max(times)), max(times))
    consumer.close()
    seeker.close()


def times_of(consumer: Consumer, topic: str, partition: int) -> list[int]:
    """The times of all messages of a partition."""
    place = TopicPartition(topic, partition, 0)
    consumer.assign([place])
    _, end = consumer.get_watermark_offsets(place, 60)
    times: list[int] = []
    while len(times) < end:
        message = consumer.poll(60)
        assert message is not None and message.error() is None
        times.append(message.timestamp()[1])
    return times


def cut(address: str, starts: dict[str, int]) -> dict[str, int]:
    """The smallest cut after `starts`."""
    topics = [
        {"name": topic, "partitions": [{"partition": int(number), "start_offset": offset}]}
        for name, offset in starts.items()
        for topic, _, number in [name.rpartition("-")]
    ]
    with BrokerConnection(address) as connection:
        answer = connection.ask(CUT, 0, {"limit_rows": 1, "topics": topics})
    assert answer.error_code == 0
    return {
        f"{each.name}-{one.partition}": one.end_offset for each in answer.topics for one in each.partitions
    }


def test_a_cut_divides_no_transaction_of_before(mixed: Found) -> None:
    """Neither the cuts of the start that upgrades nor those after a crash of it."""
    with mixed.broker() as broker:
        commit_more(broker.address, mixed, 1)
        check_cuts(broker.address, mixed)
        broker.restart(kill=True)
        check_cuts(broker.address, mixed)
        broker.restart(kill=False)
        check_cuts(broker.address, mixed)
        broker.kill()
    assert mixed.verify() == []


@pytest.fixture(params=[3, 4, 5, 6, 7])
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Found:
    """A directory in which one of the partitions has no checkpoint yet."""
    found = Found(tmp_path, "stopped", request.param)
    (segment,) = found.journal("orders", 1).glob("*.journal")
    identity = segment.read_bytes()[24:44]

    async def forget_checkpoint() -> None:
        store = StateStore(found.data / "state.lmdb", asyncio.get_running_loop())
        await store.write(delete_partition(identity))
        store.close()

    asyncio.run(forget_checkpoint())
    return found


def check_cuts(address: str, found: Found) -> None:
    """Read everything in the smallest cuts: each has the messages of a transaction in all partitions."""
    at, ends = dict.fromkeys(found.content, 0), {name: len(each) for name, each in found.content.items()}
    written = transactions_in(found.content)
    while at != ends:
        following = cut(address, at)
        assert following != at
        at = following
        read_so_far = transactions_in({name: each[: at[name]] for name, each in found.content.items()})
        assert {number: written[number] for number in read_so_far} == read_so_far


def transactions_in(content: dict[str, list[bytes]]) -> Counter[bytes]:
    """How many messages of each transaction there are."""
    values = (value for messages in content.values() for value in messages)
    return Counter(
        value.partition(b".")[0] for value in values if re.fullmatch(rb"\d+(\.\d)?|new \d+", value)
    )


def check_epochs(found: Found, old: dict[tuple[str, int], list[int]]) -> None:
    """Format 3 had no epochs, so its batches keep epoch 0; each later start that wrote has one of its own."""
    for place, before in old.items():
        after = found.leader_epochs(*place)
        assert set(before) <= {0} and after[: len(before)] == before
        assert min(after[-2:]) > 0 and after[-1] > min(filter(None, after))
        assert after == sorted(after)


def test_what_is_not_upgraded_can_be_looked_at(found: Found) -> None:
    """And is left as it is."""
    before = {path: path.read_bytes() for path in found.data.rglob("*") if path.is_file()}
    assert found.verify() == []
    kinds = {shown.entry.kind for shown in found.entries("orders", 0)}
    assert {Kind.DRAFT, Kind.PREPARED, Kind.PLAIN, Kind.APPLY, Kind.DISCARD} <= kinds
    assert {path: path.read_bytes() for path in found.data.rglob("*") if path.is_file()} == before


def test_a_transaction_goes_on_over_the_upgrade(stopped: Found) -> None:
    """Its first drafts stand in segments of the old format, the last in one of the new."""
    drafts = [shown.entry for shown in stopped.entries("orders", 0) if shown.entry.kind == Kind.DRAFT]
    open_one = drafts[-1].transaction
    assert [draft.transaction for draft in drafts].count(open_one) == 2
    with stopped.broker() as broker, BrokerConnection(broker.address) as connection:
        batch = build_batch(
            [NewRecord(b"open 3", None, 1_000)],
            producer_id=open_one.producer_id,
            producer_epoch=open_one.producer_epoch,
            base_sequence=2,
            transactional=True,
        )
        data = [{"name": "orders", "partition_data": [{"index": 0, "records": batch}]}]
        produce = {"transactional_id": "open/1", "acks": -1, "timeout_ms": 10_000, "topic_data": data}
        answer = connection.ask(PRODUCE, 7, produce)
        assert answer.responses[0].partition_responses[0].error_code == 0
        end = {
            "transactional_id": "open/1",
            "producer_id": open_one.producer_id,
            "producer_epoch": open_one.producer_epoch,
            "committed": True,
        }
        assert connection.ask(END_TXN, 1, end).error_code == 0
        stopped.content["orders-0"] += [b"open 1", b"open 2", b"open 3"]
        stopped.content["audit-0"].append(b"open 1")
        check_content(broker.address, stopped)
        broker.kill()
        assert stopped.verify() == []
        broker.start()
        check_content(broker.address, stopped)


@pytest.mark.parametrize("version", [3, 4, 5, 6])
@pytest.mark.parametrize("is_killed", [False, True])
def test_what_an_older_version_left_open_is_aborted(tmp_path: Path, version: int, is_killed: bool) -> None:
    """After a kill, on the same boot: it may have told participants already of an abort that a kill took.
    Also if the first start after it is killed right after the upgrade.
    """
    found = Found(tmp_path, "killed", version)
    asyncio.run(note_this_boot(found.data / "state.lmdb"))
    end = end_of_open(found)
    if is_killed:
        killed_once_upgraded(found)
        assert read_format(found.data / "format.json").version == FORMAT
    with found.broker() as broker:
        broker.restart()
        with BrokerConnection(broker.address) as connection:
            refused = connection.ask(END_TXN, 1, {**end, "committed": True}).error_code
            assert ErrorCode(refused) is ErrorCode.TRANSACTION_ABORTABLE
            assert connection.ask(END_TXN, 1, {**end, "committed": False}).error_code == 0
        check_content(broker.address, found)
    assert found.verify() == []


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_format_7_left_open_goes_on(tmp_path: Path, is_killed: bool) -> None:
    """After a kill, on the same boot. Also if the first start after it is killed right after the upgrade."""
    found = Found(tmp_path, "killed", 7)
    asyncio.run(note_this_boot(found.data / "state.lmdb"))
    if is_killed:
        killed_once_upgraded(found)
        assert read_format(found.data / "format.json").version == FORMAT
    with found.broker() as broker:
        with BrokerConnection(broker.address) as connection:
            assert connection.ask(END_TXN, 1, {**end_of_open(found), "committed": True}).error_code == 0
        found.content["orders-0"] += [b"open 1", b"open 2"]
        found.content["audit-0"].append(b"open 1")
        check_content(broker.address, found)
        broker.restart(kill=True)
        check_content(broker.address, found)
    assert found.verify() == []


def end_of_open(found: Found) -> dict[str, object]:
    """The request that ends the open transaction, without how."""
    drafts = [shown.entry for shown in found.entries("orders", 0) if shown.entry.kind == Kind.DRAFT]
    producer_id, producer_epoch, _ = drafts[-1].transaction
    return {"transactional_id": "open/1", "producer_id": producer_id, "producer_epoch": producer_epoch}


def killed_once_upgraded(found: Found) -> None:
    """Start a broker that ends before anything follows from the upgrade."""
    program = (
        "import os; from faircopy.shard.shards import Shards; Shards.settle = lambda *_: os._exit(9); "
        "from faircopy.cli.main import main; main()"
    )
    command = [sys.executable, "-c", program, "start", "--data-dir", str(found.data)]
    command += ["--listen", "127.0.0.1:0", *(f"--set={setting}" for setting in SETTINGS)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)
    assert ran.returncode == 9, ran.stderr


async def note_this_boot(path: Path) -> None:
    """Let the broker know that the machine was not started again."""
    store = StateStore(path, asyncio.get_running_loop())
    await note_running(LmdbStore(store), boot_id(), is_synced=True)
    store.close()


def test_a_backup_has_both_formats(killed: Found) -> None:
    copy = Found(killed.directory / "restored", "killed")
    with killed.broker() as broker:
        commit_more(broker.address, killed, 1)
        backup = killed.directory / "backup"
        run("backup", str(backup), "--broker", broker.address)
    for path in sorted(copy.data.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    copy.data.rmdir()
    run("restore", str(backup), str(copy.data))
    assert set(copy.segments().values()) == {OLD, NEW}
    assert copy.verify() == []
    with copy.broker() as broker:
        assert UPGRADES not in broker.log
        copy.content = killed.content
        check_content(broker.address, copy)


def run(*arguments: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "faircopy", *arguments],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout


def test_damage_in_an_old_segment_stops_its_partition(killed: Found, chance: random.Random) -> None:
    entries = killed.entries("orders", 0)
    shown = chance.choice(entries[: len(entries) // 2])
    with shown.path.open("r+b") as file:
        byte = shown.byte + chance.randrange(shown.entry.length)
        file.seek(byte)
        before = file.read(1)[0]
        file.seek(byte)
        file.write(bytes([before ^ 1 << chance.randrange(8)]))
    content = shown.path.read_bytes()
    assert [(each["file"], each["byte"]) for each in killed.verify()] == [(str(shown.path), shown.byte)]
    with killed.broker() as broker:
        assert f"orders-0 is stopped: {shown.path} is damaged at byte {shown.byte} " in broker.log
        commit_to_audit(broker.address)
    assert shown.path.read_bytes() == content


def commit_to_audit(address: str) -> None:
    producer = transactional(address, "audit/1")
    producer.begin_transaction()
    producer.produce("audit", b"others go on", partition=0)
    producer.commit_transaction(60)


def test_a_start_that_fails_upgrades_nothing(killed: Found) -> None:
    """An older faircopy can still be put back in its place."""
    (path,) = (killed.data / "journal" / "_metadata").glob("*/*.journal")
    content = bytearray(path.read_bytes())
    content[64 + 100] ^= 1
    path.write_bytes(content)
    before = {each: each.read_bytes() for each in killed.segments()}
    with pytest.raises(RuntimeError, match="is damaged at byte"):
        killed.broker().start()
    assert read_format(killed.data / "format.json").version == 3
    assert {each: each.read_bytes() for each in killed.segments()} == before


@pytest.mark.parametrize(("old", "new"), [(b'"format": 3', b'"format": 4'), (b'"crc32c": ', b'"crc32c": 1')])
def test_a_changed_format_file_is_damaged(killed: Found, old: bytes, new: bytes) -> None:
    path = killed.data / "format.json"
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(DataDirectoryError, match="is damaged"):
        read_format(path)

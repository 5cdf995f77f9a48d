"""A broker started on a rotten directory refuses what is damaged, serves the rest, and cuts nothing."""

from __future__ import annotations

import os
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from crc32c import crc32c

from faircopy.api.fetch.fetch import SCHEMA as FETCH
from faircopy.api.list_offsets import SCHEMA as LIST_OFFSETS
from faircopy.catalogue.journal import catalogue_directory
from faircopy.client.connection import BrokerConnection
from faircopy.journal.entry import HEADER_BYTES as ENTRY_HEADER_BYTES
from faircopy.journal.entry import Entry, Kind, TransactionId
from faircopy.journal.entry_format import encode_header
from faircopy.storage.state_store import StateStore
from faircopy.storage.store_check import FILE, MAP_BYTES, STAMP
from faircopy.verify.journal_entries import ShownEntry, open_to_show, shown_entries
from faircopy.verify.state import check_store
from faircopy.verify.state_pages import StorePages
from faircopy.wire.error_codes import ErrorCode
from tests.broker_process import BrokerProcess, environment, eventually
from tests.rot.flips import Flip, flip_for_good
from tests.rot.made import SETTINGS, Made, identity, read

Copy = Callable[[Made], Made]
Partition = tuple[str, int]
MISFIT = b'{"partitions":[]}'
MISFIT_CHANGE = b'{"rests_on":{"shape":7},"set":{"topics/misfit":"{}"}}'
SHARED = ["_metadata", "__consumer_offsets", "_catalogue"]


# -- what a broker does --------------------------------------------------------------------------------------


def end_offset(address: str, topic: str, partition: int) -> int:
    """What ListOffsets tells; an error's code, negative."""
    body = {"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}
    with BrokerConnection(address) as connection:
        answer = connection.ask(LIST_OFFSETS, 5, {"topics": [body]}).topics[0].partitions[0]
    return -int(answer.error_code) if answer.error_code else int(answer.offset)


def fetch_error(address: str, topic: str, partition: int, offset: int = 0) -> int:
    """The error code that Fetch gives."""
    asked = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic, "partitions": [asked]}]
    body = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics}
    with BrokerConnection(address) as connection:
        return int(connection.ask(FETCH, 4, body).responses[0].partitions[0].error_code)


def takes_more(address: str, topic: str, partition: int, patience_ms: int = 60_000) -> bool:
    """Whether a message can be produced."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": address, "message.timeout.ms": patience_ms, "log_level": 0})
    producer.produce(
        topic, b"more", partition=partition, on_delivery=lambda error, _message: errors.append(error)
    )
    producer.flush()
    return len(errors) == 1 and errors[0] is None


def check_refused(broker: BrokerProcess, refused: Partition) -> None:
    """Nothing is served of a partition, and nothing taken for it."""
    assert fetch_error(broker.address, *refused) == ErrorCode.KAFKA_STORAGE_ERROR
    assert end_offset(broker.address, *refused) == -ErrorCode.KAFKA_STORAGE_ERROR
    assert not takes_more(broker.address, *refused, patience_ms=700)


def check_others(broker: BrokerProcess, made: Made, refused: Partition | None = None) -> None:
    """All other partitions have all of their messages, and take more."""
    for partition, messages in made.content.items():
        if partition != refused:
            assert read(broker.address, *partition) == messages, partition
            assert takes_more(broker.address, *partition)


@contextmanager
def started(made: Made, path: Path, content: bytes) -> Iterator[BrokerProcess]:
    """A broker on a directory whose file at `path` has rotted to `content`, and must stay like that."""
    with made.broker() as broker:
        yield broker
        assert path.read_bytes() == content
    assert path.read_bytes() == content
    broker.ensure_no_traceback()


def refusal(made: Made) -> str:
    """What a broker says that refuses to start; all files stay as they were."""
    before = snapshot(made)
    command = [
        sys.executable,
        "-m",
        "faircopy",
        "start",
        "--data-dir",
        str(made.data),
        "--listen",
        "127.0.0.1:0",
    ]
    command += [part for setting in SETTINGS for part in ("--set", setting)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    assert run.returncode == 1 and run.stderr.startswith("faircopy: "), run.stderr
    assert run.stderr.count("\n") == 1 + run.stderr.count(" is stopped: "), run.stderr
    assert snapshot(made) == before
    return run.stderr


def snapshot(made: Made) -> dict[Path, bytes]:
    """The content of what a start must not touch.

    Left out are the store, which counts starts, the locks, and the space that journals have reserved past
    their ends.
    """
    files = (path for path in made.data.rglob("*") if path.is_file() and path.name != "lock")
    return {path: path.read_bytes().rstrip(b"\0") for path in files if path.parent.name != "state.lmdb"}


def change(path: Path, byte: int, chance: random.Random) -> bytes:
    """Let one byte rot; returns the file's content."""
    flip = Flip(byte, chance.randrange(1, 256))
    print(path, flip)
    return flip_for_good(path, flip)


# -- files of one partition ----------------------------------------------------------------------------------


@pytest.mark.parametrize("partition", [("orders", 1), ("bulk", 0)])
def test_a_log(stopped: Made, copy_of: Copy, chance: random.Random, partition: Partition) -> None:
    made = copy_of(stopped)
    path = chance.choice(made.files("log", *partition))
    content = change(path, chance.randrange(path.stat().st_size), chance)
    with started(made, path, content) as broker:
        # Nobody has looked at it, before it is first to be served.
        assert "is stopped" not in broker.log
        last = len(made.content[partition]) - 1
        codes = [fetch_error(broker.address, *partition, offset=offset) for offset in range(last + 1)]
        assert ErrorCode.KAFKA_STORAGE_ERROR in codes
        check_refused(broker, partition)
        check_others(broker, made, partition)
        assert broker.log.count("is stopped") == 1
        assert f"{partition[0]}-{partition[1]} is stopped: {path} is damaged" in broker.log
        assert " byte " in broker.log


def entries_of(made: Made, topic: str, partition: int) -> list[ShownEntry]:
    return list(shown_entries(open_to_show(made.files("journal", topic, partition)[0].parent)))


def byte_in(shown: ShownEntry, chance: random.Random) -> int:
    return chance.randrange(shown.byte, shown.byte + shown.entry.length)


@pytest.mark.parametrize("partition", [("orders", 0), ("bulk", 1)])
def test_a_journal_after_the_checkpoint(
    killed: Made, copy_of: Copy, chance: random.Random, partition: Partition
) -> None:
    """Durable, as later entries tell: I9."""
    made = copy_of(killed)
    entries = entries_of(made, *partition)
    shown = chance.choice(entries[: len(entries) // 2])
    logs = {path: path.read_bytes() for path in made.files("log", *partition)}
    content = change(shown.path, byte_in(shown, chance), chance)
    with started(made, shown.path, content) as broker:
        assert f"is stopped: {shown.path} is damaged at byte {shown.byte} " in broker.log
        check_refused(broker, partition)
        check_others(broker, made, partition)
    assert {path: path.read_bytes() for path in made.files("log", *partition)} == logs


def test_the_last_entry_of_a_journal(killed: Made, copy_of: Copy, chance: random.Random) -> None:
    """No later entry tells that it was durable, but the log has shown its messages: I2."""
    made = copy_of(killed)
    shown = entries_of(made, "bulk", 1)[-1]
    assert shown.entry.kind == Kind.PLAIN
    content = change(shown.path, byte_in(shown, chance), chance)
    with started(made, shown.path, content) as broker:
        assert "is stopped" in broker.log and "which was visible" in broker.log
        check_refused(broker, ("bulk", 1))
        check_others(broker, made, ("bulk", 1))


def test_a_draft_of_an_open_transaction(stopped: Made, copy_of: Copy, chance: random.Random) -> None:
    """It lies below the checkpoint, where nothing is folded again; it would be missed when it is applied."""
    made = copy_of(stopped)
    draft = next(each for each in entries_of(made, "orders", 1) if each.entry.kind == Kind.DRAFT)
    content = change(draft.path, byte_in(draft, chance), chance)
    with started(made, draft.path, content) as broker:
        assert f"is stopped: {draft.path} is damaged at byte {draft.byte} " in broker.log
        check_refused(broker, ("orders", 1))
        check_others(broker, made, ("orders", 1))


def add_misfit(path: Path) -> tuple[int, bytes]:
    """Append to a journal an entry that is whole, but of a transaction that none before it began; in the
    catalogue, one that rests on what was never there.

    Returns the byte where it stands, and the file's content.
    """
    last = list(shown_entries(open_to_show(path)))[-1]
    content = bytearray(path.read_bytes())
    (salt,) = struct.unpack_from("<Q", content, 16)
    kind, payload = (
        (Kind.CHANGE, MISFIT_CHANGE) if "_catalogue" in path.parts else (Kind.PREPARE_COMMIT, MISFIT)
    )
    length = ENTRY_HEADER_BYTES + len(payload)
    unknown = TransactionId(1 << 40, 0, 0)
    entry = Entry(kind, last.entry.end, length, 0, 0, -1, unknown, last.entry.end)
    byte = last.byte + last.entry.length
    content[byte : byte + length] = encode_header(entry, payload, crc32c(struct.pack("<Q", salt))) + payload
    path.write_bytes(content)
    return byte, bytes(content)


def test_an_entry_that_follows_from_nothing(killed: Made, copy_of: Copy) -> None:
    """As a fault of the broker, or of whoever wrote there, would leave it: no checksum tells."""
    made = copy_of(killed)
    (path,) = made.files("journal", "orders", 0)
    byte, content = add_misfit(path)
    with started(made, path, content) as broker:
        assert f"is stopped: {path} holds an entry at byte {byte} " in broker.log
        assert "can't follow those before it" in broker.log
        check_refused(broker, ("orders", 0))
        check_others(broker, made, ("orders", 0))


@pytest.mark.parametrize("kind", ["orders.*/0", *(f"{shared}/*" for shared in SHARED)])
def test_repair_passes_over_what_follows_from_nothing(killed: Made, copy_of: Copy, kind: str) -> None:
    """Once and for all: the next start needs no option, and finds everything."""
    made = copy_of(killed)
    (path,) = (made.data / "journal").glob(f"{kind}/*.journal")
    byte, _ = add_misfit(path)
    broker = made.broker()
    broker.arguments = ("--repair",)
    with broker:
        assert f"passed over, as --repair says: {path} holds an entry at byte {byte} " in broker.log
        assert broker.log.count("passed over") == 1
        broker.kill()
        broker.arguments = ()
        broker.start()
        check_others(broker, made)
        assert "is stopped" not in broker.log
    broker.ensure_no_traceback()
    checked = subprocess.run(
        [sys.executable, "-m", "faircopy", "verify", str(made.data)],
        capture_output=True, text=True, timeout=120, env=environment(),
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout


def test_what_nobody_needs_any_more(stopped: Made, copy_of: Copy, chance: random.Random) -> None:
    """What is decided and below the checkpoint is in the log. (`faircopy verify` reports it all the same.)"""
    made = copy_of(stopped)
    plain = [each for each in entries_of(made, "orders", 0) if each.entry.kind == Kind.PLAIN]
    change(plain[3].path, byte_in(plain[3], chance), chance)
    # Space that is reserved past the end, and the file in which LMDB notes who reads at the moment.
    path = made.files("journal", "audit", 0)[0]
    change(path, path.stat().st_size - 1, chance)
    lock = made.data / "state.lmdb" / "lock.mdb"
    change(lock, chance.randrange(lock.stat().st_size), chance)
    with made.broker() as broker:
        check_others(broker, made)
        assert "is stopped" not in broker.log


# -- shared files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHARED)
def test_a_shared_journal(killed: Made, copy_of: Copy, chance: random.Random, kind: str) -> None:
    made = copy_of(killed)
    (path,) = (made.data / "journal" / kind).glob("*/*.journal")
    entries = list(shown_entries(open_to_show(path)))
    shown = chance.choice(entries[: len(entries) // 2])
    change(path, byte_in(shown, chance), chance)
    assert f"{path} is damaged at byte {shown.byte} " in refusal(made)


@pytest.mark.parametrize("kind", SHARED)
def test_an_entry_of_a_shared_journal_that_follows_from_nothing(
    killed: Made, copy_of: Copy, kind: str
) -> None:
    made = copy_of(killed)
    (path,) = (made.data / "journal" / kind).glob("*/*.journal")
    byte, _ = add_misfit(path)
    assert f"{path} holds an entry at byte {byte} " in refusal(made)


@pytest.mark.parametrize("kind", ["_metadata", "_catalogue"])
def test_the_end_of_a_shared_journal(killed: Made, copy_of: Copy, chance: random.Random, kind: str) -> None:
    """Nothing tells that the last entry was durable: it is a torn tail, and is cut."""
    made = copy_of(killed)
    (path,) = (made.data / "journal" / kind).glob("*/*.journal")
    last = list(shown_entries(open_to_show(path)))[-1]
    change(path, byte_in(last, chance), chance)
    with made.broker() as broker:
        check_others(broker, made)
        assert (
            path.read_bytes()[: last.byte]
            == (killed.data / path.relative_to(made.data)).read_bytes()[: last.byte]
        )


def test_a_record_of_one_partition(stopped: Made, copy_of: Copy, chance: random.Random) -> None:
    made = copy_of(stopped)
    own = identity_in(made, "orders", 0)
    path = made.data / "state.lmdb" / FILE
    records = [
        record for record in StorePages(path, STAMP, MAP_BYTES).records() if record.key.startswith(own)
    ]
    record = chance.choice(records)
    change(path, record.byte + chance.randrange(len(record.value)), chance)
    with made.broker() as broker:
        assert f"orders-0 is stopped: {path} is damaged: in table {record.table.decode()}" in broker.log
        assert record.key.hex() in broker.log
        check_refused(broker, ("orders", 0))
        check_others(broker, made, ("orders", 0))


def identity_in(made: Made, topic: str, partition: int) -> bytes:
    store = StateStore.open_to_read(made.data / "state.lmdb")
    try:
        return identity(store, topic, partition)
    finally:
        store.close()


def test_a_record_that_all_need(stopped: Made, copy_of: Copy, chance: random.Random) -> None:
    made = copy_of(stopped)
    path = made.data / "state.lmdb" / FILE
    records = list(StorePages(path, STAMP, MAP_BYTES).records())
    record = chance.choice([each for each in records if each.table in (b"catalogue", b"transactional_ids")])
    change(path, record.byte + chance.randrange(len(record.value)), chance)
    assert f"{path} is damaged: in table {record.table.decode()}" in refusal(made)


def test_the_key_of_a_record_that_all_need(stopped: Made, copy_of: Copy, chance: random.Random) -> None:
    """Nobody would miss it: what begins with another key is not read."""
    made = copy_of(stopped)
    path = made.data / "state.lmdb" / FILE
    records = StorePages(path, STAMP, MAP_BYTES).records()
    # The last one, and where it has zeros: so it stays in its place.
    record = [each for each in records if each.table == b"transactional_ids"][-1]
    change(path, record.byte - len(record.key) + chance.randrange(1, 16), chance)
    assert f"{path} is damaged" in refusal(made)


@pytest.mark.parametrize(
    ("byte", "changed", "what"),
    [
        (10, b"\4\0", "Located page was wrong type"),
        (12, b"\x12\0", "table checkpoints should have [0-9]+ records, and has 1"),
    ],
)
def test_pages_of_the_state_store(stopped: Made, copy_of: Copy, byte: int, changed: bytes, what: str) -> None:
    """A page of another kind, and one that has lost all nodes but the first."""
    made = copy_of(stopped)
    path = made.data / "state.lmdb" / FILE
    (record, *_) = (
        each for each in StorePages(path, STAMP, MAP_BYTES).records() if each.table == b"checkpoints"
    )
    content = bytearray(path.read_bytes())
    at = record.byte // 4096 * 4096 + byte
    content[at : at + len(changed)] = changed
    path.write_bytes(content)
    message = refusal(made)
    assert re.search(f"{path} is damaged: .*{what}", message) and "faircopy verify" in message
    assert path.read_bytes() == content
    assert any(flaw.byte // 4096 == at // 4096 for flaw in check_store(path.parent).flaws)


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_lost_state_store(stopped: Made, copy_of: Copy, is_cut: bool) -> None:
    """Without it topics look as if they had been deleted, and their files like leftovers: those must stay."""
    made = copy_of(stopped)
    path = made.data / "state.lmdb" / FILE
    path.write_bytes(b"") if is_cut else path.unlink()
    assert "is empty, and" in refusal(made)


def test_a_lost_catalogue_that_had_a_checkpoint(stopped: Made, copy_of: Copy) -> None:
    made = copy_of(stopped)
    directory = catalogue_directory(made.data / "journal")
    shutil.rmtree(directory.parent)
    assert f"{directory} has no segments, but was checkpointed at " in refusal(made)


def test_a_lost_catalogue_that_had_no_checkpoint(killed: Made, copy_of: Copy) -> None:
    """No second one is founded, under which all topics would be leftovers."""
    made = copy_of(killed)
    directory = catalogue_directory(made.data / "journal")
    shutil.rmtree(directory.parent)
    for _ in range(2):
        assert f"the catalogue {directory} is empty, and " in refusal(made)


def test_a_catalogue_that_ends_below_its_checkpoint(stopped: Made, copy_of: Copy) -> None:
    made = copy_of(stopped)
    last = list(shown_entries(open_to_show(catalogue_directory(made.data / "journal"))))[-1]
    os.truncate(last.path, last.byte)
    assert f"{last.path} has {last.byte} bytes, and was checkpointed at byte " in refusal(made)


def test_a_catalogue_that_is_damaged_below_its_checkpoint(
    stopped: Made, copy_of: Copy, chance: random.Random
) -> None:
    """Nobody needs it any more. (`faircopy verify` reports it all the same.)"""
    made = copy_of(stopped)
    shown = chance.choice(list(shown_entries(open_to_show(catalogue_directory(made.data / "journal")))))
    content = change(shown.path, byte_in(shown, chance), chance)
    with made.broker() as broker:
        check_others(broker, made)
        assert shown.path.read_bytes()[: len(content)].startswith(content.rstrip(b"\0"))


@pytest.mark.parametrize("part", ["stopped", "killed"])
def test_the_head_of_the_catalogue(
    request: pytest.FixtureRequest, copy_of: Copy, chance: random.Random, part: str
) -> None:
    made = copy_of(request.getfixturevalue(part))
    (path,) = catalogue_directory(made.data / "journal").iterdir()
    change(path, chance.randrange(64), chance)
    assert f"{path} does not begin with a sound segment header" in refusal(made)


def test_the_format(stopped: Made, copy_of: Copy, chance: random.Random) -> None:
    made = copy_of(stopped)
    path = made.data / "format.json"
    change(path, chance.randrange(path.stat().st_size), chance)
    message = refusal(made)
    assert str(path) in message or "has format" in message


# -- plain tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["_spark_metadata/??", "_faircopy.json", "*.parquet"])
def test_a_plain_table(stopped: Made, copy_of: Copy, chance: random.Random, pattern: str) -> None:
    """The broker serves all topics and publishes all other tables; in this table it changes nothing."""
    made = copy_of(stopped)
    table, other = made.data / "plain" / "audit", made.data / "plain" / "bulk"
    path = max(table.glob(pattern))
    content = change(path, chance.randrange(path.stat().st_size), chance)
    before = sorted(each.name for each in table.rglob("*"))
    published = len(list(other.glob("*.parquet")))
    with started(made, path, content) as broker:
        check_others(broker, made)
        eventually(lambda: "plain table audit" in broker.log)
        eventually(lambda: len(list(other.glob("*.parquet"))) > published)
    assert sorted(each.name for each in table.rglob("*")) == before

"""`faircopy verify` and a catalogue that is damaged, cut short, gone, or not what its checkpoint says."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from faircopy.catalogue.journal import TABLE, catalogue_directory
from faircopy.cli.main import cli
from faircopy.storage.state_store import Change, Delete, Put, StateStore
from faircopy.storage.store_check import FILE, MAP_BYTES, STAMP
from faircopy.verify.journal_entries import ShownEntry, open_to_show, shown_entries
from faircopy.verify.state_pages import StorePages
from tests.rot.flips import Flip, flip_for_good
from tests.rot.made import Made

Copy = Callable[[Made], Made]
KEY = b"topics/orders"


def findings(made: Made) -> list[dict[str, Any]]:
    """What verify finds."""
    result = CliRunner().invoke(cli, ["verify", str(made.data), "--json"])
    assert result.exit_code in (0, 1), result.exception
    found: list[dict[str, Any]] = json.loads(result.stdout)
    assert result.exit_code == bool(found)
    return found


def directory_of(made: Made) -> Path:
    return catalogue_directory(made.data / "journal")


def entries_of(made: Made) -> list[ShownEntry]:
    return list(shown_entries(open_to_show(directory_of(made))))


def store_in(made: Made, change: Change) -> None:
    """Change a record of the state store, with the right checksum."""

    async def write() -> None:
        store = StateStore(made.data / "state.lmdb", asyncio.get_running_loop())
        await store.write([change])
        store.close()

    asyncio.run(write())


def version_in(made: Made, key: bytes) -> int:
    store = StateStore.open_to_read(made.data / "state.lmdb")
    try:
        stored = store.get(TABLE, key)
        assert stored is not None
        return int(struct.unpack_from(">Q", stored)[0])
    finally:
        store.close()


# -- the journal ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["stopped", "killed"])
def test_a_damaged_catalogue_hides_nothing_else(
    request: pytest.FixtureRequest, copy_of: Copy, which: str
) -> None:
    """Nobody knows the topics then, but each file tells what it is of."""
    made = copy_of(request.getfixturevalue(which))
    shown = entries_of(made)[1]
    log = made.files("log", "audit", 0)[0]
    flip_for_good(shown.path, Flip(shown.byte + 70, 1))
    flip_for_good(log, Flip(90, 1))
    found = {each["file"]: each["byte"] for each in findings(made)}
    assert found.keys() == {str(shown.path), str(log)}
    assert found[str(shown.path)] == shown.byte


def test_a_catalogue_that_ends_below_its_checkpoint(stopped: Made, copy_of: Copy) -> None:
    made = copy_of(stopped)
    last = entries_of(made)[-1]
    os.truncate(last.path, last.byte)
    assert (str(last.path), last.byte) in {(each["file"], each["byte"]) for each in findings(made)}


def test_a_catalogue_that_is_gone_and_had_a_checkpoint(stopped: Made, copy_of: Copy) -> None:
    made = copy_of(stopped)
    shutil.rmtree(directory_of(made).parent)
    (found,) = findings(made)
    assert found["file"] == str(directory_of(made))
    assert "no segment is there, and the journal was checkpointed at" in found["what"]


def test_a_catalogue_that_is_gone_and_had_no_checkpoint(killed: Made, copy_of: Copy) -> None:
    """All topics would look deleted, and nothing of them would be checked."""
    made = copy_of(killed)
    shutil.rmtree(directory_of(made).parent)
    (found,) = findings(made)
    assert found["file"] == str(directory_of(made))
    assert "the catalogue is empty, and " in found["what"]


def test_a_topic_whose_entry_has_rotted_keeps_its_files(killed: Made, copy_of: Copy) -> None:
    """The entry looks like a torn tail. The broker goes on without the topic, and says what it has found."""
    made = copy_of(killed)
    with made.broker() as broker:
        create(broker.address, "late")
        produce(broker.address, "late", b"late")
        broker.kill()
    last = entries_of(made)[-1]
    assert "topics/late" in last.says["set"]
    flip_for_good(last.path, Flip(last.byte + 70, 1))
    left = [path.parents[1] for part in ("journal", "log") for path in made.files(part, "late", 0)]
    assert {(each["file"], each["what"]) for each in findings(made)} == {
        (str(path), "belongs to no topic that the catalogue knows, present or deleted") for path in left
    }
    with made.broker() as broker:
        assert all(f"{path} belongs to no topic that the catalogue knows" in broker.log for path in left)
        create(broker.address, "late")
    assert all(path.exists() for path in left)


def create(address: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(60)


def produce(address: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": address})
    producer.produce(topic, value, partition=0)
    assert producer.flush(60) == 0


def test_a_directory_that_is_not_founded_yet(tmp_path: Path, killed: Made) -> None:
    """A broker that was killed at once has left an empty catalogue, and nothing else."""
    made = Made(tmp_path)
    for part in ("journal/_catalogue/0", "log", "plain", "state.lmdb"):
        (made.data / part).mkdir(parents=True)
    shutil.copy(killed.data / "format.json", made.data / "format.json")

    async def open_store() -> None:
        StateStore(made.data / "state.lmdb", asyncio.get_running_loop()).close()

    asyncio.run(open_store())
    assert findings(made) == []


# -- the checkpoint ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["older", "other", "gone", "strange"])
def test_a_checkpoint_that_differs_from_the_journal(stopped: Made, copy_of: Copy, how: str) -> None:
    """I6: the journal is folded from the beginning, as long as it has that."""
    made = copy_of(stopped)
    version = version_in(made, KEY)
    key = b"topics/strange" if how == "strange" else KEY
    store_in(
        made,
        Delete(TABLE, key)
        if how == "gone"
        else Put(TABLE, key, struct.pack(">Q", version - (how == "older")) + b'{"configs": {}}'),
    )
    (found,) = [each for each in findings(made) if "I6" in each["what"]]
    assert found["file"] == str(made.data / "state.lmdb" / FILE)
    assert f"in table catalogue, {key.decode()} (version " in found["what"]


def test_a_damaged_record_of_the_checkpoint_is_named_once(stopped: Made, copy_of: Copy) -> None:
    made = copy_of(stopped)
    path = made.data / "state.lmdb" / FILE
    records = StorePages(path, STAMP, MAP_BYTES).records()
    (record,) = (each for each in records if (each.table, each.key) == (b"catalogue", KEY))
    flip_for_good(path, Flip(record.byte + 12, 1))
    (found,) = findings(made)
    assert (found["file"], found["byte"]) == (str(path), record.byte)
    assert "in table catalogue does not match its checksum" in found["what"]

"""What a backup has of the catalogue, and how a restored one parts from the original."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faircopy.api.metadata import SCHEMA as METADATA
from faircopy.backup.make import backups_in, read_manifest
from faircopy.catalogue.producer_ids import IDS_SKIPPED
from faircopy.client.connection import BrokerConnection
from faircopy.storage.copied import is_copied
from faircopy.storage.local_notes import LocalNotes
from faircopy.storage.state_store import StateStore
from tests.backup.test_commands import new_producer_id, run
from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic, delete_topic

SETTINGS = ("plain.enabled=false", "auto.create.topics=false", "producer.id.block=10")
BLOCK = 10


@pytest.fixture(params=["100", "3600000"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """One that makes checkpoints all the time, and one that makes none: all is in the journal then."""
    with BrokerProcess(tmp_path, *SETTINGS, f"checkpoint.interval.ms={request.param}") as made:
        create_topic(made.address, "t", 2)
        create_topic(made.address, "gone", 1)
        delete_topic(made.address, "gone")
        yield made


@pytest.fixture
def restored(broker: BrokerProcess, tmp_path: Path) -> BrokerProcess:
    """The same, restored from a backup and not started yet. The original goes on."""
    new_producer_id(broker)
    run("backup", tmp_path / "b", "--broker", broker.address)
    run("restore", tmp_path / "b", tmp_path / "new" / "data")
    return BrokerProcess(tmp_path / "new", *SETTINGS)


def is_copy(broker: BrokerProcess) -> bool:
    """Whether its directory is noted as a copy that nobody has started on."""
    store = StateStore.open_to_read(broker.data_directory / "state.lmdb")
    try:
        return is_copied(LocalNotes(store))
    finally:
        store.close()


def shape_of(broker: BrokerProcess) -> tuple[str, dict[str, int]]:
    """The cluster's id, and how many partitions each topic has."""
    with BrokerConnection(broker.address) as connection:
        answer = connection.ask(METADATA, 9, {"topics": None})
    return answer.cluster_id, {topic.name: len(topic.partitions) for topic in answer.topics}


def test_a_restored_catalogue_is_that_of_the_original(broker: BrokerProcess, restored: BrokerProcess) -> None:
    directory = restored.data_directory.parent.parent / "b"
    files = read_manifest(backups_in(directory)[-1]).files
    assert any(name.startswith("journal/_catalogue/0/") for name in files)
    with restored:
        assert shape_of(restored) == shape_of(broker)
        assert shape_of(restored)[1] == {"t": 2}
        # They are one cluster, so that the restored broker's backups continue those of the original.
        run("backup", directory, "--broker", restored.address)
    assert len(backups_in(directory)) == 2
    assert "all as it should be" in run("verify", restored.data_directory)


def test_a_restored_broker_skips_producer_ids_once(broker: BrokerProcess, restored: BrokerProcess) -> None:
    newest = new_producer_id(broker)
    assert is_copy(restored)
    with restored:
        first = new_producer_id(restored)
        assert abs(first - newest - IDS_SKIPPED) <= BLOCK
        restored.kill()
        assert not is_copy(restored)
        restored.start()
        assert 0 < new_producer_id(restored) - first <= 2 * BLOCK


@pytest.mark.parametrize("at", ["skip_ids", "note_parted"])
def test_a_kill_in_the_first_start_is_harmless(
    broker: BrokerProcess, restored: BrokerProcess, at: str
) -> None:
    """At worst, the ids are skipped once more."""
    newest = new_producer_id(broker)
    restored.program = ("tests.backup.dies_in_first_start", at)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="did not become ready"):
            restored.start()
        assert is_copy(restored)
    restored.program = ("faircopy",)
    with restored:
        times = 1 if at == "skip_ids" else 3
        assert abs(new_producer_id(restored) - newest - times * IDS_SKIPPED) <= BLOCK
        assert shape_of(restored) == shape_of(broker)
        restored.stop()
    assert not is_copy(restored)
    restored.ensure_no_traceback()


def test_backups_of_two_clusters_are_not_mixed(
    broker: BrokerProcess, restored: BrokerProcess, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    with BrokerProcess(tmp_path / "other", *SETTINGS) as other:
        assert shape_of(other)[0] != shape_of(broker)[0]
        said = run("backup", tmp_path / "b", "--broker", other.address, fails=True)
    assert "is a backup of another broker: choose another directory" in said
    assert len(backups_in(tmp_path / "b")) == 1

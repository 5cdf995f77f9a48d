"""The copying of a backup: what is taken over, what is copied, and what is seen of damage."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.backup.make import UNFINISHED, Backup, Outcome, Wanted, backups_in, read_manifest
from faircopy.backup.manifest import BadBackup, CopiedFile, Manifest, decode_manifest, encode_manifest
from faircopy.backup.restore import ensure_empty, find_backup, flaws_of
from faircopy.storage.failures import StorageFailure

SEALED, TAIL = "log/t.1/0/0.log", "journal/t.1/0/0.journal"
WANTED = [Wanted(SEALED, 5_000, True), Wanted(TAIL, 300, False)]


class BrokenOff(Exception):
    pass


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    directory = tmp_path / "snapshot"
    for name, content in ((SEALED, b"s" * 5_000), (TAIL, b"t" * 1_000)):
        (directory / name).parent.mkdir(parents=True)
        (directory / name).write_bytes(content)
    return directory


def back_up(snapshot: Path, directory: Path, made: str, wanted: list[Wanted] | None = None) -> Outcome:
    return Backup(snapshot, directory, "c", lambda size: None).run(wanted or WANTED, made)


def test_a_backup_has_what_is_wanted(snapshot: Path, tmp_path: Path) -> None:
    outcome = back_up(snapshot, tmp_path / "b", "1")
    assert outcome == (tmp_path / "b" / "1", 2, 300, 5_000, 0)
    assert (outcome.path / TAIL).read_bytes() == b"t" * 300
    assert (outcome.path / SEALED).samefile(snapshot / SEALED)
    assert not list(flaws_of(outcome.path, read_manifest(outcome.path), lambda size: None))
    assert find_backup(tmp_path / "b") == find_backup(outcome.path) == outcome.path


def test_backups_of_one_second_are_all_kept(snapshot: Path, tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        (snapshot / TAIL).write_bytes(b"%d" % number * 1_000)
        paths.append(back_up(snapshot, tmp_path / "b", "1").path)
    assert [path.name for path in paths] == ["1", "1-2", "1-3"]
    assert [(path / TAIL).read_bytes()[:1] for path in paths] == [b"0", b"1", b"2"]
    assert backups_in(tmp_path / "b") == paths
    assert find_backup(tmp_path / "b") == paths[-1]


def test_another_file_system_gets_copies(
    snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(old: Path, new: Path) -> None:
        raise StorageFailure("another file system")

    monkeypatch.setattr("faircopy.backup.make.link_file", refuse)
    outcome = back_up(snapshot, tmp_path / "b", "1")
    assert (outcome.copied_bytes, outcome.linked_bytes) == (5_300, 0)
    assert not (outcome.path / SEALED).samefile(snapshot / SEALED)


def test_the_next_backup_takes_over_what_has_not_changed(snapshot: Path, tmp_path: Path) -> None:
    first = back_up(snapshot, tmp_path / "b", "1")
    (snapshot / TAIL).write_bytes(b"u" * 1_000)
    second = back_up(snapshot, tmp_path / "b", "2", [WANTED[0], Wanted(TAIL, 400, False)])
    assert (second.copied_bytes, second.linked_bytes, second.kept_bytes) == (400, 0, 5_000)
    assert (second.path / TAIL).read_bytes() == b"u" * 400
    assert (first.path / TAIL).read_bytes() == b"t" * 300
    assert backups_in(tmp_path / "b") == [first.path, second.path]
    assert find_backup(tmp_path / "b") == second.path


def test_a_backup_that_was_broken_off_goes_on(snapshot: Path, tmp_path: Path) -> None:
    def break_off(size: int) -> None:
        if (tmp_path / "b" / UNFINISHED / SEALED).exists() and size == 300:
            raise BrokenOff

    with pytest.raises(BrokenOff):
        Backup(snapshot, tmp_path / "b", "c", break_off).run(WANTED, "1")
    assert not backups_in(tmp_path / "b")
    with pytest.raises(BadBackup):
        find_backup(tmp_path / "b")
    outcome = back_up(snapshot, tmp_path / "b", "2")
    assert (outcome.copied_bytes, outcome.kept_bytes) == (300, 5_000)
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["2"]
    assert not list(flaws_of(outcome.path, read_manifest(outcome.path), lambda size: None))


def test_what_was_broken_off_and_is_gone_meanwhile_goes(snapshot: Path, tmp_path: Path) -> None:
    unfinished = tmp_path / "b" / UNFINISHED
    unfinished.mkdir(parents=True)
    (unfinished / "old.log").write_bytes(b"old")
    (unfinished / "done.jsonl").write_text(json.dumps(["old.log", 3, 1, 1]) + '\n["half')
    assert not (back_up(snapshot, tmp_path / "b", "1").path / "old.log").exists()


def test_backups_of_two_brokers_are_not_mixed(snapshot: Path, tmp_path: Path) -> None:
    back_up(snapshot, tmp_path / "b", "1")
    with pytest.raises(BadBackup, match="another broker"):
        Backup(snapshot, tmp_path / "b", "other", lambda size: None).run(WANTED, "2")


def test_a_file_that_ends_early_is_no_backup(snapshot: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageFailure, match="should have"):
        back_up(snapshot, tmp_path / "b", "1", [Wanted(TAIL, 2_000, False)])


@pytest.mark.parametrize("name", [SEALED, TAIL])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete"])
def test_damage_is_found(snapshot: Path, tmp_path: Path, name: str, damage: str) -> None:
    outcome = back_up(snapshot, tmp_path / "b", "1")
    path = outcome.path / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    if damage != "delete":
        path.write_bytes(content if damage == "flip" else content[:-1])
    found = list(flaws_of(outcome.path, read_manifest(outcome.path), lambda size: None))
    assert [flawed for flawed, _ in found] == [path]


def test_nothing_is_restored_over_something(tmp_path: Path) -> None:
    ensure_empty(tmp_path / "new")
    (tmp_path / "file").touch()
    with pytest.raises(BadBackup, match="not empty"):
        ensure_empty(tmp_path)


FILES = st.dictionaries(
    st.text(min_size=1), st.builds(CopiedFile, *[st.integers(0, 2**63)] * 2, st.integers(0, 2**32))
)


@given(FILES, st.data())
def test_manifests(files: dict[str, CopiedFile], data: st.DataObject) -> None:
    manifest = Manifest("c", "now", files)
    content = encode_manifest(manifest)
    assert decode_manifest(content) == manifest
    at = data.draw(st.integers(0, len(content) - 1))
    damaged = bytearray(content)
    damaged[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(BadBackup):  # it is refused, or it was white space and the like
        assert decode_manifest(bytes(damaged)) == manifest


@given(st.binary())
def test_strange_manifests_are_refused(content: bytes) -> None:
    with pytest.raises(BadBackup):
        decode_manifest(content)

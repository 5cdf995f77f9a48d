"""Which file systems may be on another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.storage import filesystem
from faircopy.storage.filesystem import (
    file_system_number,
    network_file_system,
    network_kind,
)

PROC = 0x9FA0
EXT4, XFS, TMPFS, OVERLAY = 0xEF53, 0x58465342, 0x01021994, 0x794C7630


@pytest.mark.parametrize(
    ("number", "kind"),
    [(0x6969, "NFS"), (0x517B, "SMB"), (0xFF534D42, "CIFS"), (0xFE534D42, "SMB2"), (0x65735546, "FUSE")],
)
def test_those_of_networks_are_known(number: int, kind: str) -> None:
    assert network_kind(number) == kind
    assert network_kind(number - (1 << 32)) == kind, "where a long has 32 bits"


@pytest.mark.parametrize("number", [EXT4, XFS, TMPFS, OVERLAY, PROC, 0])
def test_others_are_local(number: int) -> None:
    assert network_kind(number) is None


def test_the_system_says_which_one_it_is() -> None:
    assert file_system_number(Path("/proc")) == PROC
    assert network_file_system(Path("/proc/self")) is None


def test_it_knows_that_of_any_directory(tmp_path: Path) -> None:
    assert file_system_number(tmp_path) not in (None, 0, PROC)
    assert file_system_number(tmp_path / "missing") is None


def mount(paths: dict[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only these paths be there, on file systems of these numbers."""
    monkeypatch.setattr(filesystem, "file_system_number", paths.get)


def test_a_path_that_is_not_there_lies_where_its_nearest_parent_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mount({Path("/"): EXT4, Path("/nfs"): 0x6969, Path("/nfs/own"): TMPFS}, monkeypatch)
    kinds = {path: network_file_system(Path(path)) for path in ("/nfs", "/nfs/not/there", "/nfs/own/x", "/y")}
    assert kinds == {"/nfs": "NFS", "/nfs/not/there": "NFS", "/nfs/own/x": None, "/y": None}


def test_a_relative_path_is_one_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mount({Path("/"): EXT4, tmp_path: 0x65735546}, monkeypatch)
    assert network_file_system(Path("not/there")) == "FUSE"


def test_where_the_system_does_not_say_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    mount({}, monkeypatch)
    assert network_file_system(Path("/nfs")) is None


def test_other_systems_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert file_system_number(Path("/proc")) is None

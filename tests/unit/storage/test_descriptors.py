"""Too many files are open, so some are closed: none before it is synced, and none is used afterwards."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from faircopy.storage import file as file_module
from faircopy.storage.descriptors import Descriptors, share_out
from faircopy.storage.failures import WriteFailure, write_failure
from faircopy.storage.file import File
from faircopy.storage.system import System, mount

FILES = 20


class Counting(System):
    """Counts what is open, and what is synced."""

    def __init__(self) -> None:
        self.opened: set[int] = set()
        self.synced: list[int] = []
        self.fails = False

    def open(self, path: Path, flags: int) -> int:
        descriptor = super().open(path, flags)
        self.opened.add(descriptor)
        return descriptor

    def close(self, descriptor: int) -> None:
        self.opened.discard(descriptor)
        super().close(descriptor)

    def sync(self, descriptor: int) -> None:
        if self.fails:
            raise OSError(errno.EIO, "the device has an error")
        self.synced.append(descriptor)
        super().sync(descriptor)


@pytest.fixture
def failures() -> list[BaseException]:
    return []


@pytest.fixture
def system(failures: list[BaseException], monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    descriptors = Descriptors()  # other tests' files may still be among those of this process
    monkeypatch.setattr(file_module, "DESCRIPTORS", descriptors)
    with mount(made := Counting()):
        descriptors.limit(8, lambda work: work(), failures.append)
        yield made
        descriptors.unlimit()


def make_files(directory: Path, count: int = FILES) -> list[File]:
    return [File(directory / str(number), create=True) for number in range(count)]


def test_files_are_closed_and_opened_again(tmp_path: Path, system: Counting) -> None:
    files = make_files(tmp_path)
    for turn in range(3):
        for number, file in enumerate(files):
            file.write([b"%d of %d" % (turn, number)], 0)
            assert len(system.opened) <= 9
    for number, file in enumerate(files):
        assert file.read(100, 0) == b"2 of %d" % number


def test_what_was_written_is_synced_before_it_is_closed(tmp_path: Path, system: Counting) -> None:
    files = make_files(tmp_path)
    system.synced.clear()
    for file in files:
        file.write([b"x"], 0)
    for file in files:
        file.sync()
    assert len(system.synced) >= FILES


def test_a_sync_that_fails_then_ends_the_broker(
    tmp_path: Path, system: Counting, failures: list[BaseException]
) -> None:
    files = make_files(tmp_path, 6)
    for file in files:
        file.write([b"x"], 0)
    system.fails = True
    with pytest.raises(WriteFailure):
        for number in range(FILES):
            files.append(File(tmp_path / f"more {number}", create=True))
    system.fails = False
    assert failures


def test_threads_that_write_while_files_are_closed(tmp_path: Path, system: Counting) -> None:
    files = make_files(tmp_path)

    def write(first: int) -> None:
        for turn in range(300):
            for number in range(first, FILES, 2):
                files[number].write([b"%04d %04d" % (number, turn)], 9 * (turn % 10))

    threads = [threading.Thread(target=write, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, file in enumerate(files):
        found = file.read(90, 0)
        assert [found[at : at + 4] for at in range(0, 90, 9)] == [b"%04d" % number] * 10


def test_a_file_that_is_let_go_does_not_count(tmp_path: Path, system: Counting) -> None:
    for number in range(100):
        File(tmp_path / str(number), create=True)
    assert not system.opened


@pytest.mark.parametrize("limit", [8, 64, 256, 1024, 4096, 1 << 20])
@pytest.mark.parametrize("connections", [1, 100, 4096])
def test_shares(limit: int, connections: int) -> None:
    shares = share_out(limit, connections)
    assert 1 <= shares.connections <= connections
    assert shares.files >= 2
    if limit >= 256:
        assert 2 * shares.connections + shares.files <= limit - 64


def test_too_many_open_files_is_no_failed_disk() -> None:
    for code in (errno.EMFILE, errno.ENFILE):
        assert not isinstance(write_failure("opening", OSError(code, "too many")), WriteFailure)

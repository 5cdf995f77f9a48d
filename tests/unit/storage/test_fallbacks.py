"""What Linux alone has, and what is done without it: both by one contract."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from faircopy.storage import process
from faircopy.storage.boot import boot_id
from faircopy.storage.failures import NoSpace
from faircopy.storage.fallbacks import SEND_BYTES_MAX
from faircopy.storage.file import File, NotCached
from faircopy.storage.system import Buffer, System, read_proc, sync_all, uptime_ns

OF_LINUX = ("posix_fallocate", "fdatasync", "RWF_NOWAIT", "preadv", "pwritev", "sendfile")
F_FULLFSYNC = 51


@pytest.fixture(params=["all", "none"])
def there(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the calls of Linux are there."""
    if request.param == "none":
        for name in OF_LINUX:
            monkeypatch.delattr(os, name)
    return bool(request.param == "all")


@pytest.fixture
def file(tmp_path: Path) -> File:
    """A new file."""
    return File(tmp_path / "file", create=True)


def test_space_is_reserved_and_what_is_there_stays(there: bool, file: File) -> None:
    file.write([b"begin"], 0)
    file.preallocate(3 << 20)
    assert file.size() == 3 << 20
    assert file.read(8, 0) == b"begin" + bytes(3)
    assert file.path.stat().st_blocks * 512 >= 3 << 20
    file.preallocate(1000)
    assert file.size() == 3 << 20


def test_buffers_are_written_one_after_the_other(there: bool, file: File) -> None:
    buffers: list[Buffer] = [b"one", bytearray(b"two"), memoryview(b"three"), b""]
    assert file.write(buffers, 5) == 11
    file.sync()
    assert file.read(100, 0) == bytes(5) + b"onetwothree"
    assert file.write([b"n"] * 2000, 0) == 2000
    assert file.read(3000, 0) == b"n" * 2000


def test_what_is_cached_is_read_or_read_on_a_thread(there: bool, file: File) -> None:
    file.write([b"cached"], 0)
    if there:
        assert file.read_cached(6, 0) == b"cached"
    else:
        with pytest.raises(NotCached):
            file.read_cached(6, 0)


def test_a_file_is_sent(there: bool, file: File) -> None:
    content = os.urandom(3 * SEND_BYTES_MAX)
    file.write([content], 0)
    sender, receiver = socket.socketpair()
    with sender, receiver:
        sender.setblocking(False)
        sent, received = 0, b""
        while len(received) < len(content):
            try:
                sent += file.send(sender.fileno(), sent, len(content) - sent)
            except BlockingIOError:
                received += receiver.recv(1 << 20)
            if sent == len(content):
                received += receiver.recv(1 << 20)
        assert received == content
        receiver.close()
        with pytest.raises(ConnectionError):
            file.send(sender.fileno(), 0, 10)


class FullDisk:
    """`os.pwrite` on a disk that takes so many bytes."""

    def __init__(self, takes: int) -> None:
        self._left = takes
        self._pwrite = os.pwrite

    def __call__(self, descriptor: int, data: bytes, position: int) -> int:
        taken = min(self._left, len(data))
        if not taken:
            raise OSError(errno.ENOSPC, "full")
        self._left -= taken
        return self._pwrite(descriptor, data[:taken], position)


def test_a_file_that_can_not_grow_stays_as_it_was(monkeypatch: pytest.MonkeyPatch, file: File) -> None:
    file.write([b"begin"], 0)
    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr(os, "pwrite", FullDisk(1_500_000))
    with pytest.raises(NoSpace):
        file.preallocate(3 << 20)
    assert file.read(100, 0) == b"begin"


class Mac:
    """What a Mac has: F_FULLFSYNC, which may fail. Counts the flushes of the drive, and fsyncs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: int = 0) -> None:
        self.flushes = self.fsyncs = 0
        self._error = error
        monkeypatch.delattr(os, "fdatasync")
        monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
        monkeypatch.setattr(fcntl, "fcntl", self._fcntl)
        monkeypatch.setattr(os, "fsync", self._fsync)

    def _fcntl(self, descriptor: int, command: int) -> None:
        assert command == F_FULLFSYNC
        self.flushes += 1
        if self._error:
            raise OSError(self._error, os.strerror(self._error))

    def _fsync(self, descriptor: int) -> None:
        self.fsyncs += 1


def test_a_mac_flushes_its_drive(monkeypatch: pytest.MonkeyPatch, file: File, tmp_path: Path) -> None:
    mac = Mac(monkeypatch)
    file.sync()
    System().sync_directory(tmp_path)
    assert (mac.flushes, mac.fsyncs) == (2, 0)


def test_a_volume_that_can_not_do_that_is_fsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    mac = Mac(monkeypatch, errno.ENOTSUP)
    sync_all(1)
    assert (mac.flushes, mac.fsyncs) == (1, 1)


def test_a_drive_that_fails_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """I10."""
    mac = Mac(monkeypatch, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        sync_all(1)
    assert mac.fsyncs == 0


def test_a_directory_is_synced_without_either(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "fdatasync")
    file = File(tmp_path / "file", create=True)
    file.sync()
    System().sync_directory(tmp_path)


def test_the_uptime_is_that_of_the_other_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    assert uptime_ns() >= time.clock_gettime_ns(time.CLOCK_MONOTONIC) - 10**9
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert before <= uptime_ns() <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def refuse(path: Path) -> str:
    """`Path.read_text` where nothing is."""
    raise FileNotFoundError(errno.ENOENT, "no such file", str(path))


def test_without_proc_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert boot_id() and process.memory_bytes()
    assert read_proc("no/such/name") is None
    monkeypatch.setattr(Path, "read_text", refuse)
    assert (boot_id(), process.memory_bytes()) == ("", None)


def test_the_peak_of_memory_is_in_other_units_on_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    peak = process.memory_peak_bytes()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert process.memory_peak_bytes() * 1000 < peak


@pytest.mark.parametrize(
    ("limits", "most", "tried", "soft"),
    [
        ((1024, 4096), 4096, [4096], 4096),
        ((4096, 4096), 4096, [], 4096),
        ((256, resource.RLIM_INFINITY), 10_240, [resource.RLIM_INFINITY, 10_240], 10_240),
        ((20_000, resource.RLIM_INFINITY), 10_240, [resource.RLIM_INFINITY], 20_000),
    ],
)
def test_more_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], most: int, tried: Sequence[int], soft: int
) -> None:
    """Also on a Mac, which takes back what it says of its limit."""
    asked: list[int] = []
    found = limits

    def setrlimit(_resource: int, wanted: tuple[int, int]) -> None:
        nonlocal found
        asked.append(wanted[0])
        if wanted[0] < 0 or wanted[0] > most:
            raise ValueError("current limit exceeds maximum limit")
        found = wanted

    monkeypatch.setattr(resource, "getrlimit", lambda _resource: found)
    monkeypatch.setattr(resource, "setrlimit", setrlimit)
    assert process.allow_many_files() == soft
    assert asked == tried

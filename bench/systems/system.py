"""The interface of a system under test, on loopback: one broker, or several that keep the same messages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

import psutil

from bench.results import System


class Served(Protocol):
    """A system that the benchmark starts and ends. It listens on the same ports after each start."""

    @property
    def about(self) -> System:
        """Its description in the results."""

    @property
    def address(self) -> str:
        """HOST:PORT for clients; of several brokers, all of them with commas between."""

    @property
    def processes(self) -> dict[str, int]:
        """The ids of its processes, by what each is: broker, leader, follower 2."""

    def start(self) -> None:
        """Start it on its directory, and return when it serves clients. Raises RuntimeError."""

    def stop(self) -> None:
        """Stop it in an orderly way."""

    def kill(self) -> None:
        """End it with kill -9."""


class Peer(Served, Protocol):
    """A system that is one broker."""

    @property
    def pid(self) -> int:
        """The id of its process."""

    @property
    def data_directory(self) -> Path:
        """The directory of all its data."""

    def log_directories(self, topic: str) -> list[Path]:
        """The directories of a topic's visible log, below `data_directory`."""

    def topic_directories(self, topic: str) -> list[Path]:
        """The directories of all data of a topic: its log, and its journals if it has some."""


def family(pid: int) -> list[psutil.Process]:
    """A process and its children."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def memory_bytes(pid: int) -> int:
    """Resident memory of a process and its children."""
    return sum(int(process.memory_info().rss) for process in family(pid))


def peak_memory_bytes(pid: int) -> int:
    """The most resident memory that a process and its children each ever had."""
    return sum(high_water_bytes(Path(f"/proc/{process.pid}/status").read_text()) for process in family(pid))


def high_water_bytes(status: str) -> int:
    """VmHWM from Linux's status of a process, converted from KiB to bytes."""
    found = re.search(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) << 10 if found else 0


def cpu_seconds(pid: int) -> float:
    """CPU time that a process and its children have used."""
    return sum(sum(process.cpu_times()[:2]) for process in family(pid))


def written_bytes(pid: int) -> int:
    """Bytes that a process and its children gave to the file system."""
    return sum(int(process.io_counters().write_bytes) for process in family(pid))


def size_bytes(directory: Path) -> int:
    """The bytes that the files below a directory take on disk."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())

"""The floors: the speed of the bare machine, measured in the same run as everything else."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import socket
import statistics
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from bench.results import Floor
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.file import File

SYNCED_FILES = (1, 5, 17, 65)
ENTRY_BYTES = 300
SYNC_ROUNDS = 200
ROUND_TRIPS = 3_000
MESSAGE_BYTES = 100
COPIED_BYTES = 64 << 20
WRITTEN_BYTES = 300_000_000  # as much as a round of throughput
WRITE_ROUNDS = 5
PIECE_BYTES = 1 << 20


def measure(directory: Path) -> list[Floor]:
    """All floors; `directory` is on the disk that brokers use."""
    return [
        *measure_times(directory),
        Floor("memory copy", memory_copy(), "bytes/s", "64 MiB from one buffer to another"),
        Floor("write twice", write_twice(directory), "bytes/s", "the same bytes to two files with os.write"),
    ]


def measure_times(directory: Path) -> list[Floor]:
    """The floors that are times. They change from minute to minute, so they are also taken between rounds."""
    return [
        *(sync_floor(directory, files) for files in SYNCED_FILES),
        Floor("loopback round trip", loopback_round_trip_ms(), "ms", "100 bytes to another process and back"),
    ]


def medians(samples: list[Floor]) -> list[Floor]:
    """One floor of each name, with the median of its values."""
    values: dict[str, list[float]] = {}
    for floor in samples:
        values.setdefault(floor.name, []).append(floor.value)
    newest = {floor.name: floor for floor in samples}
    return [replace(floor, value=statistics.median(values[name])) for name, floor in newest.items()]


def sync_floor(directory: Path, files: int) -> Floor:
    """The time for fdatasync of `files` files at once, in ms."""
    name = "fdatasync" if files == 1 else f"parallel fdatasync of {files} files"
    about = f"{ENTRY_BYTES} bytes written to each of {files} preallocated file(s) and fdatasynced, median"
    return Floor(name, parallel_fdatasync_ms(directory, files), "ms", about)


def parallel_fdatasync_ms(directory: Path, files: int) -> float:
    """The median time of one write and fdatasync on each of `files` preallocated files, side by side."""

    async def measure_all() -> float:
        disk = DiskPool(asyncio.get_running_loop())
        paths = [directory / f"sync-{number}" for number in range(files)]
        opened = [File(path, create=True) for path in paths]
        for file in opened:
            file.preallocate(SYNC_ROUNDS * ENTRY_BYTES)
            file.sync()
        taken = []
        for number in range(SYNC_ROUNDS):
            began = time.perf_counter()
            await asyncio.gather(*(disk.run(write_and_sync, file, number * ENTRY_BYTES) for file in opened))
            taken.append((time.perf_counter() - began) * 1000)
        disk.close()
        for path in paths:
            path.unlink()
        return statistics.median(taken)

    return asyncio.run(measure_all())


def write_and_sync(file: File, position: int) -> None:
    """Write one entry at `position`, and make it durable."""
    file.write([b"x" * ENTRY_BYTES], position)
    file.sync()


def loopback_round_trip_ms() -> float:
    """The median, over TCP without Nagle's delay."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=echo, args=(theirs,), daemon=True)
    process.start()
    with socket.create_connection(("127.0.0.1", ours.recv())) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        taken = []
        for _ in range(ROUND_TRIPS):
            began = time.perf_counter()
            connection.sendall(bytes(MESSAGE_BYTES))
            connection.recv(MESSAGE_BYTES, socket.MSG_WAITALL)
            taken.append((time.perf_counter() - began) * 1000)
    process.join()
    return statistics.median(taken)


def echo(parent: Connection) -> None:
    """Send all bytes back, until the other side closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        parent.send(server.getsockname()[1])
        connection, _ = server.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            while data := connection.recv(MESSAGE_BYTES):
                connection.sendall(data)


def memory_copy() -> float:
    """Bytes a second, the best of several tries."""
    source, target = os.urandom(COPIED_BYTES), bytearray(COPIED_BYTES)
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        target[:] = source
        best = min(best, time.perf_counter() - began)
    return COPIED_BYTES / best


def write_twice(directory: Path) -> float:
    """Bytes a second of writing each byte to two files, into the page cache; the median of some rounds.

    Each begins with nothing that waits for the disk: above a limit of the kernel's, writing waits too.
    """
    piece, taken = os.urandom(PIECE_BYTES), []
    paths = directory / "first", directory / "second"
    for _ in range(WRITE_ROUNDS):
        os.sync()
        with paths[0].open("wb", buffering=0) as first, paths[1].open("wb", buffering=0) as second:
            began = time.perf_counter()
            for _ in range(WRITTEN_BYTES // PIECE_BYTES):
                first.write(piece)
                second.write(piece)
            taken.append(WRITTEN_BYTES / (time.perf_counter() - began))
        for path in paths:
            path.unlink()
    return statistics.median(taken)

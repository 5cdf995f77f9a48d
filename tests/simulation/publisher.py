"""The publisher of plain tables on the simulated disk: the real one, without its process."""

from __future__ import annotations

import asyncio
import io
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from faircopy.publish.client import PublishError
from faircopy.publish.files import Files, FsyncError, NewFile
from faircopy.publish.layout import NO_COLUMNS, Layout
from faircopy.publish.offsets import Held, held_from_json
from faircopy.publish.requests import (
    Drop,
    Open,
    Publish,
    Published,
    Request,
    Tidied,
    Tidy,
    format_request,
    parse_reply,
)
from faircopy.publish.server import PublishServer
from tests.simulation.coverage import Coverage
from tests.simulation.disk_nodes import DirectoryNode, FileNode
from tests.simulation.lying_disk import LyingDisk

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

WORK_SECONDS = 0.05


class PublishFiles(Files):
    """The publisher's door to a disk that lies."""

    def __init__(self, disk: LyingDisk) -> None:
        self._disk = disk

    def _content(self, path: Path) -> bytes:
        node = self._disk.find(path)
        if not isinstance(node, FileNode):
            raise FileNotFoundError(2, "no such file", str(path))
        return node.read(0, node.size)

    def list_directory(self, directory: Path) -> dict[str, int]:
        node = self._disk.find(directory)
        if not isinstance(node, DirectoryNode):
            return {}
        return {name: child.size if isinstance(child, FileNode) else 0 for name, child in node.names.items()}

    def is_directory(self, path: Path) -> bool:
        return isinstance(self._disk.find(path), DirectoryNode)

    def read(self, path: Path, position: int = 0, size: int = -1) -> bytes:
        content = self._content(path)
        return content[position:] if size < 0 else content[position : position + size]

    def open_to_read(self, path: Path) -> BinaryIO:
        return io.BytesIO(self._content(path))

    def create(self, path: Path) -> NewFile:
        if self._disk.find(path) is None:
            descriptor = self._disk.open(path, os.O_CREAT)
        else:
            descriptor = self._disk.open(path, 0)
            self._disk.truncate(descriptor, 0)
        return WrittenFile(self._disk, descriptor)

    def rename(self, old: Path, new: Path) -> None:
        self._disk.rename(old, new)

    def delete(self, path: Path) -> None:
        if self._disk.find(path) is not None:
            self._disk.delete(path)

    def make_directory(self, path: Path) -> None:
        self._disk.make_directory(path)

    def remove_directory(self, path: Path) -> None:
        self._disk.remove_directory(path)

    def sync_directory(self, path: Path) -> None:
        try:
            self._disk.sync_directory(path)
        except OSError as error:
            raise FsyncError(f"fsync of {path}: {error.strerror}") from error

    def lock(self, path: Path) -> Any:
        return Unlocked()


class Unlocked:
    """There is one publisher only."""

    def close(self) -> None:
        pass


class WrittenFile(NewFile):
    """A file that is being written, front to back."""

    def __init__(self, disk: LyingDisk, descriptor: int) -> None:
        self._disk = disk
        self._descriptor = descriptor
        self.size = 0

    def write(self, data: ReadableBuffer) -> int:
        written = self._disk.write(self._descriptor, [bytes(data)], self.size)
        self.size += written
        return written

    def sync(self) -> None:
        try:
            self._disk.sync(self._descriptor)
        except OSError as error:
            raise FsyncError(f"fsync: {error.strerror}") from error

    def close(self) -> None:
        self._disk.close(self._descriptor)
        io.RawIOBase.close(self)


class SimulatedPublisher:
    """Replaces `PublisherProcess`: one request after another, each done at once, after some time."""

    def __init__(
        self, disk: LyingDisk, clock_ms: Callable[[], int], chosen: random.Random, coverage: Coverage
    ) -> None:
        self._coverage = coverage
        self._live_files = 0
        self._disk = disk
        self._clock_ms = clock_ms
        self._chosen = chosen
        self._number = 0
        self._turn = asyncio.Lock()
        self._server = self._new_server()

    def _new_server(self) -> PublishServer:
        return PublishServer(PublishFiles(self._disk))

    async def open_table(self, table: str, directory: str, layout: Layout = NO_COLUMNS) -> Held:
        return held_from_json(await self._ask(Open(table, directory, layout)))

    async def publish(self, publication: Publish) -> Published:
        published = Published(**await self._ask(publication))
        self._coverage.hit("plain table: published")
        if published.live_files < self._live_files:
            self._coverage.hit("plain table: merged")
        self._live_files = published.live_files
        return published

    async def tidy(self, request: Tidy) -> Tidied:
        tidied = Tidied(**await self._ask(request))
        if tidied.dropped_files:
            self._coverage.hit("plain table: dropped what its topic does not keep")
        return tidied

    async def drop_table(self, table: str, directory: str) -> None:
        await self._ask(Drop(table, directory))

    async def kill(self) -> None:
        """It ends with the life that it belongs to."""

    async def stop(self) -> None:
        async with self._turn:
            self._server.close()

    async def _ask(self, request: Request) -> dict[str, Any]:
        async with self._turn:
            await asyncio.sleep(self._chosen.random() * WORK_SECONDS)
            self._number += 1
            reply, fatal = self._server.answer(format_request(self._number, self._clock_ms(), request))
            if fatal is not None:  # the process ends, and the next request starts another
                self._server = self._new_server()
            await asyncio.sleep(self._chosen.random() * WORK_SECONDS)
        _, verb, body = parse_reply(reply)
        if verb == "failed":
            raise PublishError(str(body["message"]), retry=bool(body["retry"]))
        return body

"""Requests in, replies out: one line of JSON each, one after the other.

A failure affects one table: it is closed, and the next request for it opens it again (with a recovery from
disk). Only after a failed fsync must the process end, because the data that it reads back may never have
reached the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from faircopy.errors import FaircopyError
from faircopy.publish import names
from faircopy.publish.drop import drop_table
from faircopy.publish.files import Files, FsyncError, LockedError
from faircopy.publish.requests import (
    Cut,
    Drop,
    Open,
    Publish,
    Published,
    Request,
    Tidied,
    Tidy,
    format_reply,
    parse_request,
    request_id,
)
from faircopy.publish.schema import Selection
from faircopy.publish.spark_log import is_compact
from faircopy.publish.table import Table

log = logging.getLogger(__name__)

MANY_ROWS = (
    20_000  # after this many, and after merges, memory is given back to the system; it costs a millisecond
)

Reply = tuple[str, dict[str, Any]]  # verb and body


class PublishServer:
    """Answers requests on tables, which it opens on demand and keeps open."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._now_ms = 0
        self._tables: dict[str, Table] = {}

    def serve(self, requests: BinaryIO, replies: BinaryIO) -> None:
        """Answer each line of `requests` until they end. Raises FsyncError after the reply that says so."""
        for line in requests:
            reply, fatal = self.answer(line)
            replies.write(reply)
            replies.flush()
            if fatal:
                raise fatal

    def close(self) -> None:
        for directory in list(self._tables):
            self._close(directory)

    def answer(self, line: bytes) -> tuple[bytes, FsyncError | None]:
        """The reply to one line, and the error, if any, after which there must be no more replies."""
        try:
            number, self._now_ms, request = parse_request(line)
        except FaircopyError as error:
            return format_reply(request_id(line), *_failed(error, retry=False)), None
        try:
            return format_reply(number, *self._answer(request)), None
        except Exception as error:
            self._close(request.directory)
            self._close(dead_letters_of(request.directory))
            reply = format_reply(number, *_failure_of(request, error))
            return reply, error if isinstance(error, FsyncError) else None

    def _answer(self, request: Request) -> Reply:
        match request:
            case Open():
                self._close(request.directory)
                table = self._table(request.directory)
                table.adopt(request.layout)
                return "opened", table.held.as_json()
            case Publish():
                return "published", self._publish(request)._asdict()
            case Tidy():
                return "tidied", self._tidy(request)._asdict()
            case Drop():
                self._close(request.directory)
                self._close(dead_letters_of(request.directory))
                drop_table(self._files, Path(request.directory))
                return "dropped", {}

    def _publish(self, request: Publish) -> Published:
        def publish_misfits(cuts: Sequence[Cut]) -> None:
            """Both tables are functions of the log, so each goes on where it is itself after a crash. The
            misfits come first: what the other table holds has its misfits published.
            """
            table = self._table(dead_letters_of(request.directory))
            table.publish(cuts, request.layout, Selection.MISFITS)

        selection = Selection.FITTING if request.layout.has_dead_letters else Selection.ALL
        published = self._table(request.directory).publish(
            request.partitions, request.layout, selection, publish_misfits
        )
        if published.rows > MANY_ROWS or is_compact(published.sequence):
            pa.default_memory_pool().release_unused()
        return published

    def _tidy(self, request: Tidy) -> Tidied:
        """Tidy the table, and that of its dead letters, which keeps as much."""
        tidied = self._table(request.directory).tidy(request.upkeep)
        beside = dead_letters_of(request.directory)
        if not self._files.is_directory(Path(beside)):
            return tidied
        return Tidied(*map(sum, zip(tidied, self._table(beside).tidy(request.upkeep), strict=True)))

    def _table(self, directory: str) -> Table:
        if directory not in self._tables:
            self._tables[directory] = Table(self._files, Path(directory), lambda: self._now_ms)
        return self._tables[directory]

    def _close(self, directory: str) -> None:
        if directory in self._tables:
            self._tables.pop(directory).close()


def dead_letters_of(directory: str) -> str:
    """The directory of the table with what does not fit into that of `directory`."""
    table = Path(directory)
    return str(table.with_name(names.dead_letters(table.name)))


def _failure_of(request: Request, error: Exception) -> Reply:
    if isinstance(error, OSError):
        return _failed(f"plain table {request.table}: {error}", retry=True)
    if isinstance(error, FaircopyError):
        return _failed(
            f"plain table {request.table}: {error}", retry=isinstance(error, FsyncError | LockedError)
        )
    log.exception("plain table %s: a bug in faircopy", request.table)
    return _failed(f"plain table {request.table}: {error!r}, a bug in faircopy", retry=False)


def _failed(why: object, *, retry: bool) -> Reply:
    return "failed", {"message": str(why), "retry": retry}

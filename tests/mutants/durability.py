"""Mutants that take for durable what is not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from faircopy.copier.log_copier import LogCopier
from faircopy.journal import group_commit, opening, segment
from faircopy.journal.journal import Journal
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.file import File
from tests.mutants.registry import mutant, replaced


@mutant
def skip_the_journals_fsync() -> Iterator[Any]:
    """I2: entries count as durable when they are written."""
    with replaced(group_commit, "sync_files", lambda files: None):
        yield


@mutant
def release_before_durable() -> Iterator[Any]:
    """I2: effects are released at once."""
    with replaced(Journal, "when_durable", lambda self, callback: self._loop.call_soon(callback)):
        yield


@mutant
def recover_what_may_be_lost() -> Iterator[Any]:
    """I2: a start copies what it finds in the page cache before that is fsynced."""
    with replaced(opening, "sync_what_was_found", lambda segments: None):
        yield


@mutant
def forget_the_directory_fsync() -> Iterator[Any]:
    """A new segment's name is not made durable."""
    with replaced(segment, "sync_directory", lambda path: None):
        yield


@mutant
def write_the_segment_header_without_fsync() -> Iterator[Any]:
    """A segment's name appears before its header is durable."""
    real = File.sync

    def sync(file: File) -> None:
        if file.path.suffix != ".tmp":
            real(file)

    with replaced(File, "sync", sync):
        yield


@mutant
def checkpoint_without_syncing_the_log() -> Iterator[Any]:
    """I6: a checkpoint relies on a data log that is not fsynced."""

    async def sync(self: LogCopier) -> None:
        self.log.take_unsynced()

    with replaced(LogCopier, "sync", sync):
        yield


@mutant
def go_on_after_a_failed_fsync() -> Iterator[Any]:
    """I10: a failed fsync is tried again, and the second one succeeds."""

    def sync_files(files: list[File]) -> None:
        for file in files:
            with contextlib.suppress(Exception):
                file.sync()

    with replaced(group_commit, "sync_files", sync_files):
        yield


@mutant
def take_names_that_are_found_for_durable() -> Iterator[Any]:
    """A start does not fsync directories: what a process that was killed has made there may have no name."""
    with replaced(DataDirectory, "sync_names", lambda self: None):
        yield

"""The upkeep of a table: merging small files for batch readers.

Publishing never fails because of it: files that can't be merged stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from faircopy.publish import compaction, names
from faircopy.publish.checksum import is_sound
from faircopy.publish.data_file import write_data_file
from faircopy.publish.files import Files
from faircopy.publish.merge import MergeError, merge
from faircopy.publish.schema import FooterError
from faircopy.publish.spark_log import NEVER_NEW_MS, DataFile
from faircopy.publish.table_columns import is_by_day

log = logging.getLogger(__name__)

ENTRIES_WITHOUT_MERGES = 1024  # after a merge has failed: it may fail again, and costs time


class Merger:
    """Merges small files of the table in `directory`."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._directory = directory
        self._paused_until_entry = 0

    def merged(self, live: Sequence[DataFile], entry: int, schema: pa.Schema) -> list[DataFile] | None:
        """`live`, with all due merges done that succeed; None if there is none. `entry` is the one that will
        list the merged files; `schema` has their columns.

        Raises only FsyncError.
        """
        due = compaction.plan(live, by_day=is_by_day(schema)) if entry >= self._paused_until_entry else []
        result: list[DataFile] = []
        done = 0
        try:
            for number, (start, stop) in enumerate(due):
                merged = self._merge(names.merged(entry, number), live[start:stop], schema)
                result += [*live[done:start], merged, *(file._replace(size=0) for file in live[start:stop])]
                done = stop
        except (OSError, pa.ArrowException, FooterError, MergeError) as error:
            self._paused_until_entry = entry + ENTRIES_WITHOUT_MERGES
            log.warning("merging files in %s: %s; they stay as they are for now", self._directory, error)
        return [*result, *live[done:]] if done else None

    def _merge(self, name: str, inputs: Sequence[DataFile], schema: pa.Schema) -> DataFile:
        for file in inputs:
            if not is_sound(self._files, self._directory, file):
                raise MergeError(
                    f"{self._directory / file.name} is damaged: it does not match the checksum in its name"
                )
        paths = [self._directory / file.name for file in inputs]
        path = self._directory / name
        return write_data_file(
            self._files, path, NEVER_NEW_MS, schema, lambda to: merge(self._files, paths, to)
        ).file

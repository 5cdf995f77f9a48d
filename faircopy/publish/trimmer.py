"""Carries out what `trimming` decides, down to single publications.

If only a part of a merged file may go, it is given up: the small files that it covers are listed with their
sizes again, without those that may go, and are merged anew some time later. Streams notice nothing. It waits
for the oldest of them to go, so that a merged file that stays costs a look at one small file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from faircopy.publish import names
from faircopy.publish.checksum import is_sound
from faircopy.publish.file_content import content_in
from faircopy.publish.files import Files
from faircopy.publish.offsets import NextOffsets
from faircopy.publish.schema import FooterError
from faircopy.publish.spark_log import DataFile
from faircopy.publish.trimming import Keep, Unit, Upkeep, is_past_keeping, units

log = logging.getLogger(__name__)


class Trimmer:
    """Decides what is left of the table in `directory`. `ends_of` has the ends of what batch reads take."""

    def __init__(self, files: Files, directory: Path, ends_of: Callable[[str], NextOffsets]) -> None:
        self._files = files
        self._directory = directory
        self._ends_of = ends_of

    def left(self, live: Sequence[DataFile], upkeep: Upkeep, now_ms: int) -> list[DataFile]:
        """The live files without those that may go. Raises DeltaFormatError."""
        keeps = {keep.topic: keep for keep in upkeep.keeps}
        left = [file for file in live if names.is_schema(file.name)]
        found = units(live)
        for unit in found:
            ends = self._ends_of(unit.name)
            # The newest file says what the table holds. It stays if it has no rows; else it is replaced.
            if (unit is found[-1] and not ends) or not is_past_keeping(ends, unit, keeps, now_ms):
                left += self._left_of(unit, keeps, now_ms)
        return left

    def _left_of(self, unit: Unit, keeps: Mapping[str, Keep], now_ms: int) -> Sequence[DataFile]:
        """What is left of a unit of which a part may go, oldest files first."""
        covered = unit.files[1:]
        if not covered:
            return unit.files
        try:
            if not self._is_past(covered[0], keeps, now_ms):
                return unit.files
            return [self._listed(file) for file in covered if not self._is_past(file, keeps, now_ms)]
        except (OSError, pa.ArrowException, FooterError) as error:
            log.warning("dropping rows of %s: %s; it stays as it is", self._directory / unit.name, error)
            return unit.files

    def _is_past(self, file: DataFile, keeps: Mapping[str, Keep], now_ms: int) -> bool:
        # A damaged footer must not be read: it can make pyarrow end the process.
        if not is_sound(self._files, self._directory, file):
            raise FooterError(f"{file.name} does not match the checksum in its name")
        ends = content_in(self._files, self._directory / file.name).ends
        return is_past_keeping(ends, Unit((file,), file.modified_ms), keeps, now_ms)

    def _listed(self, file: DataFile) -> DataFile:
        with self._files.open_to_read(self._directory / file.name) as opened:
            return file._replace(size=opened.seek(0, 2))

"""What the files of a log hold after its end, following a crash.

The fold writes the log again from the last checkpoint on. It may divide it into other segments than before
the crash, since age also ends a segment. Files of the old division must not pass for parts of the new one.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from faircopy.datalog.index import Place
from faircopy.datalog.segment import LogSegment, file_name, holds_batch
from faircopy.storage.paths import delete_file, sync_directory


class Leftovers(NamedTuple):
    """Collected once the fold has written everything it has. `segments` are the log's; `dropped` are files
    that belong to no segment.

    Any thread may inspect and drop them.
    """

    directory: Path
    end_offset: int
    last: LogSegment | None
    segments: list[LogSegment]
    dropped: list[Path]

    def find_forgotten(self, leader_epochs: range) -> Place | None:
        """The log's end, if its files continue there with a sound batch of one of these epochs: the fold did
        not write that batch again. None otherwise. Blocks.
        """
        last = self.last
        if last is not None and holds_batch(last.path, last.size, self.end_offset, leader_epochs):
            return Place(self.end_offset, last.base_offset, last.size)
        following = self.directory / file_name(self.end_offset)
        is_another = last is None or last.path != following
        if is_another and holds_batch(following, 0, self.end_offset, leader_epochs):
            return Place(self.end_offset, self.end_offset, 0)
        return None

    def drop(self) -> None:
        """Drop what follows the log's end, and files of an earlier division. Blocks."""
        for path in self.dropped:
            delete_file(path)
        for segment in self.segments:
            segment.cut()
        if self.dropped:
            # With many partitions, startup is mostly fsyncs, so none is made needlessly.
            sync_directory(self.directory)

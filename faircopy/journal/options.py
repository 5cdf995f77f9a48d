"""The options that all journals of a broker share: when an entry is durable, and how large a segment is."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from faircopy.journal.draft_space import DraftSpace
from faircopy.journal.errors import DamagedJournal
from faircopy.journal.recent import RecentDrafts
from faircopy.storage.space_watch import SpaceWatch


class Durability(Enum):
    """What makes an entry durable: an fdatasync, or being in the page cache, as with Kafka's defaults."""

    FSYNC = "fsync"
    OS = "os"


NOTHING_RECENT = RecentDrafts(0)


def ignore(_error: Exception) -> None:
    """Leave it to the caller, to whom the error is raised."""


class JournalOptions(NamedTuple):
    """`new_salt` gives a random u64 for a new segment; `on_failure` must end the process (I10).
    `on_bug` is called with what a fold raised, and must end the process before it returns. If `passed_over`
    is a list, entries that do not fold when they are recovered are noted there, instead of being damage.

    `on_moved` is called with the identity of a journal when its written or synced position has moved.
    `is_replicated`: nothing is kept or durable before other replicas have it (`Journal.note_replicated`).

    `is_unclean`: an fsync has failed since the machine started, so bytes that can be read may not be on disk.
    `lost_power`: the machine may have lost power since the last run; if not, all written bytes are there.
    `space` is told when the disk is full. `draft_space` bounds what drafts take.
    """

    durability: Durability
    segment_bytes: int
    new_salt: Callable[[], int]
    on_failure: Callable[[BaseException], None]
    recent: RecentDrafts = NOTHING_RECENT
    is_unclean: bool = False
    space: SpaceWatch = SpaceWatch()
    lost_power: bool = True
    on_bug: Callable[[Exception], None] = ignore
    passed_over: list[DamagedJournal] | None = None
    draft_space: DraftSpace = DraftSpace()
    on_moved: Callable[[bytes], None] | None = None
    is_replicated: bool = False

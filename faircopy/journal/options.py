"""What all journals of a broker have in common: when an entry is durable, and how large a segment is."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from faircopy.journal.recent import RecentDrafts
from faircopy.storage.space_watch import SpaceWatch


class Durability(Enum):
    """What makes an entry durable: an fdatasync, or standing in the page cache as Kafka's default has it."""

    FSYNC = "fsync"
    OS = "os"


NOTHING_RECENT = RecentDrafts(0)


class JournalOptions(NamedTuple):
    """`new_salt` gives a random u64 for a new segment; `on_failure` must end the process (I10).

    `is_disk_in_doubt`: an fsync has failed since the machine started, so what reads well may not be on disk.
    `lost_power`: since the last run, the machine may have; else all that was written is there.
    `space` is told of a full disk.
    """

    durability: Durability
    segment_bytes: int
    new_salt: Callable[[], int]
    on_failure: Callable[[BaseException], None]
    recent: RecentDrafts = NOTHING_RECENT
    is_disk_in_doubt: bool = False
    space: SpaceWatch = SpaceWatch()
    lost_power: bool = True

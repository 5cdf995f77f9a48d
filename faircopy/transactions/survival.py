"""What of a broker's last life is still there: it decides what becomes of open transactions."""

from __future__ import annotations

from enum import Enum, auto


class Survival(Enum):
    """What a start finds."""

    EVERYTHING = auto()  # the last life ended in order
    WRITTEN = auto()  # the process was killed: all that it had written to files
    SYNCED = auto()  # power was lost, a disk failed, or the files were moved: only what was fsynced
    UNKNOWN = auto()  # the same, but nothing was fsynced before its ack; an older copy; or damage

    @property
    def is_loss(self) -> bool:
        """Whether something that was acked in an open transaction may be lost."""
        return self in (Survival.SYNCED, Survival.UNKNOWN)

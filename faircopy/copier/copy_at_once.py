"""The copy during startup: each effect is carried out when its entry is read, while nobody is served."""

from __future__ import annotations

from typing import NamedTuple

from faircopy.copier.copy import ReadDrafts, Step, Steps, WriteBatches, following, write_placed
from faircopy.datalog.log import DataLog, PlacedBatch
from faircopy.journal.recent import Draft
from faircopy.storage.failures import Shortage
from faircopy.storage.space_watch import SpaceWatch


class Rest(NamedTuple):
    """What a full disk has left of a copy. `step` comes next."""

    steps: Steps
    step: Step


def copy_at_once(steps: Steps, log: DataLog, space: SpaceWatch) -> Rest | None:
    """Carry out all steps of a copy, or as many as the disk has room for. Blocks."""
    drafts: list[Draft] | None = None
    while (step := following(steps, drafts)) is not None:
        if isinstance(step, ReadDrafts):
            drafts = step.work()
        elif has_written(step.placed, space):
            log.show(step.placed)
        else:
            return Rest(steps, held(step))
    return None


def has_written(placed: list[PlacedBatch], space: SpaceWatch) -> bool:
    """Write batches, if need be with the help of the reserve. False if the disk is full."""
    try:
        write_placed(placed)
    except Shortage as error:
        if not space.release_reserve(error):
            return False
        return has_written(placed, space)
    return True


def held(step: WriteBatches) -> WriteBatches:
    """The same step with copies: views would keep the journal reader's whole window in memory."""
    return WriteBatches([batch._replace(buffers=tuple(map(bytes, batch.buffers))) for batch in step.placed])

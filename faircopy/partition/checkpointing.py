"""The checkpoints of one partition: they store its state and free journal space (I6, I7)."""

from __future__ import annotations

import asyncio

from faircopy.copier.checkpoint import (
    NO_CHECKPOINT,
    Checkpoint,
    changes_of,
    decode_checkpoint,
    encode_checkpoint,
    give_back,
    restore,
    take_changed,
)
from faircopy.copier.fold import PartitionState
from faircopy.copier.sink import Sink
from faircopy.errors import FaircopyError
from faircopy.journal.errors import JournalFull
from faircopy.journal.journal import Journal
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.state_store import Change, StateStore

LET_GO_POLL_SECONDS = 0.002
STARVED_POLL_SECONDS = 1.0


class Checkpointing:
    """One checkpoint at a time. `position` is where the last stored one ends in the journal."""

    def __init__(
        self, identity: bytes, journal: Journal, sink: Sink, store: StateStore, disk: DiskPool
    ) -> None:
        self.position = 0
        self.is_at_work = False
        self._identity = identity
        self._journal = journal
        self._sink = sink
        self._store = store
        self._disk = disk
        self._snapshot: asyncio.Future[tuple[list[Change], Checkpoint]] | None = None

    def load(self) -> tuple[Checkpoint, PartitionState | None]:
        """The last checkpoint and the state that it holds; no state if there has been none yet. Blocks."""
        value = self._store.get("checkpoints", self._identity)
        if value is None:
            return NO_CHECKPOINT, None
        checkpoint = decode_checkpoint(value)
        self.position = checkpoint.position
        producers = self._store.scan("producers", self._identity)
        return checkpoint, restore(checkpoint, producers, self._store.scan("transactions", self._identity))

    async def make(self, state: PartitionState) -> None:
        """Store the state as of now, and free journal space. Does nothing if that is under way already.

        Raises JournalFull, StorageFailure, or what `fail` was called with.
        """
        if self.is_at_work:
            return
        self.is_at_work = True
        try:
            await self._make(state)
        finally:
            self.is_at_work = False

    async def idle(self) -> None:
        """Wait until none is under way."""
        while self.is_at_work:
            await asyncio.sleep(LET_GO_POLL_SECONDS)

    def fail(self, error: FaircopyError) -> None:
        """The partition has stopped: its sink does nothing more, so a checkpoint would never end."""
        if self._snapshot is not None and not self._snapshot.done():
            self._snapshot.set_exception(error)

    async def _make(self, state: PartitionState) -> None:
        folded = Checkpoint(
            state.position, state.start_offset, state.next_offset, None, 0,
            state.forgotten_producer_id, state.epochs, self._journal.epochs_below(state.position),
        )  # fmt: skip
        needed = min(state.position, state.first_needed_position)
        state.producers.sleep()
        changed = take_changed(state)
        changes = changes_of(self._identity, state, changed)
        try:
            more, end = await self._snapshot_sink()
            await self._journal.sync()
            await self._sink.sync()
            checkpoint = folded._replace(log_segment_base=end.log_segment_base, log_byte=end.log_byte)
            await self._store.write([*changes, *more, encode_checkpoint(self._identity, checkpoint)])
        except BaseException:
            # The next checkpoint must include what was not stored now, or it would tear the state.
            give_back(state, changed)
            raise
        self._sink.stored()
        self.position = checkpoint.position
        for segment in self._journal.reclaim(needed):
            await self._disk.run(segment.discard)

    async def _snapshot_sink(self) -> tuple[list[Change], Checkpoint]:
        """What the sink has to store when all effects up to now, and none after, are carried out."""
        reached: asyncio.Future[tuple[list[Change], Checkpoint]] = asyncio.get_running_loop().create_future()
        self._snapshot = reached

        def snapshot() -> None:
            if not reached.done():
                reached.set_result(self._sink.snapshot())

        self._journal.when_durable(lambda: self._sink.push_barrier(snapshot))
        while not (await asyncio.wait([reached], timeout=STARVED_POLL_SECONDS))[0]:
            if self._journal.waits_for_space or self._sink.waits_for_space:
                reached.cancel()
                raise JournalFull(
                    f"{self._journal.directory} waits for disk space: it is checkpointed when there is some"
                )
        return reached.result()

"""What a leader's journals need before they are folded, and while they are led: the followers of its set."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from faircopy.journal.checkpoint import decode_journal_checkpoint
from faircopy.journal.errors import DamagedJournal, NotEnoughReplicas
from faircopy.journal.journal import Journal
from faircopy.journal.options import JournalOptions
from faircopy.replication.followers import Followers
from faircopy.storage.disk_pool import DiskPool
from faircopy.storage.failures import NoSpace
from faircopy.storage.state_store import StateStore

GRACE_SECONDS = 2.0


class ShipsToFollowers:
    """See `Shipping`."""

    is_shared = True

    def __init__(self, followers: Followers, store: StateStore, disk: DiskPool) -> None:
        self.followers = followers
        self._store = store
        self._disk = disk

    def applied_to(self, options: JournalOptions) -> JournalOptions:
        """What all journals share, if followers have them, too."""
        return options._replace(on_moved=self.followers.note_moved, is_replicated=True)

    async def share(self, journals: Sequence[Journal]) -> None:
        """Open them raw, and pass the barrier (A17)."""
        opened = await self._disk.run(self._open_raw, journals)
        for journal in opened:
            self.followers.lead(journal)
        await self.followers.barrier(opened)

    def _open_raw(self, journals: Sequence[Journal]) -> list[Journal]:
        opened = []
        for journal in journals:
            checkpoint = decode_journal_checkpoint(self._store.get("checkpoints", journal.identity))
            try:
                journal.open_raw(*checkpoint)
            except DamagedJournal:
                continue  # whoever folds it finds the same, and says so
            opened.append(journal)
        return opened

    def lead(self, journal: Journal) -> None:
        """Ship a new journal."""
        self.followers.lead(journal)

    def forget(self, identity: bytes) -> None:
        """Ship it no longer."""
        self.followers.forget(identity)

    def shortage(self) -> Exception | None:
        """Why nothing new may be accepted. Who was away for a moment is not missing yet: what was accepted
        waits anyway.
        """
        away = self._away(GRACE_SECONDS)
        if away is not None:
            return away
        return NoSpace("the disk of a follower is nearly full") if self.followers.are_short else None

    def ensure_whole(self) -> None:
        """Raise NotEnoughReplicas if a replica is missing now."""
        away = self._away(0)
        if away is not None:
            raise away

    def _away(self, seconds: float) -> NotEnoughReplicas | None:
        """Who has been away for so long, as an error."""
        now, missing = asyncio.get_running_loop().time(), self.followers.missing.items()
        away = [
            (broker, now - each.since, each.why) for broker, each in missing if now - each.since >= seconds
        ]
        if not away:
            return None
        told = ", ".join(f"broker {broker} for {since:.0f} s ({why})" for broker, since, why in away)
        return NotEnoughReplicas(f"the replica set lacks {told}: start it, or see what its log says")

    async def close(self) -> None:
        """End all links."""
        await self.followers.close()

"""How journals come to other replicas, as those see it who open, make and delete journals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from faircopy.journal.journal import Journal
from faircopy.journal.options import JournalOptions


class Shipping(Protocol):
    """Ships the journals that this broker leads. Belongs to the event loop."""

    @property
    def is_shared(self) -> bool:
        """Whether there are other replicas."""

    def applied_to(self, options: JournalOptions) -> JournalOptions:
        """The options of journals that are shipped so."""

    async def share(self, journals: Sequence[Journal]) -> None:
        """Open these journals, whose files may exist, and wait until all replicas have what is there: only
        then may they be folded. A damaged one is left as it is.
        """

    def lead(self, journal: Journal) -> None:
        """Ship a journal from now on, if it is not shipped yet."""

    def forget(self, identity: bytes) -> None:
        """Ship a journal no longer: it is deleted."""

    def shortage(self) -> Exception | None:
        """Why nothing new may be accepted: a replica is missing, or its disk is nearly full."""

    def ensure_whole(self) -> None:
        """Raise NotEnoughReplicas if a replica is missing now: then nothing becomes durable."""

    async def close(self) -> None:
        """Ship nothing more."""


class NotShipped:
    """There are no other replicas."""

    is_shared = False

    def applied_to(self, options: JournalOptions) -> JournalOptions:
        """They need nothing."""
        return options

    async def share(self, journals: Sequence[Journal]) -> None:
        """All have it."""

    def lead(self, journal: Journal) -> None:
        """Nobody else wants it."""

    def forget(self, identity: bytes) -> None:
        """Nobody else has it."""

    def shortage(self) -> Exception | None:
        """Nobody is missing."""
        return None

    def ensure_whole(self) -> None:
        """It is."""

    async def close(self) -> None:
        """There is nothing to end."""


NOT_SHIPPED = NotShipped()

"""The target of a data journal's effects: a visible log, or the table of group offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from faircopy.copier.checkpoint import Checkpoint
from faircopy.copier.fold import Effect
from faircopy.storage.state_store import Change
from faircopy.storage.system import Buffer


class Sink(Protocol):
    """Carries out effects, in order. All methods are called on the event loop."""

    @property
    def waits_for_space(self) -> bool:
        """Whether effects must wait until the disk has space."""

    def push(self, effect: Effect, payload: Buffer | None) -> None:
        """Carry out an effect whose entry is durable. `payload` is that of a PLAIN entry."""

    def push_barrier(self, reached: Callable[[], None]) -> None:
        """Call `reached` when all effects pushed before are carried out, and none pushed after."""

    def snapshot(self) -> tuple[list[Change], Checkpoint]:
        """At a barrier: the changes that store what was carried out, and a checkpoint with the log's fields
        filled in.
        """

    async def sync(self) -> None:
        """Make durable everything that was carried out up to the last snapshot."""

    def stored(self) -> None:
        """The last snapshot is in the store: drop what it holds from memory."""

    def retire(self) -> None:
        """Everything is stored, and another instance opens the files now: keep none open."""

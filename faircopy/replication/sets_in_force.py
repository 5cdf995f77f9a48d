"""Which records of the set may be in force, as far as its leader knows.

After a read it is the one that was read. A change adds the record that it asks for, before it is sent, and
whatever its sender hears of it: an unchanged version proves nothing, since a write may land late (A7). A
higher version does. The change is in it, or never will be, since it depends on the version before. To find
out, the leader writes the record that it knows once more: that asks for no other set.

Pure.
"""

from __future__ import annotations

from faircopy.arbiter.record import IllegalChange, SetRecord


class SetsInForce:
    """The record that was last read, with its version, and the change of it that is under way, if any."""

    __slots__ = ("changed", "known", "version")

    def __init__(self, record: SetRecord, version: int) -> None:
        self.known = record
        self.version = version
        self.changed: SetRecord | None = None

    @property
    def all(self) -> tuple[SetRecord, ...]:
        """The records of which one is in force."""
        return (self.known,) if self.changed is None else (self.known, self.changed)

    def read(self, record: SetRecord, version: int) -> None:
        """The store had this record at some time. Copies may be old: only a higher version says anything."""
        if version > self.version:
            self.known, self.version, self.changed = record, version, None

    def change(self, changed: SetRecord) -> None:
        """A change of `known` is about to be sent, on condition of `version`. Raises IllegalChange while
        another one is under way (A8).
        """
        if self.changed is not None:
            raise IllegalChange(f"another change is under way (epoch {self.known.epoch})")
        self.changed = changed

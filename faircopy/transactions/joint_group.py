"""Joint groups: several producers whose transactions are committed by one decision.

Members of a group are made by joins. Each belongs to a *run* of the group, one life of the application, and
writes for a *key*, which numbers what is committed: keys of a group are committed in growing order, each at
most once. A run that was not seen before replaces the present one, and fences it.

Pure. Written by the fold of the metadata journal only (`table.py`).
"""

from __future__ import annotations

from typing import NamedTuple

from faircopy.journal.entry import TransactionId

NO_KEY = -1
FORMER_RUNS_MAX = 32
"""How many replaced runs are remembered, newest last. An older one would be taken for a new run."""


class Membership(NamedTuple):
    """To what a member belongs. A member without a key (NO_KEY) commits on its own, as often as it likes."""

    group: str
    run: str
    key: int
    member: str


class JointGroup:
    """A joint group. `deciding` has the decisions that are not carried out yet: the lead of each key.

    `members` are transactional ids. They are those of producers whose `membership` names this group. `named`
    has the producer ids that a decision named, for the keys in `deciding` and the last one that is committed.
    """

    __slots__ = ("committed_key", "deciding", "former_runs", "members", "name", "named", "run")

    def __init__(self, name: str) -> None:
        self.name = name
        self.run = ""
        self.former_runs: list[str] = []
        self.committed_key = NO_KEY
        self.deciding: dict[int, TransactionId] = {}
        self.members: set[str] = set()
        self.named: dict[int, list[int]] = {}

    @property
    def last_key(self) -> int:
        """The last key that was decided; NO_KEY before the first. What was decided before others may be
        carried out after them.
        """
        return max(self.committed_key, *self.deciding, NO_KEY)

    def is_former(self, run: str) -> bool:
        """Whether a run was replaced by a newer one."""
        return run in self.former_runs

    def replace_run(self, run: str) -> None:
        """A new run takes over."""
        if self.run:
            self.former_runs = [*self.former_runs, self.run][-FORMER_RUNS_MAX:]
        self.run = run

    def decide(self, key: int, lead: TransactionId, named: list[int]) -> None:
        """It is decided to commit a key, with what the `named` members wrote."""
        self.deciding[key] = lead
        self.named[key] = named

    def decided(self, lead: TransactionId, *, is_committed: bool) -> None:
        """A decision was carried out, or taken back."""
        for key in [key for key, each in self.deciding.items() if each == lead]:
            del self.deciding[key]
            if is_committed:
                self.committed_key = max(self.committed_key, key)
        kept = {self.committed_key, *self.deciding}
        self.named = {key: named for key, named in self.named.items() if key in kept}

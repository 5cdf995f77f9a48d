"""What of a group is on its way to disk. Pure, like the machine that it belongs to."""

from __future__ import annotations

from faircopy.groups.group_metadata import GroupMetadata
from faircopy.groups.members import AnswerJoin, JoinAnswer, StoreGroup
from faircopy.wire.error_codes import ErrorCode

STORE_AGAIN_MS = 5_000
"""How long after a failed store, say because of a full disk, a group is stored again."""


class Storing:
    """The StoreGroups of one group. `is_kept` holds once there was one. `again_ms` is when to try again."""

    def __init__(self, *, is_kept: bool = False) -> None:
        self.is_kept = is_kept
        self.again_ms: int | None = None
        self._number = 0
        self._last: int | None = None  # the number of the last StoreGroup, until it is done
        self._held: dict[int, AnswerJoin] = {}  # answers that wait for a StoreGroup, by its number

    @property
    def is_over(self) -> bool:
        """Whether everything that had to be stored is durable."""
        return self._last is None

    def begin(self, metadata: GroupMetadata) -> StoreGroup:
        """Store the group as it is now."""
        self._number += 1
        self._last, self.is_kept, self.again_ms = self._number, True, None
        return StoreGroup(self._number, metadata)

    def hold(self, number: int, answer: AnswerJoin) -> None:
        """Hold an answer back until the StoreGroup of this number is durable."""
        self._held[number] = answer

    def end(self, number: int, error: ErrorCode, now_ms: int) -> list[AnswerJoin]:
        """Note that a StoreGroup is durable, or may not be (an error). Returns the answers it held back."""
        if number == self._last:
            self._last = number if error else None
            self.again_ms = now_ms + STORE_AGAIN_MS if error else None
        held = self._held.pop(number, None)
        if held is None:
            return []
        return [held._replace(answer=JoinAnswer(error, "")) if error else held]

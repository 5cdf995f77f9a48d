"""How the items of a run ended, and what follows from it: what is tried again, what is red, what is said.

Pure: `recording.py` makes outcomes, `__main__.py` prints them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum

# More failures than this have one cause, and it is not that the machine was busy.
RETRIED_MAX = 10


class Ending(StrEnum):
    """How an item ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Item:
    """How an item ended, how long it took with its fixtures, and whether it shows a fault of the product."""

    ending: Ending
    seconds: float
    is_finding: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    `items` is keyed by pytest's node ids. `errors` names what could not even be tried: files that can't be
    collected, a run that died. `unsteady` names items that failed, and passed when they were tried alone.
    """

    items: dict[str, Item] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[str]:
        """The node ids of the items that failed."""
        return [name for name, item in self.items.items() if item.ending is Ending.FAILED]

    @property
    def is_good(self) -> bool:
        """Whether something passed, and nothing failed."""
        return not self.failed and not self.errors and self.count(Ending.PASSED) > 0

    @property
    def may_be_tried_again(self) -> bool:
        """Whether the failures may be those of a busy machine."""
        findings = any(item.is_finding for item in self.items.values())
        return bool(self.failed) and not self.errors and not findings and len(self.failed) <= RETRIED_MAX

    def count(self, ending: Ending) -> int:
        """The number of items that ended so."""
        return Counter(item.ending for item in self.items.values())[ending]

    def tried_again(self, second: Outcome) -> Outcome:
        """This outcome, after its failures were tried again; `second` is the outcome of that."""
        steady = {name: item for name, item in second.items.items() if item.ending is Ending.PASSED}
        unsteady = [name for name in self.failed if name in steady]
        items = self.items | {name: steady[name] for name in unsteady}
        return Outcome(items, [*self.errors, *second.errors], unsteady)

    def to_json(self) -> str:
        """The outcome as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        """The outcome that `to_json` has written. Raises ValueError or KeyError for anything else."""
        found = json.loads(text)
        items = {
            name: Item(Ending(item["ending"]), item["seconds"], item["is_finding"])
            for name, item in found["items"].items()
        }
        return cls(items, found["errors"], found["unsteady"])


def summary(outcomes: Iterable[Outcome]) -> str:
    """The last line of a run. What could not be tried counts as failed."""
    outcomes = list(outcomes)
    passed, failed, skipped = (sum(each.count(ending) for each in outcomes) for ending in Ending)
    failed += sum(len(each.errors) for each in outcomes)
    return f"{passed} passed, {failed} failed, {skipped} skipped"


def slowest(outcomes: Iterable[Outcome], count: int) -> list[tuple[float, str]]:
    """The items that took longest: seconds and node id, longest first."""
    found = [(item.seconds, name) for each in outcomes for name, item in each.items.items()]
    return sorted(found, reverse=True)[:count]

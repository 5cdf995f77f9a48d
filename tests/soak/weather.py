"""What happens to a request on its way through the proxy."""

from __future__ import annotations

import random
from collections import deque
from enum import Enum

from faircopy.wire.api_keys import ApiKey
from tests.simulation.coverage import Coverage


class Fate(Enum):
    """What happens to one request. `CUT_...` closes the connection. `LATE` keeps the broker's end of it, and
    passes the request on when its client has long gone on elsewhere (KAFKA-17754). `REPLAYED` passes it on at
    once, and again later on an older connection.
    """

    DELAYED = "delayed"
    REPEATED = "repeated at once"
    CUT_BEFORE = "cut before it"
    CUT_AFTER = "cut after it"
    LATE = "late"
    REPLAYED = "replayed"


Chances = dict[Fate, float]

END = {
    Fate.DELAYED: 0.05,
    Fate.REPEATED: 0.08,
    Fate.CUT_BEFORE: 0.03,
    Fate.CUT_AFTER: 0.04,
    Fate.LATE: 0.03,
    Fate.REPLAYED: 0.08,
}
IN_TRANSACTION = {
    Fate.DELAYED: 0.01,
    Fate.REPEATED: 0.02,
    Fate.CUT_BEFORE: 0.004,
    Fate.CUT_AFTER: 0.004,
    Fate.LATE: 0.004,
}
PRODUCE = {Fate.DELAYED: 0.01, Fate.REPEATED: 0.03, Fate.CUT_BEFORE: 0.004, Fate.CUT_AFTER: 0.006}
# Elsewhere the protocol has no defence against repeated or late requests: members join twice, offsets go
# back.
OTHER = {Fate.DELAYED: 0.005, Fate.CUT_BEFORE: 0.001, Fate.CUT_AFTER: 0.001}
CHANCES: dict[int, Chances] = {
    ApiKey.END_TXN: END,
    ApiKey.ADD_PARTITIONS_TO_TXN: IN_TRANSACTION,
    ApiKey.ADD_OFFSETS_TO_TXN: IN_TRANSACTION,
    ApiKey.TXN_OFFSET_COMMIT: IN_TRANSACTION,
    ApiKey.PRODUCE: PRODUCE,
}


REPEATED_PRODUCES = 8  # some are of transactions that are aborted, and show nothing
SPARED_PRODUCES = 8


class Weather:
    """Chooses fates from a seed. The first EndTxns and the first Produces meet each of their fates."""

    def __init__(self, chosen: random.Random, coverage: Coverage) -> None:
        self.chosen = chosen
        self._coverage = coverage
        produces = [*PRODUCE, *[Fate.REPEATED] * (REPEATED_PRODUCES - 1), *[None] * SPARED_PRODUCES]
        self._due: dict[int, deque[Fate | None]] = {
            ApiKey.END_TXN: deque(chosen.sample(list(END), len(END))),
            ApiKey.PRODUCE: deque(chosen.sample(produces, len(produces))),
        }
        self.is_calm = True
        coverage.announce(
            *(
                f"{name_of(api_key)}: {fate.value}"
                for api_key, due in self._due.items()
                for fate in due
                if fate
            )
        )

    @property
    def has_met_all(self) -> bool:
        """Whether each fate that was due has come."""
        return not any(self._due.values())

    def fate_of(self, api_key: int) -> Fate | None:
        """The fate of the next request; None if nothing happens to it."""
        if self.is_calm:
            return None
        due = self._due.get(api_key)
        fate = due.popleft() if due else self._draw(api_key)
        if fate is not None:
            self._coverage.hit(f"{name_of(api_key)}: {fate.value}")
        return fate

    def _draw(self, api_key: int) -> Fate | None:
        drawn = self.chosen.random()
        for fate, chance in CHANCES.get(api_key, OTHER).items():
            drawn -= chance
            if drawn < 0:
                return fate
        return None


def name_of(api_key: int) -> str:
    """The name under which a request is counted."""
    names = {ApiKey.END_TXN: "EndTxn", ApiKey.PRODUCE: "Produce"}
    if api_key in names:
        return names[ApiKey(api_key)]
    return "in a transaction" if api_key in CHANCES else "other request"

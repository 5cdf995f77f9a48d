"""What the network does to requests: some hang, and some arrive after their client has given them up."""

from __future__ import annotations

import random
from collections import Counter

from faircopy.wire.api_keys import ApiKey
from tests.soak.weather import Fate

CHANCES: dict[int, dict[Fate, float]] = {
    ApiKey.PRODUCE: {Fate.LATE: 0.02, Fate.DELAYED: 0.05},
    ApiKey.ADD_PARTITIONS_TO_TXN: {Fate.LATE: 0.02, Fate.DELAYED: 0.05},
    ApiKey.END_TXN: {Fate.LATE: 0.05, Fate.DELAYED: 0.05},
}
"""How likely each is, of one request. All others pass."""
NAMES = {
    ApiKey.PRODUCE: "Produce",
    ApiKey.ADD_PARTITIONS_TO_TXN: "AddPartitionsToTxn",
    ApiKey.END_TXN: "EndTxn",
}


class LateWeather:
    """Chooses fates from a seed. `late` counts the requests that came late, by their names."""

    def __init__(self, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.is_calm = True
        self.late: Counter[str] = Counter()

    def fate_of(self, api_key: int) -> Fate | None:
        """The fate of the next request; None if it passes at once."""
        if self.is_calm:
            return None
        drawn = self.chosen.random()
        for fate, chance in CHANCES.get(api_key, {}).items():
            drawn -= chance
            if drawn < 0:
                if fate is Fate.LATE:
                    self.late[NAMES[ApiKey(api_key)]] += 1
                return fate
        return None

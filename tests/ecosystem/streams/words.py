"""Lines of words for the application, which are counted as they are written."""

from __future__ import annotations

import random
from collections import Counter

from confluent_kafka import Producer

from tests.ecosystem.streams.installed import INPUT

VOCABULARY = [f"word{number}" for number in range(40)]
WORDS_OF_A_LINE = 8
LINES_AT_ONCE = 20
FLUSH_SECONDS = 60.0  # it survives a restart of the broker on a busy machine


class Words:
    """Writes lines to the input, each once, whatever happens to the broker."""

    def __init__(self, broker: str, chance: random.Random) -> None:
        self._producer = Producer({"bootstrap.servers": broker, "enable.idempotence": True, "log_level": 0})
        self._chance = chance
        self.counts = Counter[str]()

    @property
    def written(self) -> int:
        """How many words."""
        return self.counts.total()

    def write(self) -> None:
        """Write some lines, and return when the broker has them."""
        for _ in range(LINES_AT_ONCE):
            words = self._chance.choices(VOCABULARY, k=WORDS_OF_A_LINE)
            self._producer.produce(INPUT, " ".join(words).encode())
            self.counts.update(words)
        left = self._producer.flush(FLUSH_SECONDS)
        assert left == 0, f"the broker did not take {left} lines within {FLUSH_SECONDS} s"

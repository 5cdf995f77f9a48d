"""Sentences that a program counts the words of, and the counts that are right."""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Producer

WORDS = ("log", "broker", "commit", "offset", "fence", "epoch", "flush")
CALL_SECONDS = 120.0  # of one call: it survives a restart of the broker on a busy machine


class Sentences:
    """Writes sentences to a topic, each once, and knows how often each word is in them."""

    def __init__(self, broker: str, topic: str = "sentences") -> None:
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": broker, "enable.idempotence": True, "log_level": 0})
        self._written = 0
        self.counts: Counter[str] = Counter()

    def write(self, sentences: int) -> None:
        """Write so many more."""
        for number in range(self._written, self._written + sentences):
            words = [WORDS[number % len(WORDS)], WORDS[number // 2 % len(WORDS)], "and"]
            self._producer.produce(self._topic, " ".join(words).encode(), key=b"%d" % number)
            self.counts.update(words)
        self._written += sentences
        left = self._producer.flush(CALL_SECONDS)
        assert left == 0, f"the broker did not take {left} sentences within {CALL_SECONDS} s"

"""Counts words with Quix Streams, as its tutorial does, and keeps the counts in its state.

Usage: quix_words.py BROKER GUARANTEE
"""

from __future__ import annotations

import sys

from quixstreams import Application, State

broker, guarantee = sys.argv[1:]
app = Application(
    broker_address=broker,
    consumer_group="words",
    auto_offset_reset="earliest",
    processing_guarantee=guarantee,
)
sentences = app.topic("sentences", value_deserializer="str")
counts = app.topic("counts", key_serializer="str", value_serializer="json")


def count(word: str, state: State) -> dict[str, object]:
    """One more of this word."""
    total = state.get("total", default=0) + 1
    state.set("total", total)
    return {"word": word, "count": total}


words = app.dataframe(sentences).apply(lambda sentence: sentence.split(), expand=True)
words = words.group_by(lambda word: word, name="word")
words.apply(count, stateful=True).to_topic(counts)

if __name__ == "__main__":
    app.run()

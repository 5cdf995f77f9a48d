"""Counts words with Faust, as its example does, in a table of its default kind."""

from __future__ import annotations

import os

import faust

app = faust.App("words", broker=f"kafka://{os.environ['BROKER']}")
sentences = app.topic("sentences", value_type=str, value_serializer="raw")
counts = app.Table("counts", default=int)


@app.agent(sentences)
async def split(stream: faust.StreamT[str]) -> None:
    """Send each word to whoever counts it."""
    async for sentence in stream:
        for word in sentence.split():
            await count.send(key=word, value=word)


@app.agent(value_type=str)
async def count(words: faust.StreamT[str]) -> None:
    """One more of this word."""
    async for word in words:
        counts[word] += 1

"""What the demo's processes have reported so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from demo.flights import WORKERS


class Tally:
    """The events so far. Each field is written by only one thread."""

    def __init__(self) -> None:
        self.loaded = 0
        self.offsets = [0] * WORKERS
        self.committed: dict[str, float] = {}
        self.commit_ms: list[float] = []
        self.aborted = 0
        self.crashed = 0
        self.seen = 0
        self.joined = 0
        self.spark_version = ""
        self.reader: dict[str, Any] = {}
        self.spark: dict[str, Any] = {}

    def hear_worker(self, number: int) -> Callable[[dict[str, Any]], None]:
        """The function that takes the events of the worker with this number."""

        def hear(event: dict[str, Any]) -> None:
            self.offsets[number] = event.get("offset", self.offsets[number])
            if "committed" in event:
                self.committed[event["committed"]] = event["acked_at"]
                self.commit_ms.append(event["commit_ms"])
            elif "aborted" in event:
                self.aborted += 1

        return hear

    def hear_reader(self, event: dict[str, Any]) -> None:
        """Take an event of the plain reader."""
        self.seen = event.get("seen", self.seen)
        self.reader = event.get("final", self.reader)

    def hear_spark(self, event: dict[str, Any]) -> None:
        """Take an event of the Spark job."""
        self.spark_version = event.get("spark", self.spark_version)
        self.joined = event.get("joined", self.joined)
        self.spark = event.get("final", self.spark)

    def copy_lag_ms(self) -> list[float]:
        """From each commit's ack to the moment when the plain reader had its last message."""
        last_seen = self.reader.get("last_seen", {})
        return [
            max(last_seen[attempt] - acked_at, 0.0) * 1000
            for attempt, acked_at in self.committed.items()
            if attempt in last_seen
        ]

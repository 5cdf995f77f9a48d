"""The latencies of the protocols as closed formulas, which the tests compare with the simulation.

RTT is a round trip, W a durable write, N the number of partitions, p the work on one message, T the client
library's timer before it registers partitions, F the number of turns in which it sends N requests if only a
few may be unanswered, and M the time that a transaction still waits for the markers of the previous one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.distance.conditions import Conditions


@dataclass(frozen=True)
class Formula:
    """A sum of terms. `turn_round_trips` and `turn_writes` come F times, `messages_a_partition` N times."""

    round_trips: float
    writes: int
    messages_a_partition: int = 0
    messages: int = 0
    turn_round_trips: int = 0
    turn_writes: int = 0
    timers: int = 0
    marker_waits: int = 0

    def milliseconds(self, conditions: Conditions) -> float:
        """The sum."""
        partitions = conditions.partitions
        turns = math.ceil(partitions / (conditions.requests_in_flight or partitions))
        return (
            self.timers * conditions.registration_pause_ms
            + self.marker_waits * marker_wait_ms(conditions)
            + (self.round_trips + turns * self.turn_round_trips) * conditions.round_trip_ms
            + (self.writes + turns * self.turn_writes) * conditions.write_ms
            + (self.messages_a_partition * partitions + self.messages) * conditions.processing_ms
        )

    def text(self, *, is_replicated: bool = False) -> str:
        """The sum as text, such as "3 RTT + W + (2N + 4) p"; a replicated write takes W + RTT."""
        round_trips = self.round_trips + (self.writes if is_replicated else 0)
        terms = [
            "T" if self.timers else "",
            "M" if self.marker_waits else "",
            times(round_trips, self.turn_round_trips, "F", "RTT"),
            times(self.writes, self.turn_writes, "F", "W"),
            times(self.messages, self.messages_a_partition, "N", "p"),
        ]
        return " + ".join(term for term in terms if term)


def marker_wait_ms(conditions: Conditions) -> float:
    """The rest of the time for writing markers, after the ack's journey and the client's timer."""
    markers_ms = conditions.broker_round_trip_ms + conditions.write_ms
    return max(0.0, markers_ms - conditions.round_trip_ms - conditions.registration_pause_ms)


def times(constant: float, slope: int, variable: str, unit: str) -> str:
    """A term such as "2 RTT" or "(F + 2) RTT"; empty if it is 0."""
    growing = variable if slope == 1 else f"{slope}{variable}"
    if slope and constant:
        return f"({growing} + {constant:g}) {unit}"
    if slope:
        return f"{growing} {unit}"
    if constant:
        return unit if constant == 1 else f"{constant:g} {unit}"
    return ""


# From the call of commit, right after the last send, to its ack. Partitions are registered by then.
COMMIT = {
    "local-copy": Formula(3, 1, 2, 4),
    "remote-copy": Formula(2, 1, 1, 3),
    "markers": Formula(2, 2, 1, 3),
    "parallel-prepare": Formula(3, 1, 2, 4),
    "none": Formula(2, 1, 1, 3),
}

# From the same call until the consumer has the last message.
VISIBLE = {
    "local-copy": Formula(3.5, 2, 3, 4),
    "remote-copy": Formula(2.5, 2, 2, 3),
    "markers": Formula(2.5, 3, 2, 3),
    "parallel-prepare": Formula(3.5, 2, 3, 4),
    "none": Formula(1, 1, 1, 1),
}

# What the benchmark measures as commit: on one broker, with one transaction after the other, and with
# librdkafka. It registers the partitions and sends the messages within the call of commit if that comes right
# after them.
ONE_BROKER = {
    "local-copy": Formula(2, 1, turn_round_trips=1, timers=1),
    "remote-copy": Formula(2, 1, turn_round_trips=1, timers=1),
    "markers": Formula(2, 2, turn_round_trips=1, turn_writes=1, timers=1, marker_waits=1),
    "parallel-prepare": Formula(2, 1, turn_round_trips=1, timers=1, marker_waits=1),
    "none": Formula(2, 0, turn_round_trips=1, turn_writes=1, timers=1),
}

# The same, when all messages are acked before the call.
ONE_BROKER_FLUSHED = {name: Formula(1, 0 if name == "none" else 1) for name in ONE_BROKER}

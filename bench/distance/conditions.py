"""The conditions under which a modelled transaction runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Conditions:
    """Distances, disks and clients. Times are milliseconds.

    `round_trip_ms` is between a client and a broker, `broker_round_trip_ms` between two brokers.
    `durable_write_ms` is one group commit: a node's files become durable side by side. If `is_replicated`, a
    durable write ends when a follower has it too, one round trip between brokers later. `processing_ms` is
    the work on each message that reaches a node, one after the other.

    The last two belong to the client library: how long it waits before it registers partitions, so that one
    request serves several, and how many of its produce requests may be unanswered (None: no limit).
    """

    round_trip_ms: float
    broker_round_trip_ms: float
    durable_write_ms: float
    partitions: int
    processing_ms: float = 0.0
    is_replicated: bool = False
    registration_pause_ms: float = 0.0
    requests_in_flight: int | None = None

    @property
    def write_ms(self) -> float:
        """One durable write, with its replication."""
        return self.durable_write_ms + (self.broker_round_trip_ms if self.is_replicated else 0.0)


def apart(
    round_trip_ms: float,
    durable_write_ms: float,
    partitions: int,
    processing_ms: float = 0.0,
    *,
    is_replicated: bool = False,
) -> Conditions:
    """Client, coordinator and each partition's leader on nodes of their own, all equally far apart."""
    return Conditions(
        round_trip_ms, round_trip_ms, durable_write_ms, partitions, processing_ms, is_replicated=is_replicated
    )


def one_broker(round_trip_ms: float, durable_write_ms: float, partitions: int) -> Conditions:
    """The setting of the benchmark: one broker on loopback, where coordinator and leaders are one process.

    Its client, librdkafka, registers partitions after a timer of 1 ms, sends one batch per request, and has
    at most five unanswered requests on the connection of an idempotent producer.
    """
    return Conditions(
        round_trip_ms, 0.0, durable_write_ms, partitions, registration_pause_ms=1.0, requests_in_flight=5
    )

"""The model over a grid of distances and disks, and compared with the figures of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from bench.distance.conditions import Conditions, apart, one_broker
from bench.distance.formulas import COMMIT, ONE_BROKER, ONE_BROKER_FLUSHED, VISIBLE
from bench.distance.protocols import PROTOCOLS, moments
from bench.results import Checked, Distance, Histogram, Latency, Results

ROUND_TRIPS_MS = (0.1, 1.0, 10.0, 80.0)
DURABLE_WRITES_MS = (0.1, 2.0, 10.0)
PARTITIONS = (1, 4, 16, 64, 256, 1000)
# A broker that processes a hundred thousand messages a second.
PROCESSING_MS = 0.01


def distances() -> list[Distance]:
    """Every protocol at every distance, disk and number of partitions, without and with replicas."""
    return [
        distance(protocol, apart(*place, PROCESSING_MS, is_replicated=is_replicated))
        for is_replicated in (False, True)
        for protocol in PROTOCOLS
        for place in product(ROUND_TRIPS_MS, DURABLE_WRITES_MS, PARTITIONS)
    ]


def distance(protocol: str, conditions: Conditions) -> Distance:
    """One row, by simulation."""
    happened = moments(protocol, conditions)
    return Distance(
        protocol,
        conditions.is_replicated,
        COMMIT[protocol].text(is_replicated=conditions.is_replicated),
        VISIBLE[protocol].text(is_replicated=conditions.is_replicated),
        conditions.round_trip_ms,
        conditions.durable_write_ms,
        conditions.processing_ms,
        conditions.partitions,
        happened["acked"] - happened["registered"],
        happened["visible"] - happened["registered"],
    )


def check(results: Results) -> list[Checked]:
    """The model with this run's floors, beside each p50 that the run measured for one producer under fsync.

    The model counts messages, durable writes and the client library's timer, but no processing: that explains
    the rest of a measured figure. Without the floors "loopback round trip" and "fdatasync" there is nothing
    to check.
    """
    floors = {floor.name: floor.value for floor in results.floors}
    if not {"loopback round trip", "fdatasync"} <= floors.keys():
        return []
    return [
        beside(protocol, row, floors, is_flushed=is_flushed)
        for protocol, row in measured(results)
        for is_flushed in (False, True)
        if commit_of(row, is_flushed).count
    ]


def measured(results: Results) -> Iterator[tuple[str, Latency]]:
    """The rows that the model can predict, with their protocols."""
    for row in results.of(Latency):
        protocol = row.system.removesuffix(" fsync")
        if (row.producers, row.pause_ms) == (1, 0) and protocol != row.system and protocol in PROTOCOLS:
            yield protocol, row


def beside(protocol: str, row: Latency, floors: dict[str, float], *, is_flushed: bool) -> Checked:
    """One measured figure and the model's."""
    files = files_at_once(protocol, row.partitions, is_flushed=is_flushed)
    conditions = one_broker(floors["loopback round trip"], write_ms(floors, files), row.partitions)
    happened = moments(protocol, conditions, is_following=True)
    formulas = ONE_BROKER_FLUSHED if is_flushed else ONE_BROKER
    return Checked(
        protocol,
        is_flushed,
        formulas[protocol].text(),
        row.partitions,
        conditions.round_trip_ms,
        conditions.durable_write_ms,
        happened["acked"] - happened["flushed" if is_flushed else "begun"],
        commit_of(row, is_flushed).p50_ms,
    )


def commit_of(row: Latency, is_flushed: bool) -> Histogram:
    """From the call of commit to its ack, with messages flushed before the call or not."""
    return row.flushed_commit_to_ack if is_flushed else row.commit_to_ack


def files_at_once(protocol: str, partitions: int, *, is_flushed: bool) -> int:
    """How many files one broker makes durable together, at most."""
    if protocol in ("local-copy", "parallel-prepare"):
        return partitions + 1
    if protocol == "remote-copy" or is_flushed:
        return 1
    return min(partitions, one_broker(0, 0, partitions).requests_in_flight or partitions)


def write_ms(floors: dict[str, float], files: int) -> float:
    """A durable write of `files` files at once; if that was not measured, of the next smaller number."""
    pattern = re.compile(r"parallel fdatasync of (\d+) files")
    by_files = {int(match[1]): floors[name] for name in floors if (match := pattern.fullmatch(name))}
    by_files[1] = floors["fdatasync"]
    return by_files[max(count for count in by_files if count <= files)]

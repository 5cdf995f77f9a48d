"""faircopy's figures compared with those of the bare machine, each with its limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.results import Histogram, Latency, Results, Stall, Start, Throughput

FSYNC, OS = "local-copy fsync", "local-copy os"
KIB = 1 << 10


@dataclass(frozen=True)
class Limit:
    """One figure. `ratio` is to `floor` of the same run, or None if the limit is a plain number."""

    figure: str
    measured: float
    unit: str
    ratio: float | None
    floor: str
    aim: str
    is_met: bool


def limits(results: Results) -> list[Limit]:
    """All limits whose figures were measured."""
    found: Iterable[Limit | None] = (
        ready(results),
        idle_memory(results),
        commit_of_many(results),
        visible(results),
        plain_produce(results),
        plain_produce_beside_writing(results),
        *(open_transaction(results, percent) for percent in (50, 99)),
    )
    return [limit for limit in found if limit is not None]


def row(
    results: Results, kind: type[Any], system: str, chosen: Callable[[Any], bool] = lambda _row: True
) -> Any:
    """The row of a system that is chosen, or None."""
    return next((row for row in results.of(kind) if row.system == system and chosen(row)), None)


def of_partitions(results: Results, partitions: int, measure: str) -> Histogram | None:
    """A distribution of one producer's transactions; None if it is empty, since that would look fast."""
    found: Latency | None = row(
        results,
        Latency,
        FSYNC,
        lambda each: (each.partitions, each.producers, each.pause_ms) == (partitions, 1, 0),
    )
    return some(getattr(found, measure)) if found is not None else None


def some(histogram: Histogram) -> Histogram | None:
    """The distribution; None if it is empty, since that would look fast."""
    return histogram if histogram.count else None


def ready(results: Results) -> Limit | None:
    """From the start to the first answer, on an empty directory."""
    start: Start | None = row(results, Start, FSYNC)
    if start is None:
        return None
    seconds = median(start.cold_seconds)
    return Limit("ready on an empty directory", seconds, "s", None, "", "within 0.5 s", seconds <= 0.5)


def idle_memory(results: Results) -> Limit | None:
    """Memory of an idle broker."""
    start: Start | None = row(results, Start, FSYNC)
    if start is None:
        return None
    mebibytes = start.idle_memory_bytes / (1 << 20)
    return Limit("memory when idle", mebibytes, "MiB", None, "", "under 90 MiB", mebibytes < 90)


def commit_of_many(results: Results) -> Limit | None:
    """A commit over 16 partitions compared with one over a single partition."""
    one, many = (of_partitions(results, partitions, "flushed_commit_to_ack") for partitions in (1, 16))
    if one is None or many is None:
        return None
    measured = many.p50_ms
    ratio = measured / one.p50_ms
    name = "commit call to ack, flushed before, fsync, 16 partitions, p50"
    return Limit(name, measured, "ms", ratio, "1 partition", "at most 4 times", ratio <= 4)


def visible(results: Results) -> Limit | None:
    """From the ack of a commit to its delivery."""
    latency = of_partitions(results, 1, "ack_to_visible")
    if latency is None:
        return None
    measured = latency.p50_ms
    return Limit("commit ack to delivered, p50", measured, "ms", None, "", "at most 2 ms", measured <= 2)


def produced(results: Results) -> float | None:
    """Bytes a second of plain messages of 1 KiB, durability os."""
    found: Throughput | None = row(
        results, Throughput, OS, lambda each: (each.commit_every_ms, each.message_bytes) == (0, KIB)
    )
    return median(found.produced_bytes_per_second) if found is not None else None


def plain_produce(results: Results) -> Limit | None:
    """Speed of plain messages without fsync."""
    measured = produced(results)
    if measured is None:
        return None
    return Limit(
        "plain produce, 1 KiB, os", measured / 1e6, "MB/s", None, "", "at least 300", measured >= 300e6
    )


def plain_produce_beside_writing(results: Results) -> Limit | None:
    """The same compared with writing the same bytes twice, as journal and log do."""
    measured = produced(results)
    floor = next((each.value for each in results.floors if each.name == "write twice"), None)
    if measured is None or floor is None:
        return None
    ratio = measured / floor
    name = "os.write of the same bytes twice"
    return Limit("the same", measured / 1e6, "MB/s", ratio, name, "at least 1/3", ratio >= 1 / 3)


def open_transaction(results: Results, percent: int) -> Limit | None:
    """Others' delivery while a transaction hangs, compared with their delivery before; at one percentile."""
    stall: Stall | None = row(results, Stall, FSYNC)
    if stall is None or not (some(stall.before) and some(stall.during)):
        return None
    name = f"p{percent}_ms"
    measured = getattr(stall.during, name)
    ratio = measured / getattr(stall.before, name)
    figure = f"others' delivery while a transaction hangs, p{percent}"
    return Limit(figure, measured, "ms", ratio, "before it", "nothing measurable", ratio <= 1.25)

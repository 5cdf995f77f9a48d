"""The output of Kafka's tools, as values. Their latencies are whole milliseconds, and their MB are MiB."""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

# One line sums up all records; if some were for the warm-up, another line sums up the later ones.
PRODUCED = re.compile(
    r"^(?P<records>\d+)(?P<is_steady> steady state)? records sent, (?P<per_second>[\d.]+) records/sec .*"
    r" (?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th, \d+ ms 99\.9th\.$",
    re.MULTILINE,
)
COMMIT_TIME = re.compile(r"^producer-metrics:txn-commit-time-ns-total:\S+\s*: (?P<ns>[\d.]+)$", re.MULTILINE)
END_TO_END = re.compile(
    r"^Percentiles: 50th = (?P<p50>\d+), 99th = (?P<p99>\d+), 99\.9th = (?P<p999>\d+)$", re.MULTILINE
)
CONSUMED_COLUMNS = ("data.consumed.in.nMsg", "fetch.time.ms")
TRANSACTIONS = re.compile(r"^Feature: transaction\.version\s.*FinalizedVersionLevel: (\d+)", re.MULTILINE)
WITHOUT_FEATURE = 0


class Unreadable(RuntimeError):
    """A tool printed something unexpected."""


class Produced(NamedTuple):
    """A run of ProducerPerformance.

    `records` counts all records; rate and latencies are of those after the warm-up. A latency is from the
    call of send to the record's ack. `commit_share` is the part of the run that the producer spent in calls
    of commitTransaction.
    """

    records: int
    records_per_second: float
    p50_ms: int
    p95_ms: int
    p99_ms: int
    commit_share: float


class EndToEnd(NamedTuple):
    """A run of EndToEndLatency: from the send of one plain record to its delivery, one after the other."""

    p50_ms: int
    p99_ms: int
    p999_ms: int


class Consumed(NamedTuple):
    """A run of ConsumerPerformance: the rate is without the time that its group needed to start."""

    records: int
    records_per_second: float


def produced(text: str) -> Produced:
    """Reads what ProducerPerformance prints with --print-metrics. Raises Unreadable."""
    summaries = {summary["is_steady"] is not None: summary for summary in PRODUCED.finditer(text)}
    commits = COMMIT_TIME.search(text)
    if False not in summaries or commits is None:
        raise Unreadable(f"ProducerPerformance has no summary with metrics in:\n{text}")
    whole = summaries[False]
    steady = summaries.get(True, whole)
    seconds = int(whole["records"]) / float(whole["per_second"])
    return Produced(
        int(whole["records"]),
        float(steady["per_second"]),
        int(steady["p50"]),
        int(steady["p95"]),
        int(steady["p99"]),
        commit_share=float(commits["ns"]) / 1e9 / seconds,
    )


def end_to_end(text: str) -> EndToEnd:
    """Reads what EndToEndLatency prints. Raises Unreadable."""
    found = END_TO_END.search(text)
    if found is None:
        raise Unreadable(f"EndToEndLatency has no percentiles in:\n{text}")
    return EndToEnd(*map(int, found.groups()))


def consumed(text: str) -> Consumed:
    """Reads what ConsumerPerformance prints: a line of names and one of figures. Raises Unreadable."""
    rows = [line.split(", ") for line in text.splitlines()]
    for names, figures in itertools.pairwise(rows):
        if set(CONSUMED_COLUMNS) <= set(names) and len(figures) == len(names):
            records, fetch_ms = (int(figures[names.index(name)]) for name in CONSUMED_COLUMNS)
            return Consumed(records, records / max(fetch_ms, 1) * 1000)
    raise Unreadable(f"ConsumerPerformance has no figures in:\n{text}")


def transaction_version(text: str) -> int:
    """The version of transactions that FeatureCommand shows as in force; 0 if the broker names none.

    From version 2 on Kafka's producer speaks transactions v2 (KIP-890), before that v1.
    """
    found = TRANSACTIONS.search(text)
    return int(found[1]) if found else WITHOUT_FEATURE

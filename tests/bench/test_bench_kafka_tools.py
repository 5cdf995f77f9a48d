"""Kafka's own tools: what they print is read, and nothing is taken for a figure that is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.kafka_tools import tools as tools_module
from bench.kafka_tools.output import (
    Consumed,
    EndToEnd,
    Unreadable,
    consumed,
    end_to_end,
    produced,
    transaction_version,
)
from bench.kafka_tools.tools import Tools
from bench.measures import kafka_tools
from bench.measures.kafka_tools import Case, Work, consume, measure, produce
from bench.systems.cache import Unavailable
from bench.systems.system import high_water_bytes, memory_bytes, peak_memory_bytes

BALLAST_BYTES = 64 << 20

# As version 4.3.1 printed it; of the metrics some lines.
PRODUCED_IN_TRANSACTIONS = """\
Warmup first 80000 records. Steady state results will print after the complete test summary.
In steady state.
232322 records sent, 46464.4 records/sec (45.38 MB/sec), 8.6 ms avg latency, 35.0 ms max latency.
400000 records sent, 40000.000000 records/sec (39.06 MB/sec), 8.98 ms avg latency, 73.00 ms max latency, \
8 ms 50th, 18 ms 95th, 24 ms 99th, 34 ms 99.9th.
320000 steady state records sent, 47846.889952 records/sec (46.73 MB/sec), 8.38 ms avg latency, \
35.00 ms max latency, 7 ms 50th, 16 ms 95th, 22 ms 99th, 33 ms 99.9th.

Metric Name                                                                        Value
producer-metrics:txn-begin-time-ns-total:{client-id=perf-producer-client}        : 12061470.000
producer-metrics:txn-commit-time-ns-total:{client-id=perf-producer-client}       : 5898119040.000
producer-metrics:txn-init-time-ns-total:{client-id=perf-producer-client}         : 520947180.000
"""
PRODUCED_WITHOUT_WARM_UP = """\
4000 records sent, 2509.410289 records/sec (0.24 MB/sec), 12.40 ms avg latency, 335.00 ms max latency, \
5 ms 50th, 58 ms 95th, 96 ms 99th, 100 ms 99.9th.
producer-metrics:txn-commit-time-ns-total:{client-id=perf-producer-client}       : 0.000
"""
END_TO_END = """\
0\t221.510942
1000\t7.8455129999999995
Avg latency: 2.4347 ms
Percentiles: 50th = 1, 99th = 13, 99.9th = 34
"""
CONSUMED = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, \
fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-11-22 13:10:07:703, 2026-11-22 13:10:13:471, 390.6250, 67.7228, 400000, 69348.1276, 3748, 2000, \
193.3787, 198019.8020
"""
FEATURES = """\
Feature: streams.version      SupportedMinVersion: 0  SupportedMaxVersion: 1  \
FinalizedVersionLevel: 1  Epoch: 18
Feature: transaction.version  SupportedMinVersion: 0  SupportedMaxVersion: 3  \
FinalizedVersionLevel: 2  Epoch: 18
"""


def test_figures_of_a_producer_are_those_after_the_warm_up() -> None:
    found = produced(PRODUCED_IN_TRANSACTIONS)
    assert found.records == 400_000
    assert found.records_per_second == pytest.approx(47846.889952)
    assert (found.p50_ms, found.p95_ms, found.p99_ms) == (7, 16, 22)


def test_time_in_commits_is_a_share_of_the_whole_run() -> None:
    assert produced(PRODUCED_IN_TRANSACTIONS).commit_share == pytest.approx(0.5898119)
    assert produced(PRODUCED_WITHOUT_WARM_UP).commit_share == 0


def test_a_producer_without_a_warm_up() -> None:
    found = produced(PRODUCED_WITHOUT_WARM_UP)
    assert (found.records, found.p50_ms, found.p95_ms, found.p99_ms) == (4000, 5, 58, 96)


def test_end_to_end_is_read() -> None:
    assert end_to_end(END_TO_END) == EndToEnd(1, 13, 34)


def test_a_consumer_is_not_charged_with_the_begin_of_its_group() -> None:
    assert consumed(CONSUMED) == Consumed(400_000, 200_000.0)


def test_the_version_of_transactions_is_the_one_in_force() -> None:
    assert transaction_version(FEATURES) == 2
    assert transaction_version("") == 0


def test_what_has_no_figures_is_said() -> None:
    cut = PRODUCED_IN_TRANSACTIONS.partition("400000 records")[0]
    for read, text in (
        (produced, cut),
        (produced, PRODUCED_IN_TRANSACTIONS.replace("txn-commit", "other")),
        (end_to_end, "Avg latency: 2.4347 ms\n"),
        (consumed, CONSUMED.splitlines()[0]),
    ):
        with pytest.raises(Unreadable):
            read(text)


# -- the measure ---------------------------------------------------------------------------------------------


class Scripted(Tools):
    """Tools that print what the test says, and remember what they were asked."""

    def __init__(self, **printed: str) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._printed = printed

    def run(self, tool: str, *arguments: str) -> str:
        self.asked.append((tool, *arguments))
        return self._printed[tool]


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that the measure makes."""
    made: list[str] = []
    monkeypatch.setattr(kafka_tools, "make_topic", lambda _address, name, _partitions: made.append(name))
    return made


def test_who_loses_records_has_no_figures(topics: list[str]) -> None:
    tools = Scripted(ProducerPerformance=PRODUCED_WITHOUT_WARM_UP, ConsumerPerformance=CONSUMED)
    with pytest.raises(RuntimeError, match="4,000 of 4,001 records came through"):
        produce(tools, "broker:1", Case(5, 4001), "lossy")
    with pytest.raises(RuntimeError, match="400,000 of 399,999 records came through"):
        consume(tools, "broker:1", Case(5, 399_999))
    assert topics == ["lossy"]


def test_a_producer_is_asked_for_transactions_only_where_there_are_some(topics: list[str]) -> None:
    tools = Scripted(ProducerPerformance=PRODUCED_WITHOUT_WARM_UP)
    for case in (Case(5, 4000, per_second=2000), Case(0, 4000)):
        produce(tools, "broker:1", case, case.topic)
    paced, plain = tools.asked
    assert "--transaction-duration-ms 5" in " ".join(paced)
    assert "--throughput 2000" in " ".join(paced)
    assert "--transaction" not in " ".join(plain)
    assert "--throughput -1" in " ".join(plain)
    assert topics == ["tools-5-ms-2000-a-second", "tools-0-ms-unlimited"]


def test_without_the_tools_nothing_is_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tools_module, "java", lambda: Path("/usr/bin/java"))
    with pytest.raises(Unavailable, match="kafka-tools is not there: run `make fetch`"):
        measure(tmp_path, [], Work(Case(5, 1), [Case(5, 1)], 1), lambda _doing: None)


def test_the_peak_of_memory_is_what_linux_remembers() -> None:
    """Memory that is gone counts, and this process may get new pages between two looks at it."""
    ballast = b"x" * BALLAST_BYTES
    most = memory_bytes(os.getpid())
    del ballast
    now, peak = memory_bytes(os.getpid()), peak_memory_bytes(os.getpid())
    assert now < most - BALLAST_BYTES // 2 < peak < 1 << 40
    assert high_water_bytes("VmPeak:\t  9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t  7 kB\n") == 2 << 20
    assert high_water_bytes("Name:\tkthreadd\n") == 0

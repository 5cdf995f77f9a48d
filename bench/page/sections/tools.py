"""Kafka's own client: the figures that Kafka's own tools give for each broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.page.bars import bar_plot
from bench.page.document import Cell, Folded, Plot, Plots, Section, Table, number, system
from bench.page.numerals import MIB
from bench.page.palette import in_order
from bench.results import Results, ToolProduce, ToolTotals

TITLE = "A second client"
STEPS = ("tools",)
TEXT = [
    "All else on this page is measured with librdkafka. Here the client is Kafka's own, in the tools that "
    "Kafka has for this: ProducerPerformance, EndToEndLatency and ConsumerPerformance, with their defaults. "
    "If a broker has version 2 of transactions in force, the client speaks transactions v2 (KIP-890), "
    "otherwise v1.",
    "A latency is from the send of a record to its ack. It does not include the commit, since a record is "
    "acked before its transaction is committed. But the first records of a transaction wait for the "
    "unfinished work of the previous transaction. The share in commits is the part of the run that the "
    "producer spent in calls of commitTransaction, which also wait for the acks of the last records. The "
    "tools print whole milliseconds.",
]
LATENCY = (
    "At a rate that is far below what the systems can take; shorter is better. The client lets a record wait "
    "up to 5 ms until its batch is full, or its transaction is committed."
)
SPEED = (
    "As fast as the client can; longer is better. Bars of equal length mean that the client was the limit."
)
COSTS = "Of the broker's process, over all of the tools; shorter is better."
FIRST_VERSION_2 = 2

Figures = Mapping[str, list[float]]
Measure = Callable[[ToolTotals], float]


def tools(results: Results) -> Section:
    """Latencies at a slow pace, speeds, costs, and all figures in a fold."""
    runs: list[ToolProduce] = results.of(ToolProduce)
    totals: list[ToolTotals] = results.of(ToolTotals)
    names = in_order([*(run.system for run in runs), *(each.system for each in totals)])
    paced = [run for run in runs if run.offered_per_second]
    fast = [run for run in runs if not run.offered_per_second]
    if not names:
        return Section("tools", TITLE, TEXT, [], steps=STEPS)
    blocks: list[Table | Plots | Folded] = [
        Plots([*latency_plots(paced, "p50"), *latency_plots(paced, "p99")], LATENCY),
        Plots([*speed_plots(fast), read_plot(totals)], SPEED),
        Plots(cost_plots(totals), COSTS),
        totals_table(totals),
        Folded("All runs of ProducerPerformance", [runs_table(runs)]),
    ]
    return Section("tools", TITLE, TEXT, blocks, names, STEPS)


def of_cases(runs: list[ToolProduce], measure: Callable[[ToolProduce], float]) -> dict[int, Figures]:
    """For each duration of transactions, the figure of each system."""
    found: dict[int, Figures] = {}
    for transaction_ms in sorted({run.transaction_ms for run in runs}):
        by_system = {run.system: run for run in runs if run.transaction_ms == transaction_ms}
        found[transaction_ms] = {name: [measure(by_system[name])] for name in in_order(by_system)}
    return found


def latency_plots(runs: list[ToolProduce], percentile: str) -> list[Plot]:
    """Send to ack."""
    figures = of_cases(runs, lambda run: getattr(run, f"{percentile}_ms"))
    return [
        bar_plot(f"tools-{percentile}-{each}", f"Send to ack, {percentile}: {load_name(each)}", rounds, "ms")
        for each, rounds in figures.items()
    ]


def speed_plots(runs: list[ToolProduce]) -> list[Plot]:
    """A plot for each duration of transactions: MB/s produced, a bar for each round."""
    figures = of_cases(runs, lambda run: run.produced_bytes_per_second / 1e6)
    return [
        bar_plot(f"tools-speed-{each}", f"Produced: {load_name(each)}", rounds, "MB/s")
        for each, rounds in figures.items()
    ]


def read_plot(totals: list[ToolTotals]) -> Plot:
    """MB/s consumed."""
    return plot_of(totals, "tools-read", "Consumed", "MB/s", lambda row: row.consumed_bytes_per_second / 1e6)


def cost_plots(totals: list[ToolTotals]) -> list[Plot]:
    """The broker's CPU and peak memory."""
    return [
        plot_of(totals, "tools-cpu", "CPU of the broker", "seconds", lambda row: row.cpu_seconds),
        plot_of(totals, "tools-memory", "Memory, peak", "MiB", lambda row: row.peak_memory_bytes / MIB),
    ]


def plot_of(totals: list[ToolTotals], name: str, title: str, unit: str, measure: Measure) -> Plot:
    """One measure of all tools together, a bar for each system."""
    by_system = {row.system: row for row in totals}
    return bar_plot(name, title, {each: [measure(by_system[each])] for each in in_order(by_system)}, unit)


def load_name(transaction_ms: int) -> str:
    """A duration of transactions as a title names it."""
    return f"transactions of {transaction_ms} ms" if transaction_ms else "no transactions"


def totals_table(totals: list[ToolTotals]) -> Table:
    """Delivery, speed of reading and cost, a line for each system."""
    columns = [
        "System", "Transactions", "Delivery p50, ms", "p99", "p99.9", "Consumed, MB/s", "CPU s",
        "Peak memory, MiB", "Version of the tools",
    ]  # fmt: skip
    caption = (
        "Delivery is of one plain record at a time, from its send. Records of transactions are consumed with "
        "read_committed. CPU is without the start and the warm-up, memory with both."
    )
    by_system = {row.system: row for row in totals}
    return Table(caption, columns, [totals_line(by_system[name]) for name in in_order(by_system)])


def totals_line(row: ToolTotals) -> list[Cell]:
    """One system."""
    protocol = "v2" if row.transaction_version >= FIRST_VERSION_2 else "v1"
    delivery = (row.delivery_p50_ms, row.delivery_p99_ms, row.delivery_p999_ms)
    figures = (row.consumed_bytes_per_second / 1e6, row.cpu_seconds, row.peak_memory_bytes / MIB)
    version = Cell(row.tools_version)
    return [system(row.system), Cell(protocol), *map(whole, delivery), *map(number, figures), version]


def whole(value: int) -> Cell:
    """As many digits as were measured."""
    return Cell(f"{value:,}", "number")


def runs_table(runs: list[ToolProduce]) -> Table:
    """All runs of ProducerPerformance, by case."""
    columns = [
        "Transactions of, ms", "Records/s offered", "System", "Produced, MB/s", "Send to ack p50, ms", "p95",
        "p99", "In commits, % of the run",
    ]  # fmt: skip
    order = in_order(run.system for run in runs)
    by_case = sorted(runs, key=lambda run: order.index(run.system))
    by_case.sort(key=lambda run: (run.transaction_ms, run.offered_per_second))
    caption = "Without a limit on the records a second, latency is that of the client's own full queue."
    return Table(caption, columns, [run_line(run) for run in by_case])


def run_line(run: ToolProduce) -> list[Cell]:
    """One run."""
    duration = whole(run.transaction_ms) if run.transaction_ms else Cell("none", "number")
    offered = whole(run.offered_per_second) if run.offered_per_second else Cell("all", "number")
    produced, in_commits = number(run.produced_bytes_per_second / 1e6), number(100 * run.commit_share)
    latencies = map(whole, (run.p50_ms, run.p95_ms, run.p99_ms))
    return [duration, offered, system(run.system), produced, *latencies, in_commits]

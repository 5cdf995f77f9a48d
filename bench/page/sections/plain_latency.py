"""Latency of plain messages."""

from __future__ import annotations

from bench.page.document import Plot, Plots, Section
from bench.page.palette import in_order
from bench.page.percentiles import percentile_plot
from bench.results import PlainLatency, Results

CAPTION = (
    "A system whose transactions are fast and whose plain messages are slow would have made the wrong trade."
)


def plain_latency(results: Results) -> Section:
    """Send to ack and send to delivery, without transactions."""
    rows: dict[str, PlainLatency] = {row.system: row for row in results.of(PlainLatency)}
    names = in_order(rows)
    return Section(
        "plain-latency",
        "Latency of plain messages",
        ["One message at a time, without a transaction: the latency without any commit protocol."],
        [Plots(plots([rows[name] for name in names]), CAPTION)] if names else [],
        names,
        ("latency", "systems", "system"),
    )


def plots(rows: list[PlainLatency]) -> list[Plot]:
    """One for acks and one for deliveries."""
    acks = {row.system: row.send_to_ack for row in rows}
    deliveries = {row.system: row.end_to_end for row in rows}
    return [
        percentile_plot("plain-ack", "Send to ack", acks, ""),
        percentile_plot("plain-delivery", "Send to delivery", deliveries, ""),
    ]

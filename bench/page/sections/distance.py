"""The model's figures for other distances and disks, and how they fit the measured ones."""

from __future__ import annotations

from collections.abc import Iterable

from bench.page.document import Cell, Folded, Plot, Plots, Section, Stack, Table, number, system
from bench.page.lines import line_plot
from bench.page.numerals import counted, significant
from bench.page.palette import in_order
from bench.page.winners import DistanceCase, Ranked, ranking, winners
from bench.results import Checked, Distance, Results

TEXT = [
    "A model of each protocol's messages and durable writes, run on a virtual clock. Client, coordinator and "
    "the leader of each partition are on nodes of their own, all one round trip (RTT) apart. A durable write "
    "takes W, those of several files go on side by side; a node works on its messages one after the other, p "
    "on each. N is the number of partitions. Replicated, a durable write also waits for a follower: W + RTT.",
    "The last message is sent right before commit is called. The partitions are registered before that, "
    "which takes 2 RTT with local-copy and parallel-prepare (leaders are told), RTT + W with markers, RTT "
    "with remote-copy and none, which has the same requests without a transaction.",
    "Not in the model: bytes, so remote-copy's second crossing of all data, through the one coordinator, is "
    "free here; the wait for older open transactions of the same partition, and that of a producer's next "
    "transaction for the markers, both with markers and parallel-prepare; queues and retries.",
]
PARTITIONS_AT_FIRST = 4
# From here on the tint is strong: one takes half again as long as the other.
STRONG = 1.5
LEVEL = 1.02


def distance(results: Results) -> Section:
    """Formulas, who wins where, curves, and the model beside the measurement."""
    rows: list[Distance] = results.of(Distance)
    checked: list[Checked] = results.of(Checked)
    blocks = [formulas(rows), curves(rows), *win_tables(rows)] if rows else []
    if checked:
        blocks.insert(0, check_table(checked))
    names = in_order(row.protocol for row in rows)
    return Section("distance", "Distance", TEXT, blocks, names, ("distance", "model"))


# -- compared with the measurement ---------------------------------------------------------------------------


def check_table(checked: list[Checked]) -> Table:
    """The model with the floors of this run, beside the measured figures."""
    columns = [
        "Protocol", "Flushed before", "Partitions", "Formula, one broker", "RTT, ms", "W, ms", "Model, ms",
        "Measured p50, ms", "Measured / model",
    ]  # fmt: skip
    order = in_order(row.protocol for row in checked)
    ordered = sorted(checked, key=lambda row: (row.partitions, row.is_flushed, order.index(row.protocol)))
    caption = (
        "The model with this run's floors, beside this run. On one broker nothing lies between coordinator "
        "and leaders. The call of commit holds the client library's timer of 1 ms (T) before it registers "
        "partitions, what is left to wait for the markers of the transaction before (M), and F turns of "
        "messages, five requests each. Where it was flushed before, the commit alone is left. W is a durable "
        "write of as many files as the protocol has at once. The work of processors is not in the model: "
        "what is measured beyond it is that."
    )
    return Table(caption, columns, [check_line(row) for row in ordered])


def check_line(row: Checked) -> list[Cell]:
    """One protocol in one case."""
    figures = (row.round_trip_ms, row.durable_write_ms, row.commit_model_ms, row.commit_measured_ms)
    ratio = row.commit_measured_ms / row.commit_model_ms if row.commit_model_ms else None
    partitions = Cell(f"{row.partitions}", "number")
    case = [system(row.protocol), yes_or_no(row.is_flushed), partitions, Cell(row.formula, "formula")]
    return [*case, *map(number, figures), number(ratio)]


def yes_or_no(value: bool) -> Cell:
    """A cell with yes or no."""
    return Cell("yes" if value else "no")


# -- the model -----------------------------------------------------------------------------------------------


def formulas(rows: list[Distance]) -> Table:
    """Each protocol's terms, without replicas and with them."""
    order = in_order(row.protocol for row in rows)
    found = {(row.is_replicated, order.index(row.protocol)): row for row in rows}
    processing_ms = rows[0].processing_ms
    caption = (
        "From the call of commit to its ack, and to the moment when a consumer has the messages. The "
        f"simulation is tested against these sums. Here p is {processing_ms:g} ms."
    )
    columns = ["Protocol", "Replicated", "Commit call to ack", "Commit call to visible"]
    return Table(caption, columns, [formula_line(row) for _, row in sorted(found.items())])


def formula_line(row: Distance) -> list[Cell]:
    """The latencies of a protocol, as formulas."""
    terms = (Cell(formula, "formula") for formula in (row.commit_formula, row.visible_formula))
    return [system(row.protocol), yes_or_no(row.is_replicated), *terms]


def curves(rows: list[Distance]) -> Plots:
    """Commit over the round trip, for the middle one of the disks."""
    disks = sorted({row.durable_write_ms for row in rows})
    write_ms = disks[len(disks) // 2]
    partitions = at_first(rows)
    found = [row for row in rows if (row.durable_write_ms, row.partitions) == (write_ms, partitions)]
    titles = {False: "Commit over distance", True: "Commit over distance, replicated"}
    plots = [curve(found, is_replicated, title) for is_replicated, title in titles.items()]
    return Plots(
        [plot for plot in plots if plot is not None],
        f"The model for {counted(partitions, 'partition')} and durable writes of {significant(write_ms)} ms. "
        "On the left of a curve the disk counts, on its right the number of round trips.",
    )


def curve(rows: list[Distance], is_replicated: bool, title: str) -> Plot | None:
    """Time of a commit over the round trip between brokers; None without rows."""
    drawn = [row for row in rows if row.is_replicated == is_replicated]
    if not drawn:
        return None
    ordered = {
        name: sorted((row.round_trip_ms, row.commit_ms) for row in drawn if row.protocol == name)
        for name in in_order(row.protocol for row in drawn)
    }
    name = f"distance-{'replicated' if is_replicated else 'single'}"
    labels = ("round trip, ms", "commit call to ack, ms")
    return line_plot(name, title, ordered, labels, logarithmic_axes="xy", show_x="{:g}".format)


def at_first(rows: list[Distance]) -> int:
    """The number of partitions that is shown unfolded."""
    counts = {row.partitions for row in rows}
    return PARTITIONS_AT_FIRST if PARTITIONS_AT_FIRST in counts else min(counts)


# -- who wins where ------------------------------------------------------------------------------------------


def win_tables(rows: list[Distance]) -> list[Table | Folded]:
    """Tables for the first number of partitions, and for the others in a fold."""
    first = at_first(rows)
    others = sorted({row.partitions for row in rows} - {first})
    folded = [Folded(f"Who wins with {counted(each, 'partition')}", tables_at(rows, each)) for each in others]
    return [*tables_at(rows, first), *folded]


def tables_at(rows: list[Distance], partitions: int) -> list[Table]:
    """By commit and by visibility, without and with replicas."""
    return [
        table
        for is_replicated in (False, True)
        for by_visible in (False, True)
        if (table := win_table(rows, partitions, is_replicated, by_visible)) is not None
    ]


def win_table(rows: list[Distance], partitions: int, is_replicated: bool, by_visible: bool) -> Table | None:
    """Which protocol is fastest at each round trip and disk; None without rows."""
    ranked = {
        case: found
        for case, found in ranking(rows, by_visible=by_visible).items()
        if (case.is_replicated, case.partitions) == (is_replicated, partitions)
    }
    if not ranked:
        return None
    disks = sorted({case.durable_write_ms for case in ranked})
    trips = sorted({case.round_trip_ms for case in ranked})
    lines = [
        [Cell(f"{trip:g} ms", "heading"), *cells_at(ranked, is_replicated, trip, disks, partitions)]
        for trip in trips
    ]
    what = "until the messages are visible" if by_visible else "until the commit is acked"
    caption = (
        f"Milliseconds {what}, {counted(partitions, 'partition')}, "
        f"{'replicated' if is_replicated else 'not replicated'}. The fastest is first. Tint: local-copy "
        "against markers, blue where local-copy is faster and orange where it is slower."
    )
    return Table(caption, ["RTT", *(f"W = {disk:g} ms" for disk in disks)], lines)


def cells_at(
    ranked: dict[DistanceCase, list[Ranked]],
    is_replicated: bool,
    trip: float,
    disks: Iterable[float],
    partitions: int,
) -> list[Cell | Stack]:
    """One row of a table."""
    cases = (DistanceCase(is_replicated, trip, disk, partitions) for disk in disks)
    return [stack(ranked[case]) if case in ranked else number(None) for case in cases]


def stack(ranked: list[Ranked]) -> Stack:
    """All protocols, the winners in bold."""
    best = {each.protocol for each in winners(ranked)}
    return Stack(
        [
            Cell(
                f"{each.protocol} {significant(each.milliseconds)}",
                "heading" if each.protocol in best else "quiet",
                each.protocol,
            )
            for each in ranked
        ],
        tint(ranked),
    )


def tint(ranked: list[Ranked]) -> str:
    """Whether local-copy is ahead of markers, behind it, or level, and whether by much."""
    times = {each.protocol: each.milliseconds for each in ranked}
    if not {"local-copy", "markers"} <= times.keys():
        return ""
    ratio = times["markers"] / times["local-copy"]
    if max(ratio, 1 / ratio) < LEVEL:
        return ""
    strength = "much-" if max(ratio, 1 / ratio) >= STRONG else ""
    return strength + ("ahead" if ratio > 1 else "behind")

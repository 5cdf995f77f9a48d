"""Several brokers that keep the same messages, and one beside them."""

from __future__ import annotations

from bench.page.document import Cell, Section, Table, number, system
from bench.page.numerals import MIB
from bench.page.set_figures import cpu_of, lines, set_systems
from bench.results import Results, SetMessages

TEXT = [
    "A replica set of faircopy has a leader and two followers; an ack waits until the message or the commit "
    "is fsynced in all three. The set of Kafka has three brokers, which are also its controllers; an ack "
    "waits for the replicas in sync, at least two, and none of them fsyncs first. So the two do not promise "
    "the same: Kafka's message is in the memory of two or three machines, faircopy's on three disks. The "
    "single broker shows what the replicas cost.",
    "All processes share one machine and one disk: their fsyncs wait for each other, and they share its "
    "cores, which on three machines they would not.",
]
COSTS = (
    "CPU is that of plain messages at full speed. Memory is the most that a process ever had, over warm-up "
    "and all loads. Kafka's processes have a heap of half a GiB each."
)


def replica_sets(results: Results) -> Section:
    """A table of all figures, and one of what each process costs."""
    names = set_systems(results)
    blocks = [figures_table(results, names), costs_table(results, names)] if names else []
    return Section("replica-sets", "Replica sets", TEXT, blocks, names, ("sets",))


def figures_table(results: Results, names: list[str]) -> Table:
    """A row for each figure, a column for each system."""
    rows = [
        [Cell(line.figure, "heading"), Cell(line.unit, "quiet"), *map(number, line.values)]
        for line in lines(results)
    ]
    return Table(
        "Latencies are of all rounds together, other figures medians of rounds.",
        ["Figure", "Unit", *names],
        rows,
    )


def costs_table(results: Results, names: list[str]) -> Table:
    """A row for each process."""
    found: dict[str, SetMessages] = {row.system: row for row in results.of(SetMessages)}
    rows = [
        [system(name), Cell(role), number(cpu), number(memory / MIB)]
        for name in names
        for (role, memory), cpu in zip(
            found[name].peak_memory_bytes.items(), cpu_of(found[name]), strict=True
        )
    ]
    return Table(COSTS, ["System", "Process", "CPU s for a GB", "Peak memory, MiB"], rows)

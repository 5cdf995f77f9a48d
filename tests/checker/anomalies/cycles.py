"""One order of transactions: of their writes and reads, and of each group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from tests.checker.anomalies.words import listed, name_of
from tests.checker.facts import Facts
from tests.checker.history import Value

Edges = dict[int, set[int]]  # transaction -> the transactions before it


def write_cycles(facts: Facts) -> Iterator[str]:
    """Transactions have the same order in all partitions, each in one piece."""
    if cycle := cycle_of(write_edges(facts)):
        names = listed(name_of(facts, number) for number in cycle)
        yield f"each stands before the next in some partition: {names}"


def read_cycles(facts: Facts) -> Iterator[str]:
    """No transaction reads, directly or not, from a later one.

    Cycles of writes alone count as write cycles.
    """
    writes = write_edges(facts)
    if cycle_of(writes):
        return
    edges = {number: set(before) for number, before in writes.items()}
    for number, transaction in enumerate(facts.transactions):
        for read in transaction.reads:
            writer = facts.writer.get(read.value)
            if writer is not None and writer != number:
                edges.setdefault(number, set()).add(writer)
    if cycle := cycle_of(edges):
        names = listed(name_of(facts, number) for number in cycle)
        yield f"each is read by the next, or stands before it: {names}"


def group_orders(facts: Facts) -> Iterator[str]:
    """The transactions of a group have the same order in all partitions (P5)."""
    edges: dict[str, Edges] = defaultdict(dict)
    for order in facts.order.values():
        last: dict[str, int] = {}
        for number in runs(facts, order):
            group = facts.transactions[number].group
            if group is None:
                continue
            if group in last and last[group] != number:
                edges[group].setdefault(number, set()).add(last[group])
            last[group] = number
    for group, of_group in edges.items():
        if cycle := cycle_of(of_group):
            yield f"group {group!r}: {listed(name_of(facts, number) for number in cycle)}"


def write_edges(facts: Facts) -> Edges:
    edges: Edges = {}
    for order in facts.order.values():
        before: int | None = None
        for number in runs(facts, order):
            if before is not None:
                edges.setdefault(number, set()).add(before)
            before = number
    return edges


def runs(facts: Facts, order: list[Value]) -> Iterator[int]:
    """The transactions of a partition's values, each once for every contiguous piece."""
    last: int | None = None
    for value in order:
        number = facts.writer.get(value)
        if number is not None and number != last:
            yield number
            last = number


def cycle_of(edges: Edges) -> list[int]:
    """A cycle, if there is one."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []

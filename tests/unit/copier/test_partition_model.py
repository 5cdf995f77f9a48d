"""A partition on real files against a dumb model of what should be visible."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircopy.journal.entry import TransactionId
from faircopy.journal.options import Durability
from tests.many import many
from tests.unit.copier.partition_bench import PartitionBench, run

STEPS = many(
    st.one_of(
        st.tuples(st.just("plain"), st.integers(1, 3), st.integers(1, 3000)),
        st.tuples(st.just("draft"), st.integers(0, 3), st.integers(1, 3000)),
        st.tuples(st.just("commit"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("abort"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("checkpoint"), st.booleans(), st.booleans()),
        st.tuples(st.just("restart"), st.booleans(), st.booleans()),
    ),
    40,
)


class Model:
    """What should be visible, by the shortest road: lists of values."""

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self.open: dict[int, list[bytes]] = {}
        self.numbers = dict.fromkeys(range(4), 1)
        self.sequences = dict.fromkeys(range(4), 0)
        self.written = 0

    def value(self, size: int) -> bytes:
        self.written += 1
        return b"%d:" % self.written + b"x" * size

    def transaction(self, owner: int) -> TransactionId:
        return TransactionId(owner, 0, self.numbers[owner])


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, durability=st.sampled_from(Durability), recent_bytes=st.sampled_from([0, 4_000, 1 << 20]))
def test_what_is_visible_is_what_the_model_says(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int, int]],
    durability: Durability,
    recent_bytes: int,
) -> None:
    async def test(bench: PartitionBench) -> None:
        model = Model()
        for step in steps:
            await carry_out(step, bench, model)
        assert await bench.visible() == model.log
        bench.restart()
        assert await bench.visible() == model.log

    run(tmp_path_factory.mktemp("partition"), test, durability=durability, recent_bytes=recent_bytes)


async def carry_out(step: tuple[str, int, int], bench: PartitionBench, model: Model) -> None:
    kind, first, second = step
    match kind:
        case "plain":
            values = [model.value(second) for _ in range(first)]
            assert await bench.plain(*values) == len(model.log)
            model.log += values
        case "draft":
            value = model.value(second)
            await bench.draft(model.transaction(first), model.sequences[first], value)
            model.sequences[first] += 1
            model.open.setdefault(first, []).append(value)
        case "commit" if first in model.open:
            transaction = model.transaction(first)
            await bench.prepare(transaction)
            if second:
                bench.restart()
            await bench.apply(transaction, finished=transaction.number - 1)
            model.log += model.open.pop(first)
            model.numbers[first] += 1
        case "abort" if first in model.open:
            transaction = model.transaction(first)
            if second:
                await bench.prepare(transaction)
            await bench.discard(transaction, finished=transaction.number - 1)
            del model.open[first]
            model.numbers[first] += 1
        case "checkpoint":
            await bench.partition.checkpoint()
            if second:
                bench.restart()
        case "restart":
            bench.restart()
            assert await bench.visible() == model.log

"""The coordinator's table against a dumb model, and its way through a checkpoint."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.copier.fold import NO_FENCE
from faircopy.errors import InvariantViolation
from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from faircopy.transactions import decisions
from faircopy.transactions.decisions import TransactionRefused, prepare_abort
from faircopy.transactions.metadata_entry import decode, encode
from faircopy.transactions.metadata_journal import decode_producer, encode_producer
from faircopy.transactions.order import GroupOrder
from faircopy.transactions.state import TRANSITIONS, TransactionState
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.timeouts import idle
from faircopy.transactions.transaction import MAX_EPOCH, NewEntry, Producer, group_of
from faircopy.wire.error_codes import ErrorCode
from tests.many import many
from tests.unit.transactions.names import participant

IDS = ("orders/a", "orders/b", "payments")
PARTITIONS = [participant(n) for n in range(3)]


class Bench:
    """A table whose entries go through their bytes, as in a journal."""

    def __init__(self) -> None:
        self.table = TransactionTable()
        self.position = 0
        self.number = 0

    def append(self, *entries: NewEntry) -> None:
        for entry in entries:
            self.position += 64
            self.table.fold(entry._replace(payload=decode(encode(entry.payload))), self.position)

    def fence(self, name: str, producer_id: int, epoch: int) -> None:
        self.append(decisions.fence(name, producer_id, epoch, 60_000, 1_000))

    def add(self, name: str) -> TransactionId:
        self.number += 1
        producer = self.table.producers[name]
        self.append(
            *decisions.add(producer, dict.fromkeys(PARTITIONS[: self.number % 3 + 1], 1), self.number, 1_000)
        )
        assert producer.current is not None
        return producer.current.id

    def end(self, producer: Producer, *, commit: bool) -> None:
        decided = decisions.end(producer, 0, commit=commit)
        assert decided is not None
        self.append(decided)

    def finish(self, transaction: TransactionId) -> None:
        is_commit = self.table.transactions[transaction].state is TransactionState.PREPARE_COMMIT
        self.append(NewEntry(Kind.COMMITTED if is_commit else Kind.ABORTED, transaction, {}))


STEPS = many(
    st.tuples(st.sampled_from(["init", "add", "commit", "abort", "finish", "sleep"]), st.sampled_from(IDS)),
    60,
)


@given(STEPS)
def test_the_table_does_what_a_dumb_model_does(steps: list[tuple[str, str]]) -> None:
    bench = Bench()
    epochs: dict[str, int] = {}
    is_open: dict[str, bool] = {}
    ending: dict[str, list[TransactionId]] = {}
    outcome: dict[str, str] = {}
    for step, name in steps:
        producer = bench.table.producers.get(name)
        if step == "sleep":
            bench.table.producers.sleep(undurable=())
        elif step == "init":
            if is_open.get(name):
                assert producer is not None
                assert producer.current is not None
                ending.setdefault(name, []).append(producer.current.id)
                is_open[name], outcome[name] = False, "abort"
            epochs[name] = epochs.get(name, -1) + 1
            bench.fence(name, IDS.index(name), epochs[name])
        elif producer is None:
            with pytest.raises(TransactionRefused):
                decisions.newest_producer(bench.table, name, 0, 0, ErrorCode.PRODUCER_FENCED)
        elif step == "add":
            bench.add(name)
            is_open[name] = True
        elif step in ("commit", "abort"):
            if is_open.get(name):
                assert producer.current is not None
                ending.setdefault(name, []).append(producer.current.id)
                bench.end(producer, commit=step == "commit")
                is_open[name], outcome[name] = False, step
            elif outcome.get(name) == step:
                assert decisions.end(producer, 0, commit=step == "commit") is None
            else:
                with pytest.raises(TransactionRefused):
                    decisions.end(producer, 0, commit=step == "commit")
        elif ending.get(name):
            bench.finish(ending[name].pop(0))
        if producer is not None:
            assert (producer.current is not None) == is_open.get(name, False)
            assert list(producer.ending) == ending.get(name, [])
            assert producer.epoch == epochs[name]
    for producer in bench.table.producers.values():
        stored = json.loads(json.dumps(encode_producer(producer)))
        assert encode_producer(decode_producer(stored)) == encode_producer(producer)


def test_a_zombie_is_told_which_epoch_is_the_newest() -> None:
    bench = Bench()
    bench.fence("orders/a", 1, 0)
    bench.fence("orders/a", 1, 1)
    with pytest.raises(TransactionRefused, match="fenced; the newest is 1") as caught:
        decisions.newest_producer(bench.table, "orders/a", 1, 0, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("state", [None, *TransactionState])
@pytest.mark.parametrize(
    "kind", [Kind.ADD, Kind.PREPARE_COMMIT, Kind.PREPARE_ABORT, Kind.COMMITTED, Kind.ABORTED]
)
def test_only_the_transitions_of_the_table_are_taken(state: TransactionState | None, kind: Kind) -> None:
    bench = Bench()
    bench.fence("orders/a", 1, 0)
    transaction = bench.add("orders/a")
    payload = {"partitions": [], "fence": 0}
    if state is None or (state, kind) in TRANSITIONS:
        return
    bench.table.transactions[transaction].state = state
    with pytest.raises(InvariantViolation):
        bench.append(NewEntry(kind, transaction, payload))


def test_who_was_not_told_of_an_abort_gets_nothing_done_until_it_aborts() -> None:
    bench = Bench()
    table = bench.table
    bench.fence("orders/a", 1, 0)
    transaction = table.transactions[bench.add("orders/a")]
    bench.append(prepare_abort(transaction, NO_FENCE, untold=True))
    producer = table.producers["orders/a"]
    bench.finish(transaction.id)
    producer = decode_producer(json.loads(json.dumps(encode_producer(producer))))
    for refused in (
        lambda: decisions.add(producer, dict.fromkeys(PARTITIONS, 1), 9, 0),
        lambda: decisions.end(producer, 0, commit=True),
    ):
        with pytest.raises(TransactionRefused) as caught:
            refused()
        assert caught.value.code is ErrorCode.TRANSACTION_ABORTABLE
    bench.end(producer, commit=False)
    assert not table.producers["orders/a"].must_abort
    assert decisions.end(table.producers["orders/a"], 0, commit=False) is None, (
        "repeated: its answer was lost"
    )
    assert bench.add("orders/a").producer_epoch == 0


@pytest.mark.parametrize(("producer_id", "epoch", "fence_epoch"), [(1, 1, 1), (2, 0, MAX_EPOCH + 1)])
def test_a_fence_aborts_what_is_open(producer_id: int, epoch: int, fence_epoch: int) -> None:
    """With two entries, a crash between them aborted a transaction but did not fence or tell its producer."""
    bench = Bench()
    bench.fence("orders/a", 1, 0)
    transaction = bench.table.transactions[bench.add("orders/a")]
    bench.fence("orders/a", producer_id, epoch)
    producer = bench.table.producers["orders/a"]
    assert producer.current is None
    assert not producer.must_abort
    assert producer.ending == {transaction.id: transaction}
    assert (transaction.state, transaction.fence_epoch) == (TransactionState.PREPARE_ABORT, fence_epoch)
    bench.finish(transaction.id)
    assert producer.state_name == "CompleteAbort" or producer_id != 1


def test_using_an_id_keeps_it_from_being_forgotten() -> None:
    """Also one that has never begun a transaction, and after a checkpoint and a restart."""
    bench = Bench()
    bench.append(decisions.fence("orders/a", 1, 0, 60_000, now_ms=5_000))
    stored = json.loads(json.dumps(encode_producer(bench.table.producers["orders/a"])))
    bench.table.producers["orders/a"] = decode_producer(stored)
    assert not idle(bench.table, now_ms=6_000, idle_ms=1_000)
    assert idle(bench.table, now_ms=6_001, idle_ms=1_000) == [bench.table.producers["orders/a"]]


def test_after_a_loss_of_power_a_commit_can_be_anyones() -> None:
    """It may be the last transaction's, repeated, or a lost one's: it is neither acked nor called aborted."""
    bench = Bench()
    for name, end in (("orders/a", "commit"), ("orders/b", "abort"), ("payments", None)):
        bench.fence(name, IDS.index(name), 0)
        if end is not None:
            transaction = bench.add(name)
            bench.end(bench.table.producers[name], commit=end == "commit")
            bench.finish(transaction)
    bench.append(NewEntry(Kind.UNCLEAN, NO_TRANSACTION, {"all": True}))
    codes = []
    for name in IDS:
        with pytest.raises(TransactionRefused) as caught:
            decisions.end(bench.table.producers[name], 0, commit=True)
        codes.append(caught.value.code)
    abortable = ErrorCode.TRANSACTION_ABORTABLE
    assert codes == [ErrorCode.INVALID_TXN_STATE, abortable, abortable]
    for name in IDS:
        producer = bench.table.producers[name]
        bench.end(producer, commit=False)
        assert decisions.end(producer, 0, commit=False) is None, "an abort that is repeated is no error"


def test_the_end_of_an_older_transaction_is_not_taken_for_that_of_the_newest() -> None:
    """The next one may begin, and be aborted, while the last one is being copied."""
    bench = Bench()
    bench.fence("orders/a", 1, 0)
    producer = bench.table.producers["orders/a"]
    older = bench.add("orders/a")
    bench.end(producer, commit=True)
    newer = bench.add("orders/a")
    bench.end(producer, commit=False)
    bench.finish(newer)
    bench.finish(older)
    assert decisions.end(producer, 0, commit=False) is None
    with pytest.raises(TransactionRefused):
        decisions.end(producer, 0, commit=True)


def test_the_group_is_the_part_before_the_slash() -> None:
    assert group_of("orders/worker-3") == "orders"
    assert group_of("orders") == "orders"
    assert group_of("a/b/c") == "a"


@given(st.permutations(range(6)), st.lists(st.booleans(), min_size=6, max_size=6))
def test_a_group_is_released_in_the_order_of_its_decisions(
    durable: list[int], same_group: list[bool]
) -> None:
    """P5: whatever the order in which decisions become durable."""
    order = GroupOrder()
    groups = ["g" if same else "h" for same in same_group]
    for number, group in enumerate(groups):
        order.decided(group, TransactionId(0, 0, number))
    released: list[tuple[str, int]] = []
    for number in durable:
        released += [
            (groups[number], txid.number)
            for txid in order.durable(groups[number], TransactionId(0, 0, number))
        ]
    for group in ("g", "h"):
        numbers = [number for name, number in released if name == group]
        assert numbers == [number for number in range(6) if groups[number] == group]

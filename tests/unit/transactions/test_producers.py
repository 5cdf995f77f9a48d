"""Producers that sleep are what they were, take little room, and are missed by nobody."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.api.list_transactions import producers as listed
from faircopy.journal.entry import NO_TRANSACTION, Kind
from faircopy.storage.epoch_history import NO_EPOCHS, Epochs
from faircopy.storage.state_store import Change, Put
from faircopy.transactions import decisions
from faircopy.transactions.metadata_entry import encode
from faircopy.transactions.metadata_journal import (
    MetadataJournal,
    decode_producer,
    encode_producer,
)
from faircopy.transactions.producers import IDLE, LAST_STATES, Producers, idle_row, read_idle_row
from faircopy.transactions.state import TransactionState
from faircopy.transactions.timeouts import idle
from faircopy.transactions.transaction import NewEntry, Producer
from tests.unit.transactions.names import participant

INT64 = st.integers(-1, (1 << 63) - 1)
INT16 = st.integers(-1, (1 << 15) - 1)


@st.composite
def idle_producers(draw: st.DrawFn) -> Producer:
    """Any producer that is idle."""
    producer = Producer("orders/a", draw(INT64), draw(INT16), draw(INT64))
    producer.previous_epoch, producer.last_number, producer.updated_ms = draw(INT16), draw(INT64), draw(INT64)
    producer.must_abort, producer.is_durable = draw(st.booleans()), draw(st.booleans())
    producer.last_state = draw(st.sampled_from([None, *TransactionState]))
    return producer


class StubStore:
    """A state store in memory."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}

    async def write(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Put) and change.table == "transactional_ids":
                self.rows[change.key] = change.value

    def get(self, _table: str, _key: bytes) -> bytes:
        return b'{"position": 0}'

    def scan(self, table: str, _prefix: bytes) -> list[tuple[bytes, bytes]]:
        return list(self.rows.items()) if table == "transactional_ids" else []


class StubJournal:
    """A journal of which only the `tail` is kept; `meanwhile` is called while it is synced."""

    def __init__(self) -> None:
        self.watermarks = SimpleNamespace(appended=1)
        self.meanwhile: Callable[[], None] = lambda: None
        self.tail: list[NewEntry] = []

    async def sync(self) -> None:
        self.meanwhile()

    def reclaim(self, _position: int) -> tuple[()]:
        return ()

    def epochs_below(self, _position: int) -> Epochs:
        return NO_EPOCHS

    def open(self, _position: int, _epochs: Epochs) -> SimpleNamespace:
        return SimpleNamespace(entries=self._entries, judge_end=lambda: None)

    def _entries(self) -> Iterator[SimpleNamespace]:
        for entry in self.tail:
            named = SimpleNamespace(kind=entry.kind, transaction=entry.transaction, position=0)
            yield SimpleNamespace(entry=named, payload=encode(entry.payload))

    def ensure_leads(self, _opening: SimpleNamespace) -> None:
        pass

    def accept(self, _opening: SimpleNamespace) -> None:
        pass


class Bench:
    """A metadata journal with an id for each name, whose transactions have committed."""

    def __init__(self, *names: str, store: StubStore | None = None) -> None:
        self.store, self.journal = store or StubStore(), StubJournal()
        self.home = MetadataJournal(0, cast(Any, self.journal), cast(Any, self.store), cast(Any, None))
        self.table = self.home.table
        self.producers = self.table.producers
        for number, name in enumerate(names):
            self.fold(decisions.fence(name, number, 0, 60_000, now_ms=number))
            self.commit(name)

    def fold(self, *entries: NewEntry) -> None:
        for entry in entries:
            self.table.fold(entry, 0)

    def begin(self, name: str) -> Producer:
        producer = self.producers[name]
        number = producer.last_number + 1
        self.fold(*decisions.add(producer, {participant(0): 1}, number, producer.updated_ms))
        return producer

    def commit(self, name: str) -> None:
        producer = self.begin(name)
        assert producer.current is not None
        transaction = producer.current
        self.fold(decisions.prepare_commit(transaction), NewEntry(Kind.COMMITTED, transaction.id, {}))

    def checkpoint(self) -> None:
        self.journal.watermarks.appended += 1
        asyncio.run(self.home.checkpoint())

    def recovered(self, *tail: NewEntry) -> Bench:
        """What the next start makes of the last checkpoint and of these entries."""
        bench = Bench(store=self.store)
        bench.journal.tail += tail
        bench.home.open()
        return bench

    @property
    def asleep(self) -> set[str]:
        return set(self.producers) - self.producers.awake.keys()


@given(idle_producers())
def test_nothing_of_a_producer_is_lost_while_it_sleeps(producer: Producer) -> None:
    row = encode_producer(producer)
    producers = Producers()
    producers["orders/a"] = decode_producer(json.loads(json.dumps(row)))
    producers.sleep(undurable=())
    assert not producers.awake
    assert encode_producer(producers["orders/a"]) == row
    stored = idle_row(producer)
    assert stored is not None
    producers = Producers()
    producers.restore(*read_idle_row(stored))
    assert encode_producer(producers["orders/a"]) == row
    assert producers.is_untouched("orders/a")


def test_the_bytes_of_a_row() -> None:
    """The states keep their places: they are stored."""
    assert [state and state.value for state in LAST_STATES] == [
        None, "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort",
    ]  # fmt: skip
    producer = Producer("a", 1, 2, 3)
    producer.previous_epoch, producer.last_number, producer.updated_ms = 4, 5, 6
    producer.last_state, producer.is_durable = TransactionState.COMMITTED, True
    expected = "00 0100000000000000 0600000000000000 0500000000000000 0300000000000000 0200 0400 04 06 61"
    assert idle_row(producer) == bytes.fromhex(expected)


@given(idle_producers(), st.integers(1, 40))
def test_what_is_no_row_is_refused_when_it_is_read(producer: Producer, cut: int) -> None:
    stored = idle_row(producer)
    assert stored is not None and stored.startswith(IDLE)
    with pytest.raises(ValueError, match="can't have a row"):
        read_idle_row(stored[:cut][:-2])
    with pytest.raises(ValueError, match="can't have a row"):
        read_idle_row(stored[:37] + b"\xff" + stored[38:])


def test_a_producer_with_a_number_that_no_client_sends_stays_awake() -> None:
    producers = Producers()
    producers["orders/a"] = Producer("orders/a", 1 << 63, 0, 1)
    producers.sleep(undurable=())
    assert producers.awake
    assert idle_row(producers["orders/a"]) is None


def test_who_looks_at_a_producer_sees_what_becomes_of_it() -> None:
    """Whether he has it from before it slept, or from then; there is never another one."""
    bench = Bench("orders/a")
    before = bench.producers["orders/a"]
    bench.checkpoint()
    assert bench.asleep == {"orders/a"}
    assert bench.producers["orders/a"] is before
    bench.begin("orders/a")
    assert before.current is not None
    assert bench.producers["orders/a"] is before


def test_only_what_is_idle_and_durable_sleeps() -> None:
    bench = Bench("idle", "busy", "changed")
    bench.begin("busy")
    bench.journal.meanwhile = lambda: bench.commit("changed")
    bench.checkpoint()
    assert bench.asleep == {"idle"}
    bench.journal.meanwhile = lambda: None
    bench.checkpoint()
    assert bench.asleep == {"idle", "changed"}


def test_what_a_checkpoint_could_not_store_stays_awake() -> None:
    bench = Bench("orders/a")

    def fail() -> None:
        raise OSError("the disk is gone")

    bench.journal.meanwhile = fail
    with pytest.raises(OSError, match="gone"):
        bench.checkpoint()
    assert not bench.asleep


def test_after_a_restart_all_that_are_idle_sleep() -> None:
    bench = Bench("idle", "busy")
    bench.begin("busy")
    bench.checkpoint()
    before = {name: encode_producer(each) for name, each in bench.producers.items()}
    bench = bench.recovered()
    assert bench.asleep == {"idle"}
    assert {name: encode_producer(each) for name, each in bench.producers.items()} == before


def test_producers_that_were_stored_before_they_were_idle() -> None:
    """Their rows are JSON. The next checkpoint packs them."""
    bench = Bench("idle", "busy")
    before = {name: encode_producer(each) for name, each in bench.producers.items()}
    bench.store.rows = {name.encode(): json.dumps(row).encode() for name, row in before.items()}
    bench = bench.recovered()
    assert bench.asleep == {"idle", "busy"}
    assert all(bench.producers.is_untouched(name) for name in before)
    assert {name: encode_producer(each) for name, each in bench.producers.items()} == before
    bench.store.rows.clear()
    bench.checkpoint()
    assert all(row.startswith(IDLE) for row in bench.store.rows.values())
    found = bench.recovered().producers
    assert {name: encode_producer(each) for name, each in found.items()} == before


def test_what_the_journal_says_after_the_checkpoint_counts_as_before_the_start() -> None:
    bench = Bench("orders/a")
    bench.checkpoint()
    bench = bench.recovered(
        decisions.fence("orders/a", 0, 1, 60_000, 5), decisions.fence("orders/b", 7, 0, 60_000, 6)
    )
    assert bench.asleep == {"orders/a", "orders/b"}
    assert all(map(bench.producers.is_untouched, bench.asleep))
    assert [bench.producers[name].identity for name in ("orders/a", "orders/b")] == [(0, 1), (7, 0)]
    bench.checkpoint()
    stored = bench.recovered().producers
    assert {name: each.identity for name, each in stored.items()} == {"orders/a": (0, 1), "orders/b": (7, 0)}


def test_after_a_loss_of_power_those_that_sleep_must_abort_and_that_is_stored() -> None:
    """Also those that somebody is looking at."""
    bench = Bench("orders/a", "orders/b", "orders/c")
    bench.checkpoint()
    seen = bench.producers["orders/a"]
    bench.begin("orders/b")
    bench.fold(NewEntry(Kind.UNCLEAN, NO_TRANSACTION, {"all": True}))
    assert bench.asleep == {"orders/a", "orders/c"}
    assert seen.must_abort
    assert all(producer.must_abort for producer in bench.producers.values())
    bench.checkpoint()
    assert all(producer.must_abort for producer in bench.recovered().producers.values())


def test_a_loss_of_power_leaves_those_alone_whose_beginnings_are_durable() -> None:
    bench = Bench("orders/a", "orders/b", "orders/c")
    for name, number in (("orders/a", 0), ("orders/b", 1)):
        bench.fold(decisions.fence(name, number, 1, 60_000, now_ms=0, is_durable=True))
    bench.begin("orders/b")
    bench.checkpoint()
    assert bench.asleep == {"orders/a", "orders/c"}
    bench.fold(NewEntry(Kind.UNCLEAN, NO_TRANSACTION, {"all": False}))
    assert [name for name, producer in bench.producers.items() if producer.must_abort] == ["orders/c"]
    bench.checkpoint()
    again = bench.recovered().producers
    assert [name for name, producer in again.items() if producer.must_abort] == ["orders/c"]
    bench.fold(NewEntry(Kind.UNCLEAN, NO_TRANSACTION, {"all": True}))
    assert all(producer.must_abort for producer in bench.producers.values())


def test_ids_that_sleep_are_forgotten_when_nobody_uses_them() -> None:
    bench = Bench("orders/a", "orders/b", "orders/c")
    bench.checkpoint()
    bench.begin("orders/b")
    assert [each.transactional_id for each in idle(bench.table, now_ms=1_002, idle_ms=1_000)] == ["orders/a"]
    for producer in idle(bench.table, now_ms=9_000, idle_ms=1_000):
        bench.fold(decisions.forget(producer))
    assert set(bench.producers) == {"orders/b"}


def test_ids_that_sleep_are_listed() -> None:
    bench = Bench("orders/a", "orders/b")
    bench.checkpoint()
    bench.begin("orders/b")
    parts = SimpleNamespace(shards=SimpleNamespace(metadata_journals=lambda: [bench.home]))
    assert {each.transactional_id: each.state_name for each in listed(cast(Any, parts))} == {
        "orders/a": "CompleteCommit",
        "orders/b": "Ongoing",
    }


def test_the_producer_ids_of_those_that_sleep_are_known() -> None:
    bench = Bench("orders/a", "orders/b")
    bench.checkpoint()
    bench.begin("orders/b")
    assert sorted(bench.producers.producer_ids()) == [0, 1]


def test_it_is_known_who_has_done_nothing_since_the_start() -> None:
    bench = Bench("orders/a", "orders/b")
    bench.checkpoint()
    assert not bench.producers.is_untouched("orders/a")
    bench = bench.recovered()
    bench.commit("orders/b")
    bench.checkpoint()
    assert bench.asleep == {"orders/a", "orders/b"}
    assert bench.producers.is_untouched("orders/a")
    assert not bench.producers.is_untouched("orders/b")
    assert not bench.producers.is_untouched("unknown")


def all_producers() -> list[Producer]:
    """Those that this process has, whoever made them."""
    return [each for each in gc.get_objects() if isinstance(each, Producer)]


def test_ids_that_sleep_take_little_room() -> None:
    """Bytes, and no objects. What else is kept for each is in `test_connections.py`, `test_finished.py`."""
    of_other_tests = all_producers()  # some test may have left them to the process; kept, so that ids stay
    others = set(map(id, of_other_tests))
    names = [f"sink-{number:06}" for number in range(1_000)]
    former = Bench(*names)
    former.checkpoint()
    for bench in (former, former.recovered()):
        assert len(bench.asleep) == len(names)
        asleep = bench.producers._asleep
        size = sys.getsizeof(asleep) + sum(sys.getsizeof(packed) for packed in asleep.values())
        assert size < 160 * len(names)
        assert sys.getsizeof(bench.producers._awake) < 1_000
        listed_once = sum(1 for _ in bench.producers.values())
        gc.collect()
        assert listed_once == len(names)
        assert not bench.producers._lent
        assert [id(each) for each in all_producers() if id(each) not in others] == []

"""An entry that the fold of a metadata journal refuses has changed nothing: it can be passed over."""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from faircopy.errors import InvariantViolation
from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from faircopy.transactions.joint_group import JointGroup
from faircopy.transactions.producers import Producers
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NewEntry, Producer, Transaction
from tests.many import many
from tests.unit.transactions.names import participant

IDS = ("job/a", "job/__member-1", "job/__member-2")
PARTITIONS = [[*participant(number), 1] for number in range(2)]
KINDS = (
    Kind.BEGIN, Kind.ADD, Kind.PREPARE_COMMIT, Kind.PREPARE_ABORT, Kind.COMMITTED, Kind.ABORTED, Kind.FENCE,
    Kind.FORGET, Kind.JOIN, Kind.UNCLEAN,
)  # fmt: skip


def transaction_ids(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[TransactionId]:
    """Few, so that they meet."""
    return st.builds(TransactionId, st.integers(1, 2), st.integers(0, 1), numbers)


OPEN = transaction_ids(st.integers(0, 2))
PAYLOADS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "id": st.sampled_from(IDS), "timeout_ms": st.just(1_000), "at_ms": st.just(0),
        "told": st.booleans(), "pardoned": st.just(-1), "fence": st.integers(0, 2), "untold": st.booleans(),
        "run": st.sampled_from(["first", "second"]), "key": st.integers(-1, 2), "member": st.just("m"),
        "members": st.just([1]), "partitions": st.just(PARTITIONS), "durable": st.booleans(),
        "all": st.booleans(),
        "joined": st.lists(OPEN.map(lambda each: [list(each), []]), max_size=2),
    }
)  # fmt: skip


@st.composite
def entries(draw: st.DrawFn) -> NewEntry:
    """Any entry, whether or not it follows from anything."""
    kind = draw(st.sampled_from(KINDS))
    payload = draw(PAYLOADS)
    if kind is Kind.JOIN or (kind in (Kind.PREPARE_COMMIT, Kind.FORGET) and draw(st.booleans())):
        payload["group"] = "job"
    if kind in (Kind.ADD, Kind.JOIN, Kind.FENCE, Kind.FORGET, Kind.UNCLEAN):
        transaction = draw(OPEN)
    else:
        transaction = draw(st.one_of(OPEN, OPEN, st.just(NO_TRANSACTION)))
    if kind is not Kind.ADD:
        payload["partitions"] = [row[:2] for row in payload["partitions"]]
    return NewEntry(kind, transaction, payload)


def content(value: Any) -> Any:
    """All that is in a table, in a form that can be compared."""
    if isinstance(value, (Producer, Transaction, JointGroup)):
        names = type(value).__slots__
        shown = {name: getattr(value, name) for name in names if name != "__weakref__"}
        shown |= {"joined": [each.id for each in value.joined]} if isinstance(value, Transaction) else {}
        return {name: content(each) for name, each in shown.items()}
    if isinstance(value, (dict, Producers)):
        return {key: content(each) for key, each in value.items()}
    return pickle.loads(pickle.dumps(value))


@given(many(entries(), 40, least=1), st.integers(1, 5))
def test_what_is_refused_changes_nothing(found: list[NewEntry], awake_for: int) -> None:
    """Whether it is about producers that sleep or not."""
    table = TransactionTable()
    for position, entry in enumerate(found):
        if position % awake_for == 0:
            table.producers.sleep(undurable=())
        before = content(vars(table))
        with contextlib.suppress(InvariantViolation):
            table.fold(entry, position)
            continue
        assert content(vars(table)) == before, entry

"""Joint groups in the coordinator's table: runs that are replaced, and attempts that are left behind."""

from __future__ import annotations

import pytest

from faircopy.transactions import joint_decisions
from faircopy.transactions.decisions import TransactionRefused
from faircopy.transactions.joint_group import Membership
from faircopy.transactions.state import TransactionState
from faircopy.transactions.transaction import Producer, member_id
from faircopy.wire.error_codes import ErrorCode
from tests.unit.transactions.test_table import Bench


def join(bench: Bench, run: str, key: int, producer_id: int) -> Producer:
    """A member with an open transaction."""
    membership = Membership("job", run, key, "task")
    bench.append(joint_decisions.join(bench.table, membership, producer_id, 60_000, 0))
    bench.add(member_id("job", producer_id))
    return bench.table.producers[member_id("job", producer_id)]


def test_a_run_that_was_replaced_is_fenced_for_good() -> None:
    bench = Bench()
    former = join(bench, "old", 0, 1)
    opened = former.current
    join(bench, "new", 0, 2)
    assert opened is not None
    assert (opened.state, former.current, former.epoch) == (TransactionState.PREPARE_ABORT, None, 1)
    with pytest.raises(TransactionRefused) as caught:
        join(bench, "old", 0, 3)
    assert caught.value.code is ErrorCode.PRODUCER_FENCED
    bench.finish(opened.id)
    assert member_id("job", 1) not in bench.table.producers
    assert bench.table.gone == {1}


def test_what_a_decision_does_not_name_is_left_behind() -> None:
    bench = Bench()
    failed, good, later = (join(bench, "r", key, number) for number, key in enumerate((0, 0, 1)))
    left, kept = failed.current, later.current
    bench.append(joint_decisions.commit(bench.table, "job", "r", 0, [good.producer_id]))
    assert left is not None
    assert left.state is TransactionState.PREPARE_ABORT
    assert later.current is kept, "it writes for a key that is yet to come"
    assert joint_decisions.is_decided(bench.table.groups["job"], 0)


def test_a_decided_key_has_nothing_of_members_that_its_commit_did_not_name() -> None:
    """The second of two commits of a key would be told success, and what its members wrote is dropped."""
    bench = Bench()
    first, second = join(bench, "r", 0, 1), join(bench, "r", 0, 2)
    bench.append(joint_decisions.commit(bench.table, "job", "r", 0, [first.producer_id]))
    group = bench.table.groups["job"]
    joint_decisions.ensure_was_named(group, 0, [first.producer_id])
    with pytest.raises(TransactionRefused, match="producer id 2: what that one wrote was dropped"):
        joint_decisions.ensure_was_named(group, 0, [first.producer_id, second.producer_id])

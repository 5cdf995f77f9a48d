"""Mutants of joint transactions: one decision, its keys and its runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from faircopy.transactions import decisions, joint_decisions
from faircopy.transactions.commits import Commits
from faircopy.transactions.joint_group import JointGroup
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.transaction import NewEntry, Producer, Transaction
from tests.mutants.registry import mutant, replaced


@mutant
def promise_for_the_lead_only() -> Iterator[Any]:
    """I5: a joint commit is acknowledged before the members that are joined to its lead have promised."""

    def promising(self: Commits, transaction: Transaction) -> Any:
        return [each for each in transaction.branches if each.transaction == transaction.id]

    with replaced(Commits, "promising", promising):
        yield


@mutant
def forget_who_is_joined() -> Iterator[Any]:
    """A checkpoint does not say which transactions are joined to a lead."""
    with replaced(MetadataJournal, "_unite", lambda self, lead, joined: None):
        yield


@mutant
def forget_committed_keys() -> Iterator[Any]:
    """A key that is committed may be committed again."""

    def is_decided(group: JointGroup | None, key: int) -> bool:
        return group is not None and key in group.deciding

    with replaced(joint_decisions, "is_decided", is_decided):
        yield


@mutant
def believe_a_decision_at_once() -> Iterator[Any]:
    """Who asks again for a key is told that it is committed before that is durable."""
    with replaced(Commits, "ack_of", lambda self, transaction: None):
        yield


@mutant
def commit_members_that_were_aborted() -> Iterator[Any]:
    """A commit takes what is left of the members that it names."""

    def member(known: Producer | None, group: str, key: int, producer_id: int) -> Producer:
        return known if known is not None and not known.ending else Producer("nobody", producer_id, 0, 0)

    with replaced(joint_decisions, "_member", member):
        yield


@mutant
def keep_a_decision_that_was_taken_back() -> Iterator[Any]:
    """A key whose commit lost a promise counts as committed."""
    real = JointGroup.decided

    def decided(self: JointGroup, lead: Any, *, is_committed: bool) -> None:
        real(self, lead, is_committed=True)

    with replaced(JointGroup, "decided", decided):
        yield


@mutant
def leave_nothing_behind() -> Iterator[Any]:
    """Former runs are not fenced, and attempts that are not named stay open."""
    with replaced(TransactionTable, "left_behind", lambda self, entry: []):
        yield


@mutant
def let_former_runs_go_on() -> Iterator[Any]:
    """A run that was replaced may take over again."""
    with replaced(JointGroup, "is_former", lambda self, run: False):
        yield


@mutant
def remember_members() -> Iterator[Any]:
    """Partitions are never told that a member has done its work."""
    with replaced(TransactionTable, "take_gone", lambda self: set()):
        yield


@mutant
def end_only_the_lead() -> Iterator[Any]:
    """COMMITTED ends the lead, and not what is joined to it."""
    real = TransactionTable._fold_step

    def fold_step(self: TransactionTable, entry: NewEntry, position: int) -> None:
        transaction = self.transactions[entry.transaction]
        if entry.kind.name == "COMMITTED":
            transaction.joined = ()
        real(self, entry, position)

    with replaced(TransactionTable, "_fold_step", fold_step):
        yield


@mutant
def say_that_any_commit_of_a_key_is_the_first() -> Iterator[Any]:
    """A commit of a decided key is told success, whomever it names."""
    with replaced(joint_decisions, "ensure_was_named", lambda group, key, producer_ids: None):
        yield


@mutant
def let_clients_take_the_names_of_members() -> Iterator[Any]:
    """A client may have a transactional id that a member of a joint group will get."""
    with replaced(decisions, "is_member_id", lambda transactional_id: False):
        yield

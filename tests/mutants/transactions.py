"""Mutants of transactions, from their drafts to what is remembered of them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import partial
from typing import Any

from faircopy.copier import copy, fold
from faircopy.copier.producers import ProducerState
from faircopy.journal.entry import NOWHERE, Kind
from faircopy.journal.journal import Journal
from faircopy.partition import partition
from faircopy.shard import shards
from faircopy.transactions import decisions, order, settlement, transaction
from faircopy.transactions import recovery as transaction_recovery
from faircopy.transactions.answers import Answers
from faircopy.transactions.commits import Commits
from faircopy.transactions.connections import NO_CONNECTION, ProducerConnections
from faircopy.transactions.coordinator import TransactionCoordinator
from faircopy.transactions.endings import Endings
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.numbers import Numbers
from faircopy.transactions.order import GroupOrder
from faircopy.transactions.producers import Producers
from faircopy.transactions.table import TransactionTable
from faircopy.transactions.unwritten import UnwrittenTransactions
from tests.mutants.registry import mutant, replaced


@mutant
def ack_without_the_participants() -> Iterator[Any]:
    """I5: a commit waits for PREPARE_COMMIT only."""
    with replaced(Commits, "promising", lambda self, transaction: []):
        yield


@mutant
def apply_twice() -> Iterator[Any]:
    """I4: a second APPLY of a transaction takes effect again."""
    real_decide, real_apply = fold.PartitionState._decide, fold.PartitionState.fold_apply

    def decide(self: fold.PartitionState, outcome: Any) -> Any:
        before = self.undecided.get(outcome.transaction)
        producer = real_decide(self, outcome)
        if before is not None and outcome.is_applied:
            before.standing = fold.Standing.APPLIED
            self.undecided[outcome.transaction] = before
        return producer

    def fold_apply(self: fold.PartitionState, entry: Any, order: fold.ApplyOrder) -> Any:
        known = self.undecided.get(entry.transaction)
        if known is not None and known.standing is fold.Standing.APPLIED:
            known.standing = fold.Standing.PREPARED
        return real_apply(self, entry, order)

    def apply(self: partition.Partition, transaction: Any, order: fold.ApplyOrder, done: Any) -> None:
        self.close_transaction(transaction)
        effect = self.journal.append(
            Kind.APPLY,
            order.payload(transaction),
            fold=lambda entry: self.state.fold_apply(entry, order),
            transaction=transaction,
        )
        self._release(effect, done)

    with (
        replaced(fold.PartitionState, "_decide", decide),
        replaced(fold.PartitionState, "fold_apply", fold_apply),
        replaced(partition.Partition, "apply", apply),
    ):
        yield


@mutant
def drop_the_first_draft() -> Iterator[Any]:
    """I3: the reverse list is not walked to its beginning."""
    real = copy.all_drafts

    def all_drafts(*arguments: Any) -> Any:
        drafts = real(*arguments)
        return drafts[1:] + drafts[:1] if len(drafts) > 1 else drafts

    with replaced(copy, "all_drafts", all_drafts):
        yield


@mutant
def drop_previous() -> Iterator[Any]:
    """I3: a draft does not know the one before it."""
    real = Journal.append

    def append(self: Journal, kind: Any, payload: Any = b"", **named: Any) -> Any:
        if kind == Kind.DRAFT:
            named["previous"] = NOWHERE
        return real(self, kind, payload, **named)

    with replaced(Journal, "append", append):
        yield


@mutant
def believe_every_duplicate_is_new() -> Iterator[Any]:
    """A batch that a client sends again is appended again (KIP-98)."""
    with replaced(ProducerState, "find_duplicate", lambda self, header, batch: None):
        yield


@mutant
def take_what_was_given_up_for_written() -> Iterator[Any]:
    """What an abort has dropped counts as written, so what has its sequences next is called a duplicate."""
    with replaced(ProducerState, "drop", lambda self, batches: None):
        yield


@mutant
def take_other_records_for_a_repeat() -> Iterator[Any]:
    """After an abort, equal sequences are enough for a duplicate, whatever the records are."""
    with replaced(ProducerState, "_ensure_same", lambda self, seen, header, batch: None):
        yield


@mutant
def reuse_transaction_numbers() -> Iterator[Any]:
    """I4: numbers begin anew at each start, so drafts of a forgotten transaction may join a later one."""
    real = TransactionCoordinator.__init__

    def begin(self: TransactionCoordinator, *arguments: Any, **named: Any) -> None:
        real(self, *arguments, **named)
        self._numbers = Numbers(1)

    with replaced(TransactionCoordinator, "__init__", begin):
        yield


@mutant
def commit_what_was_lost() -> Iterator[Any]:
    """I5: a coordinator that recovers in PREPARE_COMMIT does not ask if every participant has promised."""

    def is_promised(promises: Any, *, is_proven: bool = False) -> bool:
        return True

    with replaced(transaction_recovery, "is_promised", is_promised):
        yield


@mutant
def leave_drafts_of_the_unknown() -> Iterator[Any]:
    """Drafts of transactions that a crash made the coordinator forget stay open for ever."""
    with replaced(settlement, "settle_strays", lambda coordinators, partitions: None):
        yield


@mutant
def remember_the_forgotten() -> Iterator[Any]:
    """Partitions remember the last transaction of every transactional id for ever."""
    with replaced(partition.Partition, "forget_producers", lambda self, producer_ids: None):
        yield


@mutant
def remember_the_forgotten_after_a_crash() -> Iterator[Any]:
    """The same, if a crash comes before partitions are told."""
    with replaced(shards, "unknown_producers", lambda journals, partitions: set()):
        yield


@mutant
def tell_nobody_of_aborts() -> Iterator[Any]:
    """A producer whose transaction a crash has ended may commit the rest of it."""
    with replaced(decisions, "ensure_told", lambda producer: None):
        yield


@mutant
def let_zombies_in() -> Iterator[Any]:
    """KIP-98: the epoch of a request is ignored."""
    real = decisions.newest_producer

    def newest_producer(
        table: TransactionTable, transactional_id: str, producer_id: int, epoch: int, fenced: Any
    ) -> Any:
        known = table.producers.get(transactional_id)
        return real(table, transactional_id, producer_id, epoch if known is None else known.epoch, fenced)

    with replaced(decisions, "newest_producer", newest_producer):
        yield


@mutant
def take_late_requests() -> Iterator[Any]:
    """KAFKA-17754: a request on a connection that its client has replaced ends a later transaction."""
    with replaced(TransactionCoordinator, "_admit", lambda self, *arguments: None):
        yield


@mutant
def forget_that_a_connection_was_replaced() -> Iterator[Any]:
    """KAFKA-17754: once a producer's connections are closed, a request on an older one is taken."""
    real = ProducerConnections.over

    def over(self: ProducerConnections, connection: int) -> None:
        real(self, connection)
        self._floor = NO_CONNECTION

    with replaced(ProducerConnections, "over", over):
        yield


@mutant
def sleep_before_it_is_durable() -> Iterator[Any]:
    """What became of a transaction is forgotten in partitions, although a crash may take its end."""
    real = Producers.sleep

    def sleep(self: Producers, undurable: Container[str], flags: int = 0) -> None:
        real(self, (), flags)

    with replaced(Producers, "sleep", sleep):
        yield


@mutant
def let_those_that_sleep_go_on() -> Iterator[Any]:
    """P9: after a loss of power, an id that slept may commit the rest of a transaction."""

    with replaced(Producers, "_make_sleeping_abort", lambda self, *, is_all: set()):
        yield


@mutant
def apply_in_any_order() -> Iterator[Any]:
    """P5: a transaction is applied when it is durable, whatever came before it in its group."""

    def durable(self: GroupOrder, group: str, transaction: Any) -> Any:
        self._waiting[group].remove(transaction)
        return [transaction]

    with replaced(GroupOrder, "durable", durable):
        yield


@mutant
def apply_again_in_any_order() -> Iterator[Any]:
    """G0: after a crash between the participants' APPLYs, groups go on in another order than before."""
    with replaced(order, "by_rank", in_journals_order), replaced(settlement, "by_rank", in_journals_order):
        yield


def in_journals_order(decided: Sequence[Any]) -> list[Any]:
    return [(rank, item) for _, rank, item in decided]


@mutant
def take_a_fresh_rank_for_an_older_place() -> Iterator[Any]:
    """What goes on before a transaction with a rank gets a higher one, and ranks fall in a partition."""
    real = order.by_rank

    def by_rank(decided: Sequence[Any]) -> list[Any]:
        own = {id(item): rank for _, rank, item in decided}
        return [(own[id(item)], item) for _, item in real(decided)]

    with replaced(order, "by_rank", by_rank), replaced(settlement, "by_rank", by_rank):
        yield


@mutant
def append_before_the_fold() -> Iterator[Any]:
    """An entry is in the journal when its fold refuses it."""
    real = Journal.append

    def append(self: Journal, kind: Any, payload: Any = b"", *, fold: Any, **named: Any) -> Any:
        return fold(real(self, kind, payload, fold=lambda entry: entry, **named))

    with replaced(Journal, "append", append):
        yield


@mutant
def take_plain_batches_within_a_transaction() -> Iterator[Any]:
    """A plain batch takes the sequence of the next draft, which then counts as its duplicate."""
    with replaced(partition.Partition, "ensure_no_transaction", lambda self, producer_id: None):
        yield


# -- open transactions that outlive the process (P9) ---------------------------------------------------------


@mutant
def abort_what_is_open() -> Iterator[Any]:
    """P9: a start after a kill aborts open transactions."""
    with replaced(transaction_recovery.Recovery, "_goes_on", lambda self, transaction: False):
        yield


@mutant
def discard_at_once() -> Iterator[Any]:
    """P9: participants are told of an abort before its decision is written."""

    def discard(self: Endings, home: Any, transaction: Any) -> None:
        self._discarding[transaction.id] = Answers(
            transaction.participants, partial(self._discarded, home, transaction)
        )
        self.discard_in(transaction, transaction.participants)
        if not transaction.participants:
            self._discarded(home, transaction)

    with replaced(Endings, "discard", discard):
        yield


@mutant
def keep_a_promise_that_nobody_needs() -> Iterator[Any]:
    """P9: an open transaction goes on, and stays prepared where a crash took the decision only."""
    with replaced(partition.Partition, "resume_transaction", partition.Partition.open_transaction):
        yield


@mutant
def discard_what_an_open_transaction_does_not_list() -> Iterator[Any]:
    """P9: drafts are discarded in a partition whose ADD a crash took."""
    with replaced(TransactionCoordinator, "adopt", lambda self, transaction, partition: False):
        yield


@mutant
def abort_what_lacks_a_promise() -> Iterator[Any]:
    """P9: a commit is aborted after a kill if a promise is missing, although no draft is."""
    with replaced(
        transaction_recovery.Recovery, "_may_lack_drafts", lambda self, transaction, promises: True
    ):
        yield


@mutant
def ack_before_the_fsync() -> Iterator[Any]:
    """P9: with durable acks, a draft is acked when it is written."""

    def when_written(self: Any, transaction: Any, done: Any) -> None:
        self.journal.when_kept(done)

    with replaced(partition.Partition, "_when_draft_is_safe", when_written):
        yield


@mutant
def ack_a_beginning_before_the_fsync() -> Iterator[Any]:
    """P9: with durable acks, drafts do not wait until their transaction is fsynced."""
    real = UnwrittenTransactions.note

    def note(self: Any, home: Any, transaction: Any, *, is_durable: bool) -> None:
        real(self, home, transaction, is_durable=False)

    with replaced(UnwrittenTransactions, "note", note):
        yield


@mutant
def discard_before_the_fsync() -> Iterator[Any]:
    """P9: participants of a durable transaction are told of an abort that a loss of power takes back."""

    def when_written(self: Any, callback: Any, *, is_durable: bool) -> None:
        self.journal.when_kept(callback)

    with replaced(MetadataJournal, "when_safe", when_written):
        yield


@mutant
def tell_of_the_brokers_own_aborts_before_the_fsync() -> Iterator[Any]:
    """P9: a producer goes on after an abort that a loss of power takes back."""
    with replaced(transaction.Producer, "needs_durable", property(lambda producer: producer.is_durable)):
        yield


@mutant
def go_on_although_some_acks_were_not_durable() -> Iterator[Any]:
    """P9: after a loss of power, a transaction goes on if any of its partitions acks durably."""
    with replaced(transaction.Transaction, "is_durable", transaction.Transaction.needs_durable):
        yield


@mutant
def abort_what_is_durable() -> Iterator[Any]:
    """P9: a loss of power aborts all open transactions, whatever their acks meant."""
    with replaced(transaction_recovery.Recovery, "_has_acked_drafts", lambda self, transaction: False):
        yield


@mutant
def make_durable_producers_abort() -> Iterator[Any]:
    """P9: a loss of power makes producers abort that have lost nothing."""
    with replaced(transaction.Producer, "is_safe", property(lambda producer: False)):
        yield


@mutant
def ack_an_inherited_commit_at_once() -> Iterator[Any]:
    """I5: a repeated EndTxn is acknowledged before the promises are durable that a start has made."""
    real = Commits.ask

    def ask(self: Commits, commit: Any, missing: Any) -> None:
        real(self, commit, missing)
        commit.ack = None

    with replaced(Commits, "ask", ask):
        yield

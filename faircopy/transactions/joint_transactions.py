"""Joint transactions: several writers, one decision (docs/ARCHITECTURE.md, Joint transactions).

Each member writes in a transaction of its own, under a producer id of its own. A commit names the members
whose transactions count, and decides about all of them by one entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from faircopy.errors import FaircopyError
from faircopy.journal.errors import JournalFull
from faircopy.partition.participant import NotLed, Participants
from faircopy.storage.clock import Clock
from faircopy.transactions import joint_decisions
from faircopy.transactions.commits import Commits
from faircopy.transactions.connections import ProducerConnections
from faircopy.transactions.decisions import TransactionRefused, asked_again
from faircopy.transactions.endings import Endings
from faircopy.transactions.joint_group import NO_KEY, JointGroup, Membership
from faircopy.transactions.metadata_journal import MetadataJournal
from faircopy.transactions.table import open_transactions
from faircopy.transactions.timeout_limit import TimeoutLimit
from faircopy.transactions.transaction import NewEntry, Transaction
from faircopy.wire.error_codes import ErrorCode


class Joined(NamedTuple):
    """The answer to a join: who the member is from now on."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class JointTransactions:
    """The joint groups of some metadata journals. It has no state of its own: that is in their tables."""

    def __init__(
        self,
        journal_of: Callable[[str], MetadataJournal],
        find_participant: Participants,
        next_producer_id: Callable[[], Awaitable[int]],
        commits: Commits,
        endings: Endings,
        clock: Clock,
        timeout_limit: TimeoutLimit,
        connections: ProducerConnections,
        *,
        is_durable: bool,
    ) -> None:
        self._journal_of = journal_of
        self._find_participant = find_participant
        self._next_producer_id = next_producer_id
        self._commits = commits
        self._endings = endings
        self._clock = clock
        self._timeout_limit = timeout_limit
        self._connections = connections
        self._is_durable = is_durable

    async def join(self, membership: Membership, timeout_ms: int, connection: int) -> Joined | None:
        """Make a member, once that is kept, or durable if it must survive a loss of power; None if its key
        is committed already, so that it need not write anything. A run that is new in the group fences the
        former one. `connection` is the one that the member asks over. Raises TransactionRefused.
        """
        group, run, key, member = membership
        joint_decisions.ensure_named(group, run, key, member)
        self._timeout_limit.ensure(f"{group}/{member}", timeout_ms)
        home = self._journal_of(group)
        if await self._is_committed(home, group, run, key):
            return None
        home.ensure_space()
        with asked_again():
            producer_id = await self._next_producer_id()
        # Look again: while the producer id was fetched, another request may have come, or another leader.
        home = self._journal_of(group)
        if await self._is_committed(home, group, run, key):
            return None
        now_ms = self._clock.steady_ms()
        entry = joint_decisions.join(
            home.table, membership, producer_id, timeout_ms, now_ms, is_durable=self._is_durable
        )
        self._append(home, entry)
        self._connections.begin((producer_id, 0), connection)
        await home.safe(is_durable=self._is_durable)
        return Joined(entry.payload["id"], producer_id, 0)

    async def commit(self, group: str, run: str, key: int, producer_ids: list[int]) -> None:
        """Commit what these members have written for a key, and abort what others have written for it. Done
        once it can't be lost (I5), or if an equal commit came before. Raises TransactionRefused.
        """
        joint_decisions.ensure_named(group, run, key)
        if key == NO_KEY:
            raise joint_decisions.invalid(f"a commit of joint group {group!r} needs a key")
        home = self._journal_of(group)
        if await self._is_committed(home, group, run, key, producer_ids):
            return
        home.ensure_space()
        entry = joint_decisions.commit(home.table, group, run, key, producer_ids)
        named = home.table.named(entry)
        if not named:
            self._append(home, entry)
            await home.journal.durable()
            return
        self._ensure_promises(home, named)
        left = open_transactions(home.table.left_behind(entry))
        ack = self._commits.start(home, named[0], entry)
        for each in left:
            self._endings.discard(home, each)
        await asyncio.shield(ack)

    async def abort(self, group: str, run: str, key: int) -> None:
        """Abort what members have written for a key, or without one (NO_KEY). Returns once that is as safe as
        the acks of what they wrote. Raises TransactionRefused.
        """
        joint_decisions.ensure_named(group, run, key)
        home = self._journal_of(group)
        members = joint_decisions.aborted(home.table, group, run, key)
        needs_durable = any(member.is_durable for member in members)
        for transaction in open_transactions(members):
            needs_durable |= transaction.needs_durable
            self._endings.abort(home, transaction, transaction.id.producer_epoch)
        await home.safe(is_durable=needs_durable)

    async def forget(self, group: str) -> None:
        """Forget a group, and which of its keys are committed. Raises TransactionRefused if it is in use."""
        home = self._journal_of(group)
        entry = joint_decisions.forget(home.table, group)
        if entry is not None:
            home.ensure_replicas()
            home.append(entry)
        await home.journal.durable()

    async def _is_committed(
        self, home: MetadataJournal, group: str, run: str, key: int, producer_ids: Iterable[int] = ()
    ) -> bool:
        """Whether a key is committed, durably, with what these members wrote. Raises TransactionRefused."""
        known: JointGroup | None = home.table.groups.get(group)
        joint_decisions.ensure_run(known, run)
        if not joint_decisions.is_decided(known, key):
            return False
        assert known is not None
        lead = known.deciding.get(key)
        if lead is None:
            joint_decisions.ensure_was_named(known, key, producer_ids)
            await home.journal.durable()
            return True
        if self._commits.is_undecided([lead]):
            raise TransactionRefused(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"whether key {key} of joint group {group!r} is committed can't be known until a partition "
                f"that takes part in it is repaired",
            )
        joint_decisions.ensure_was_named(known, key, producer_ids)
        ack = self._commits.ack_of(lead)
        if ack is not None:
            await asyncio.shield(ack)
        return True

    def _append(self, home: MetadataJournal, entry: NewEntry) -> None:
        """Append an entry, and tell participants about the open transactions that it aborts."""
        left = open_transactions(home.table.left_behind(entry))
        home.append(entry)
        for each in left:
            self._endings.discard(home, each)

    def _ensure_promises(self, home: MetadataJournal, transactions: list[Transaction]) -> None:
        """Raise TransactionRefused if a participant can't promise. If one has failed, abort all."""
        try:
            for partition_id in {each: None for one in transactions for each in one.participants}:
                self._find_participant(partition_id).ensure_writable()
        except (JournalFull, NotLed) as error:
            raise TransactionRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        except FaircopyError as error:
            for each in transactions:
                self._endings.abort(home, each, each.id.producer_epoch)
            raise TransactionRefused(
                ErrorCode.INVALID_TXN_STATE, f"the joint transaction is aborted: {error}"
            ) from error

"""What a request may do to a joint group: the entry to append, or a refusal.

Pure. Each function is given what the table knows, and changes nothing: appending an entry folds it.
"""

from __future__ import annotations

from collections.abc import Iterable

from faircopy.journal.entry import NO_TRANSACTION, Kind, TransactionId
from faircopy.transactions.decisions import TransactionRefused, ensure_told
from faircopy.transactions.joint_group import NO_KEY, JointGroup, Membership
from faircopy.transactions.table import TransactionTable, open_transactions
from faircopy.transactions.transaction import NewEntry, Producer, member_id
from faircopy.wire.error_codes import ErrorCode

NAME_CHARS_MAX = 249  # as Kafka's names
KEY_MAX = (1 << 63) - 1


def ensure_named(group: str, run: str, key: int, member: str = "-") -> None:
    """Raise TransactionRefused for a name or a key that can't be one."""
    for what, name in (("group", group), ("run", run), ("member", member)):
        if not 0 < len(name) <= NAME_CHARS_MAX:
            raise invalid(f"the name of a {what} has 1 to {NAME_CHARS_MAX} characters, not {len(name)}")
    if "/" in group:
        raise invalid(f"a joint group can't have a slash in its name: {group!r}")
    if not NO_KEY <= key <= KEY_MAX:
        raise invalid(f"key {key} of joint group {group!r} is not between 0 and {KEY_MAX}")


def ensure_run(group: JointGroup | None, run: str) -> None:
    """Raise TransactionRefused for a run that a newer one has replaced."""
    if group is not None and group.is_former(run):
        raise TransactionRefused(
            ErrorCode.PRODUCER_FENCED,
            f"run {run!r} of joint group {group.name!r} is fenced: run {group.run!r} has taken over",
        )


def is_decided(group: JointGroup | None, key: int) -> bool:
    """Whether the decision to commit a key was taken. Raises TransactionRefused for one before the last, of
    which nothing is known any more.
    """
    if group is None or key == NO_KEY or key > group.last_key:
        return False
    if key < group.last_key:
        raise invalid(
            f"key {key} of joint group {group.name!r} comes too late: {group.last_key} is the last one that "
            f"was committed, and keys only grow. If the group begins anew, forget it first (faircopy txn "
            f"forget-group), or use another name"
        )
    return True


def ensure_was_named(group: JointGroup, key: int, producer_ids: Iterable[int]) -> None:
    """Raise TransactionRefused if a commit of a decided key names a member that the decision does not."""
    left = set(producer_ids).difference(group.named[key])
    if left:
        raise TransactionRefused(
            ErrorCode.INVALID_TXN_STATE,
            f"key {key} of joint group {group.name!r} is committed already, by a commit that does not name "
            f"its member with producer id {min(left)}: what that one wrote was dropped. If it is the same as "
            f"what was committed, nothing is missing. If not, join and write it again for a later key",
        )


def join(
    table: TransactionTable,
    membership: Membership,
    producer_id: int,
    timeout_ms: int,
    now_ms: int,
    *,
    is_durable: bool = False,
) -> NewEntry:
    """The entry that makes a member. If it `is_durable`, its transactions are fsynced before it is told that
    they have begun. Raises TransactionRefused.
    """
    ensure_run(table.groups.get(membership.group), membership.run)
    transactional_id = member_id(membership.group, producer_id)
    if transactional_id in table.producers:  # a client took it before such names were reserved
        raise TransactionRefused(
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"transactional id {transactional_id!r} is in use by a client: join again for another",
        )
    payload = {
        "id": transactional_id, "timeout_ms": timeout_ms, "at_ms": now_ms,
        "group": membership.group, "run": membership.run, "key": membership.key, "member": membership.member,
        "durable": is_durable,
    }  # fmt: skip
    return NewEntry(Kind.JOIN, TransactionId(producer_id, 0, -1), payload)


def commit(table: TransactionTable, group: str, run: str, key: int, producer_ids: Iterable[int]) -> NewEntry:
    """The entry that decides to commit what these members of a key have written. Raises TransactionRefused if
    one of them can't be committed: then nothing changes.
    """
    known = {
        member.producer_id: member for member, its in table.memberships(group) if its[:3] == (group, run, key)
    }
    named = list(dict.fromkeys(producer_ids))
    members = [_member(known.get(producer_id), group, key, producer_id) for producer_id in named]
    open_here = open_transactions(members)
    payload = {
        "group": group, "run": run, "key": key, "members": named, "partitions": [], "joined": [],
    }  # fmt: skip
    if not open_here:
        return NewEntry(Kind.PREPARE_COMMIT, NO_TRANSACTION, payload)
    lead, *others = open_here
    joined = [[each.id, each.participants] for each in others]
    return NewEntry(
        Kind.PREPARE_COMMIT, lead.id, payload | {"partitions": lead.participants, "joined": joined}
    )


def _member(member: Producer | None, group: str, key: int, producer_id: int) -> Producer:
    """A member that a commit names, if it can be committed. Raises TransactionRefused."""
    if member is None or member.ending:
        raise TransactionRefused(
            ErrorCode.INVALID_TXN_STATE,
            f"key {key} of joint group {group!r} can't be committed: what its member with producer id "
            f"{producer_id} wrote was aborted, by a timeout, an abort or a loss of power. Join and "
            f"write it again",
        )
    ensure_told(member)
    return member


def aborted(table: TransactionTable, group: str, run: str, key: int) -> list[Producer]:
    """The members whose writing an abort of this key ends. Raises TransactionRefused."""
    known = table.groups.get(group)
    ensure_run(known, run)
    if is_decided(known, key):
        raise TransactionRefused(
            ErrorCode.INVALID_TXN_STATE, f"key {key} of joint group {group!r} is committed already"
        )
    memberships = table.memberships(group)
    return [member for member, its in memberships if its.run == run and its.key == key]


def forget(table: TransactionTable, group: str) -> NewEntry | None:
    """The entry that forgets a group, and with it which keys are committed; None if it is not known. Raises
    TransactionRefused while it is in use.
    """
    known = table.groups.get(group)
    if known is None:
        return None
    members = [member for member, _ in table.memberships(group)]
    if known.deciding or any(member.ending for member in members):
        raise TransactionRefused(
            ErrorCode.CONCURRENT_TRANSACTIONS, f"what joint group {group!r} wrote is being copied: try again"
        )
    if any(member.current is not None for member in members):
        raise TransactionRefused(
            ErrorCode.NON_EMPTY_GROUP,
            f"joint group {group!r} is in use: stop what writes under its name, and wait until its open "
            f"transactions are over",
        )
    return NewEntry(Kind.FORGET, NO_TRANSACTION, {"group": group})


def invalid(message: str) -> TransactionRefused:
    """A request that can never be carried out."""
    return TransactionRefused(ErrorCode.INVALID_REQUEST, message)

"""What goes wrong in a transaction, on request: what happened, and whether the transaction took effect."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from faircopy.testing import Broker

PATIENCE_MS = 60_000
SHORT_PATIENCE_MS = 3_000


class Effect(StrEnum):
    """Whether the transaction took effect, as far as the error tells."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe: ask"


class Situation(NamedTuple):
    """One thing that goes wrong, when `step` is about to be done. `provoke` is given a transactional id.

    `is_applied` is whether the transaction is in the log once the client is told; `effect` is what
    can be concluded from the error. `error` is the protocol's, if one is sent.
    """

    name: str
    error: str
    happened: str
    effect: Effect
    advice: str
    provoke: Callable[[Broker, str], None]
    step: str = "commit"
    is_applied: bool = False
    patience_ms: int = PATIENCE_MS
    ends_with: Callable[[Broker], None] = lambda broker: None


NOTHING_TO_DO = "Nothing, if the library tries again by itself. If it tells of it, ask as below."
ABORT = "Abort and write it again, where the library lets you; otherwise a new producer."
NEW_PRODUCER = "Close the producer, make a new one with the same id, and write it again."
ASK = "Close the producer, and ask `faircopy txn outcome`. Unless it says committed, write it again."
MEND = "Have it allowed. Nothing is in the log: then write it again, with a new producer."


def commit_refused(error: str) -> Callable[[Broker, str], None]:
    """The next commit is refused."""
    return lambda broker, name: broker.fail_next_commit(error, transactional_id=name)


def produce_refused(error: str, times: int = 1) -> Callable[[Broker, str], None]:
    """The next messages are refused."""
    return lambda broker, name: broker.refuse("Produce", error, transactional_id=name, times=times)


def healed(
    name: str, error: str, happened: str, provoke: Callable[[Broker, str], None], step: str
) -> Situation:
    """A situation from which each library recovers by itself."""
    return Situation(name, error, happened, Effect.YES, NOTHING_TO_DO, provoke, step, True)


def refused(error: str, happened: str, advice: str, step: str = "commit") -> Situation:
    """A situation in which a request is refused, so that nothing took effect."""
    provoke = commit_refused(error) if step == "commit" else produce_refused(error)
    name = f"{error} at {'the commit' if step == 'commit' else 'a message'}"
    return Situation(name, error, happened, Effect.NO, advice, provoke, step)


SITUATIONS = (
    healed(
        "the coordinator is busy", "COORDINATOR_NOT_AVAILABLE", "The broker is not ready yet.",
        commit_refused("COORDINATOR_NOT_AVAILABLE"), "commit",
    ),
    healed(
        "the transaction before is ending", "CONCURRENT_TRANSACTIONS", "The last one is not over yet.",
        commit_refused("CONCURRENT_TRANSACTIONS"), "commit",
    ),
    healed(
        "the answer is lost", "", "The commit took effect, and the connection broke before its answer.",
        lambda broker, name: broker.lose_next_ack(transactional_id=name), "commit",
    ),
    healed(
        "the commit is lost", "", "The connection broke before the commit arrived.",
        lambda broker, name: broker.lose_next_commit(transactional_id=name), "commit",
    ),
    healed(
        "the broker is killed before the commit", "", "The broker ended when the commit came, and came back.",
        lambda broker, name: broker.kill_before_commit(transactional_id=name), "commit",
    ),
    healed(
        "the broker is killed after the commit", "", "It took effect; the broker ended before it said so.",
        lambda broker, name: broker.kill_before_ack(transactional_id=name), "commit",
    ),
    healed(
        "replicas are missing", "NOT_ENOUGH_REPLICAS", "Too few replicas were in sync for a message.",
        produce_refused("NOT_ENOUGH_REPLICAS", times=2), "send",
    ),
    healed(
        "the disk is full", "KAFKA_STORAGE_ERROR", "The broker had no space for a message, and has now.",
        produce_refused("KAFKA_STORAGE_ERROR"), "send",
    ),
    Situation(
        "no answer, but applied", "", "The commit took effect, and its answer did not come in time.",
        Effect.MAYBE, ASK,
        lambda broker, name: broker.time_out_next_commit(takes_effect=True, transactional_id=name),
        is_applied=True, patience_ms=SHORT_PATIENCE_MS,
    ),
    Situation(
        "no answer, not applied", "", "The commit did not take effect, and no answer came in time.",
        Effect.MAYBE, ASK, lambda broker, name: broker.time_out_next_commit(transactional_id=name),
        patience_ms=SHORT_PATIENCE_MS,
    ),
    Situation(
        "the broker stays away", "", "The broker was down for longer than the client waits.",
        Effect.MAYBE, ASK, lambda broker, name: broker.kill(),
        patience_ms=SHORT_PATIENCE_MS, ends_with=lambda broker: broker.start(),
    ),
    Situation(
        "the transaction timed out", "INVALID_PRODUCER_EPOCH, PRODUCER_FENCED",
        "It was open for longer than transaction.timeout.ms, and the broker aborted it.",
        Effect.NO, NEW_PRODUCER, lambda broker, name: broker.expire_next_commit(transactional_id=name),
    ),
    Situation(
        "another instance came", "INVALID_PRODUCER_EPOCH, PRODUCER_FENCED",
        "A second producer with the same transactional id took its place, and aborted what was open.",
        Effect.NO, "Stop: the other instance goes on. If there should be none, start anew.",
        lambda broker, name: broker.fence_next_commit(transactional_id=name),
    ),
    refused("TRANSACTION_ABORTABLE", "The broker can't commit this transaction, but the next one.", ABORT),
    refused("INVALID_TXN_STATE", "Broker and producer disagree whether a transaction is open.", NEW_PRODUCER),
    refused("INVALID_PRODUCER_ID_MAPPING", "The broker does not know the producer by this id.", NEW_PRODUCER),
    refused("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "The transactional id is not allowed.", MEND),
    refused("MESSAGE_TOO_LARGE", "A batch is larger than max.message.bytes of its topic.", ABORT, "send"),
    refused("OUT_OF_ORDER_SEQUENCE_NUMBER", "A message before this one did not arrive.", ABORT, "send"),
    refused("UNKNOWN_PRODUCER_ID", "The broker does not know the producer.", ABORT, "send"),
    refused("INVALID_PRODUCER_EPOCH", "The producer is not the newest with this id.", ABORT, "send"),
    refused("TOPIC_AUTHORIZATION_FAILED", "The topic is not allowed.", MEND, "send"),
)  # fmt: skip

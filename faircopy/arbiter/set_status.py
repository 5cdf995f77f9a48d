"""A replica set as people look at it: who leads, who is registered, and what a loss would cost now.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from faircopy.arbiter.backend import LeaseLeft
from faircopy.arbiter.record import SetRecord
from faircopy.arbiter.registration import (
    BROKERS,
    RECORD,
    Registered,
    record_in,
    registered_in,
    with_prefix,
)
from faircopy.arbiter.session import PREFIX as SESSIONS
from faircopy.storage.versioned_map import Versioned

Leases = Mapping[int, LeaseLeft | None]
"""What is left of the lease of each broker that is registered; None if that is not known."""


def status_of(set_name: str, entries: Mapping[str, Versioned], leases: Leases) -> dict[str, Any]:
    """The state of a set whose arbiter has these entries. Raises UnreadableEntry."""
    record = record_in(entries.get(RECORD))
    registered = registered_in(with_prefix(entries, BROKERS))
    if record is None:
        return {"replica_set": set_name, "record": "missing", "loss": no_record(set_name), "brokers": []}
    lives = {broker: each.incarnation for broker, each in registered.items()}
    waiting = with_sessions(entries) - set(registered)
    return {
        "replica_set": set_name,
        "set_id": record.set_id,
        "leader": record.leader if record.is_led(lives) else None,
        "epoch": record.epoch,
        "since_ms": record.since_ms,
        "unclean_epoch": record.unclean_epoch,
        "loss": cost_of_losses(record, lives),
        "brokers": [
            row_of(broker, record, registered.get(broker), leases.get(broker), is_waiting=broker in waiting)
            for broker in sorted({*record.replicas, *registered, *waiting})
        ],
    }


def row_of(
    broker: int,
    record: SetRecord,
    registered: Registered | None,
    lease: LeaseLeft | None,
    *,
    is_waiting: bool,
) -> dict[str, Any]:
    """One broker; while it is away, its directory. A lease that ends with its process has no age."""
    life = registered.incarnation if registered is not None else record.in_sync.get(broker)
    is_in = life is not None and record.in_sync.get(broker) == life
    has_clock = lease is not None and math.isfinite(lease.granted_seconds)
    return {
        "broker": broker,
        "state": state_of(broker, record, registered, is_waiting=is_waiting),
        "in_sync": is_in,
        "drafts": is_in and broker in record.drafts,
        "life": life,
        "address": registered.address if registered is not None else None,
        "host": registered.host if registered is not None else None,
        "lease_age_ms": age_ms(lease) if lease is not None and has_clock else None,
        "lease_ms": round(lease.granted_seconds * 1000) if lease is not None and has_clock else None,
    }


def state_of(broker: int, record: SetRecord, registered: Registered | None, *, is_waiting: bool) -> str:
    """What a broker does."""
    if registered is None:
        return "waits" if is_waiting else "away"
    if (broker, registered.incarnation) == (record.leader, record.leader_incarnation):
        return "leads"
    return "follows" if broker in record.replicas else "no replica"


def age_ms(lease: LeaseLeft) -> int:
    """How long ago a lease was renewed."""
    return max(round((lease.granted_seconds - lease.left_seconds) * 1000), 0)


def with_sessions(entries: Mapping[str, Versioned]) -> set[int]:
    """The brokers that have sessions. Those that are not registered wait for their turn."""
    names = (key.removeprefix(SESSIONS) for key in with_prefix(entries, SESSIONS))
    brokers = (name.partition(".")[0] for name in names)
    return {int(broker) for broker in brokers if broker.isdecimal()}


def cost_of_losses(record: SetRecord, lives: Mapping[int, int]) -> str:
    """One line: what the loss of which broker, or directory, would cost now."""
    sole = len(record.replicas) == 1
    if not record.is_led(lives):
        (wanted, *_) = record.replicas
        return (
            f"nobody leads: clients wait until a broker is started with the directory of broker {wanted}"
            if sole
            else "nobody leads: clients wait until one of the brokers in sync is started"
        )
    if sole:
        return (
            f"the loss of broker {record.leader} stops clients until its lease is gone and another process "
            f"leads its directory; the loss of that directory loses everything since the last backup"
        )
    followers = [each for each in record.replicas if each not in record.in_sync and each not in record.left]
    if followers and len(record.in_sync) == 1:
        return (
            f"the loss of broker {record.leader} stops clients until its directory is led again, since "
            f"nobody else is elected yet; broker(s) {', '.join(map(str, followers))} have what was "
            f"acknowledged, and can be started with --alone"
        )
    others = len(record.in_sync) - 1
    return f"the loss of broker {record.leader} costs a pause; {others} other(s) have all that is durable"


def no_record(set_name: str) -> str:
    """Why there is nothing to say."""
    return (
        f"the arbiter has no record of replica set {set_name}: check --arbiter and --replica-set; if the set "
        f"is new, start its first broker with --new-set"
    )

"""What people see of a replica set."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from faircopy.arbiter.backend import LeaseLeft
from faircopy.arbiter.record import NOBODY, SetRecord, encode
from faircopy.arbiter.registration import Registered, UnreadableEntry
from faircopy.arbiter.set_status import Leases, age_ms, status_of
from faircopy.storage.versioned_map import Versioned

SOLE = SetRecord("the set's id", (1,), 1, 5, 12, {1: 5}, frozenset({1}), since_ms=17)
THREE = SetRecord("the set's id", (1, 2, 3), 1, 4, 12, {1: 4, 2: 5}, frozenset({1}), unclean_epoch=11)
LEASE = LeaseLeft(10.0, 7.5)


def entries(
    record: SetRecord | None, lives: dict[int, int], sessions: tuple[str, ...] = ()
) -> dict[str, Versioned]:
    """What an arbiter has: each broker in `lives` is registered in that life."""
    found = {f"brokers/{broker}": json.dumps(Registered(life, f"{broker}:9092", f"m{broker}", 0)._asdict())
             for broker, life in lives.items()}  # fmt: skip
    values = {key: value.encode() for key, value in found.items()}
    values |= {f"sessions/{name}": b"1" for name in sessions}
    if record is not None:
        values["record"] = encode(record)
    return {key: Versioned(value, 1) for key, value in values.items()}


def status(
    record: SetRecord | None,
    lives: dict[int, int],
    sessions: tuple[str, ...] = (),
    leases: Leases | None = None,
) -> dict[str, Any]:
    return status_of("orders", entries(record, lives, sessions), leases or {})


def states(found: dict[str, Any]) -> dict[int, str]:
    return {row["broker"]: row["state"] for row in found["brokers"]}


def test_a_set_of_one_that_is_led() -> None:
    found = status(SOLE, {1: 5}, ("1.abc",), {1: LEASE})
    (row,) = found.pop("brokers")
    assert row == {
        "broker": 1, "state": "leads", "in_sync": True, "drafts": True, "life": 5, "address": "1:9092",
        "host": "m1", "lease_age_ms": 2500, "lease_ms": 10_000,
    }  # fmt: skip
    assert "the loss of that directory loses everything since the last backup" in found.pop("loss")
    assert found == {
        "replica_set": "orders", "set_id": "the set's id", "leader": 1, "epoch": 12, "since_ms": 17,
        "unclean_epoch": 0,
    }  # fmt: skip


def test_a_process_that_waits_for_its_turn() -> None:
    found = status(SOLE, {1: 5}, ("1.abc", "2.def"))
    assert states(found) == {1: "leads", 2: "waits"}
    assert found["brokers"][1]["life"] is None
    assert states(status(SOLE, {}, ("1.abc",))) == {1: "waits"}
    assert states(status(SOLE, {1: 5}, ("1.abc", "somebody else's"))) == {1: "leads"}


@pytest.mark.parametrize(
    ("record", "lives"),
    [(SOLE, {}), (SOLE, {1: 6}), (SOLE.resign(), {1: 5})],
    ids=["it is away", "another life", "it has resigned"],
)
def test_nobody_leads(record: SetRecord, lives: dict[int, int]) -> None:
    found = status(record, lives)
    assert found["leader"] is None
    assert found["loss"] == (
        "nobody leads: clients wait until a broker is started with the directory of broker 1"
    )


def test_a_life_that_is_not_in_sync_has_nothing_for_sure() -> None:
    (row,) = status(SOLE, {1: 6})["brokers"]
    assert (row["state"], row["in_sync"], row["drafts"], row["life"]) == ("follows", False, False, 6)


def test_a_directory_has_what_it_has_while_its_broker_is_away() -> None:
    (row,) = status(SOLE, {})["brokers"]
    assert (row["state"], row["in_sync"], row["drafts"], row["life"]) == ("away", True, True, 5)
    assert (row["address"], row["host"]) == (None, None)


def test_several_replicas() -> None:
    found = status(THREE, {1: 4, 2: 5, 9: 1})
    assert states(found) == {1: "leads", 2: "follows", 3: "away", 9: "no replica"}
    assert [row["in_sync"] for row in found["brokers"]] == [True, True, False, False]
    assert [row["drafts"] for row in found["brokers"]] == [True, False, False, False]
    assert found["loss"] == "the loss of broker 1 costs a pause; 1 other(s) have all that is durable"
    assert found["unclean_epoch"] == 11
    assert status(THREE, {2: 5})["loss"].startswith("nobody leads: clients wait until one of the brokers")


def test_no_record() -> None:
    found = status(None, {1: 5})
    assert (found["record"], found["brokers"]) == ("missing", [])
    assert "the arbiter has no record of replica set orders" in found["loss"]


@pytest.mark.parametrize("lease", [None, LeaseLeft(math.inf, math.inf)], ids=["not known", "of a process"])
def test_a_lease_without_a_clock_has_no_age(lease: LeaseLeft | None) -> None:
    (row,) = status(SOLE, {1: 5}, leases={1: lease})["brokers"]
    assert (row["lease_age_ms"], row["lease_ms"]) == (None, None)


def test_a_lease_is_never_renewed_in_the_future() -> None:
    assert age_ms(LeaseLeft(3.0, 3.2)) == 0


def test_a_record_that_cannot_be_read_raises() -> None:
    with pytest.raises(UnreadableEntry, match="can't be read"):
        status_of("orders", {"record": Versioned(b"{}", 1)}, {})


def test_a_leader_without_a_life_does_not_lead() -> None:
    record = SetRecord("the set's id", (1,), 1, NOBODY, 12, {1: 5})
    assert states(status(record, {1: 5})) == {1: "follows"}

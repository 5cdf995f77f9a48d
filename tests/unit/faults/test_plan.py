"""Which requests a fault happens to, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from faircopy.api.routes import ROUTES, schema_of
from faircopy.faults.fault import BadFault, Effect, parse_fault
from faircopy.faults.plan import FaultPlan
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.error_codes import ErrorCode
from tests.unit.faults.requests import request_of

SCHEMAS = {api_key: route.schema for api_key, route in ROUTES.items()}
TOPIC_ID = bytes(range(16))


def plan(**fault: Any) -> FaultPlan:
    found = FaultPlan()
    found.add(parse_fault(fault, SCHEMAS))
    return found


def hits(found: FaultPlan, api_key: ApiKey, version: int = 3, **given: Any) -> bool:
    """Whether a fault happens to a request."""
    names = {TOPIC_ID: "by id"}
    request = request_of(schema_of(api_key), version, **given)
    return found.take(api_key, request, names.get) is not None


def test_a_fault_happens_once() -> None:
    found = plan(api="EndTxn", effect="drop")
    assert found.has(ApiKey.END_TXN) and not found.has(ApiKey.PRODUCE)
    assert hits(found, ApiKey.END_TXN)
    assert not found.has(ApiKey.END_TXN)
    assert not hits(found, ApiKey.END_TXN)


def test_it_skips_some_and_happens_to_some() -> None:
    found = plan(api="EndTxn", effect="drop", skip=2, times=2)
    assert [hits(found, ApiKey.END_TXN) for _ in range(6)] == [False, False, True, True, False, False]


def test_it_may_never_end() -> None:
    found = plan(api="EndTxn", effect="drop", times=-1)
    assert all(hits(found, ApiKey.END_TXN) for _ in range(5))
    found.clear()
    assert not hits(found, ApiKey.END_TXN)


def test_a_commit_is_not_an_abort() -> None:
    found = plan(api="EndTxn", effect="drop", committed=True, transactional_id="mine")
    assert not hits(found, ApiKey.END_TXN, transactional_id="mine", committed=False)
    assert not hits(found, ApiKey.END_TXN, transactional_id="other", committed=True)
    assert hits(found, ApiKey.END_TXN, transactional_id="mine", committed=True)


@pytest.mark.parametrize(
    ("api_key", "version", "field"),
    [
        (ApiKey.PRODUCE, 9, "a"),
        (ApiKey.FETCH, 12, "a"),
        (ApiKey.FETCH, 13, "by id"),
        (ApiKey.METADATA, 9, "a"),
    ],
)
def test_a_topic_is_known_by_its_name_and_by_its_id(api_key: ApiKey, version: int, field: str) -> None:
    name = schema_of(api_key).name
    assert not hits(plan(api=name, effect="drop", topic="other"), api_key, version)
    assert hits(plan(api=name, effect="drop", topic=field), api_key, version)


def test_faults_are_met_in_their_order() -> None:
    found = plan(api="EndTxn", effect="refuse", error="NOT_COORDINATOR")
    found.add(parse_fault({"api": "EndTxn", "effect": "refuse", "error": -7}, SCHEMAS))
    request = request_of(schema_of(ApiKey.END_TXN), 3)
    taken = [found.take(ApiKey.END_TXN, request, lambda topic_id: None) for _ in range(2)]
    assert [each and (each.effect, each.error_code) for each in taken] == [
        (Effect.REFUSE, ErrorCode.NOT_COORDINATOR),
        (Effect.REFUSE, -7),
    ]


@pytest.mark.parametrize(
    "fault",
    [
        {"api": "Nothing", "effect": "drop"},
        {"api": "EndTxn", "effect": "explode"},
        {"api": "EndTxn"},
        {"api": "EndTxn", "effect": "refuse"},
        {"api": "EndTxn", "effect": "refuse", "error": "NO_SUCH_ERROR"},
        {"api": "EndTxn", "effect": "refuse", "error": 1 << 20},
        {"api": "EndTxn", "effect": "delay"},
        {"api": "EndTxn", "effect": "drop", "times": 0},
        {"api": "EndTxn", "effect": "drop", "skip": -1},
        {"api": "EndTxn", "effect": "drop", "colour": "red"},
        {"api": "Fetch", "effect": "fence"},
        {"api": "Fetch", "effect": "drop", "transactional_id": "mine"},
        {"api": "Fetch", "effect": "drop", "committed": True},
        {"api": "EndTxn", "effect": "drop", "topic": "t"},
        {"api": "EndTxn", "effect": "drop", "times": "often"},
    ],
)
def test_what_can_not_be_is_refused(fault: dict[str, Any]) -> None:
    with pytest.raises(BadFault):
        parse_fault(fault, SCHEMAS)

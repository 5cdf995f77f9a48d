"""While replicas are missing, what is new is refused before it is appended, and what was accepted waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from faircopy.journal.errors import NotEnoughReplicas
from faircopy.journal.shipping import NotShipped
from faircopy.wire.error_codes import ErrorCode
from tests.crash_states.stage import Stage
from tests.simulation.network import Remote
from tests.simulation.replicas import EVERY_HOLD, Replicas
from tests.simulation.test_waits_for_replicas import HELD_SECONDS, play, the_rest
from tests.simulation.waiting_requests import CASES, Case

ASKED_AGAIN = {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
"""What clients take for "not now": partitions say the first, coordinators the second."""


class Missing:
    """Whether a replica is missing; and the codes of all answers since then."""

    def __init__(self) -> None:
        self.is_missing = False
        self.codes: set[int] = set()

    def shortage(self) -> NotEnoughReplicas | None:
        return NotEnoughReplicas("the replica set lacks broker 3") if self.is_missing else None

    def hear(self, answer: Any) -> None:
        self.codes.update(codes_in(answer))


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Missing:
    missing, ask = Missing(), Remote.ask

    async def heard(self: Remote, *asked: Any, **options: Any) -> Any:
        answer = await ask(self, *asked, **options)
        if missing.is_missing:
            missing.hear(answer)
        return answer

    monkeypatch.setattr(Remote, "ask", heard)
    monkeypatch.setattr(NotShipped, "shortage", lambda _: missing.shortage())
    return missing


def codes_in(answer: Any) -> Iterator[int]:
    """The error codes of an answer, or of some rows of it, and of all rows in them."""
    if hasattr(answer, "error_code"):
        yield answer.error_code
    if isinstance(answer, (tuple, list)):
        for each in answer:
            yield from codes_in(each)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.scene.__name__)
def test_what_is_new_is_refused_and_what_ends_a_transaction_waits(case: Case, missing: Missing) -> None:
    async def scene(stage: Stage, replicas: Replicas) -> None:
        playing = case.scene(stage)
        await anext(playing)
        missing.is_missing = True
        await asyncio.sleep(HELD_SECONDS)
        replicas.hold(*EVERY_HOLD)
        before = replicas.appended
        asking = asyncio.ensure_future(the_rest(playing))
        await asyncio.wait([asking], timeout=HELD_SECONDS)
        assert (replicas.appended == before) == case.is_new
        refused = missing.codes - {ErrorCode.NONE}
        assert refused <= ASKED_AGAIN and bool(refused) == case.is_new, missing.codes
        assert case.is_new or not asking.done()
        missing.is_missing = False
        replicas.hold()
        if case.is_new:
            asking.cancel()
        await asyncio.gather(asking, return_exceptions=case.is_new)

    play(scene)

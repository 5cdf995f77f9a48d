"""An EndTxn that is repeated while the transactions before it end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from faircopy.journal.entry import TransactionId
from faircopy.transactions.coordinator import TransactionCoordinator


def test_it_is_answered_when_the_first_one_is() -> None:
    """Found by simulation: the table of ending transactions changed under the one who waited for them."""

    async def test() -> None:
        first, second = TransactionId(1, 0, 1), TransactionId(1, 0, 2)
        acks: dict[TransactionId, asyncio.Future[None]] = {first: asyncio.get_running_loop().create_future()}
        commits = SimpleNamespace(ack_of=acks.get, is_undecided=lambda _transactions: False)
        producer: Any = SimpleNamespace(ending={first: None, second: None}, needs_durable=False)
        coordinator: Any = SimpleNamespace(_commits=commits)
        home: Any = SimpleNamespace(safe=lambda *, is_durable: asyncio.sleep(0))
        repeated = asyncio.create_task(TransactionCoordinator._repeated_ack(coordinator, home, producer))
        await asyncio.sleep(0)
        assert not repeated.done()
        producer.ending.pop(first)
        acks.pop(first).set_result(None)
        await repeated

    asyncio.run(test())

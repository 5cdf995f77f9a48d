"""Two links that are the ends of one connection, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from faircopy.replication.handshake import Own
from faircopy.replication.life import Life
from faircopy.replication.link import Link, open_link
from tests.simulation.coverage import Coverage
from tests.simulation.loop import Life as Process
from tests.simulation.loop import VirtualLoop
from tests.simulation.switch import Switch

SET_ID = bytes(range(16))
SECRET = b"nobody knows this secret"
LEADER, FOLLOWER = Life(1, 57), Life(2, 31)
EPOCH, LEVEL = 12, 3
PATIENCE_SECONDS = 600.0


def own(life: Life, **different: Any) -> Own:
    """Who a broker says that it is."""
    chosen = random.Random(repr(life))
    known = Own(SET_ID, life, LEVEL, SECRET, partial(chosen.randbytes, 32))
    return known._replace(**different)


def run_linked(test: Callable[[Link, Link], Awaitable[None]], seed: int = 1) -> None:
    """Run a test with the link of whoever has called, and that of whoever was called."""
    loop = VirtualLoop()

    async def main() -> None:
        switch = Switch(loop, 2, random.Random(seed), Coverage())
        processes = [Process("caller"), Process("called")]
        for machine, process in enumerate(processes):
            switch.begin(machine, process)
        accepted: asyncio.Future[Link] = loop.create_future()
        switch.listen(1, lambda: Link(accepted.set_result))
        calling = loop.create_task(
            open_link(lambda protocol: switch.connect(0, 1, protocol)), context=processes[0].context
        )
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await test(await calling, await accepted)
        finally:
            for process in processes:
                process.end()

    try:
        loop.run(main())
    finally:
        loop.close()

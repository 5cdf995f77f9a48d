"""Fetch requests with many partitions: their work is spread over many ticks of the loop."""

from __future__ import annotations

import asyncio

from faircopy.api.fetch.answer import (
    INLINE_READ_BYTES,
    Answer,
    FetchPlanner,
    find_all,
    send,
    total_bytes,
)
from faircopy.api.fetch.sessions import Asking
from faircopy.loop.pace import Pace
from faircopy.net.exchange import Exchange
from faircopy.serving.parts import Parts
from faircopy.wire.messages import RequestHeader


async def fetch_many(
    parts: Parts, planner: FetchPlanner, exchange: Exchange, header: RequestHeader, asking: Asking
) -> None:
    """Answer a Fetch of so many partitions that others must have their turn in between. Raises ClientGone."""
    pace = parts.large_requests.pace_for(exchange.connection)
    answer = await make_large_answer(planner, asking, pace)
    if not answer.is_enough:
        answer = await wait_for_more(parts.loop, planner, exchange, asking, pace)
    is_small = total_bytes(answer.to_read) <= INLINE_READ_BYTES
    outcomes = await parts.disk.run(find_all, answer.to_read, answer.room(), is_small)
    async for read, outcome in pace.over(zip(answer.to_read, outcomes, strict=True)):
        answer.take(read, outcome)
    send(exchange, await parts.large_requests.run(answer.encoded, header))


async def make_large_answer(planner: FetchPlanner, asking: Asking, pace: Pace) -> Answer:
    """An answer as of now. Only roughly now, since logs may grow between two turns."""
    answer = Answer(planner, asking)
    async for asked in pace.over(asking.partitions):
        answer.add(asked)
    return answer


async def wait_for_more(
    loop: asyncio.AbstractEventLoop,
    planner: FetchPlanner,
    exchange: Exchange,
    asking: Asking,
    pace: Pace,
) -> Answer:
    """The answer when there is enough to send, or when time is up."""
    until_s = loop.time() + asking.request.max_wait_ms / 1000
    changed = asyncio.Event()
    watched = []
    timer = loop.call_at(until_s, changed.set)
    exchange.when_lost = changed.set
    try:
        async for asked in pace.over(asking.partitions):
            partition = planner.find(asked)
            if partition is not None:
                partition.log.watch(changed.set)
                watched.append(partition)
        while True:
            changed.clear()
            # Look before the first wait, too: a log may have grown before it was watched.
            answer = await make_large_answer(planner, asking, pace)
            if answer.is_enough or loop.time() >= until_s:
                return answer
            await changed.wait()
    finally:
        exchange.when_lost = None
        timer.cancel()
        for partition in watched:
            partition.log.unwatch(changed.set)

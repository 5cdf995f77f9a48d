"""Fetch requests of many partitions, whose work is shared out over many ticks of the loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from faircopy.api.fetch.answer import INLINE_READ_BYTES, Answer, find_all, send, total_bytes
from faircopy.loop.pace import Pace
from faircopy.net.connection import Exchange
from faircopy.wire.fetch import FetchRequest, encode_fetch_response, read_fetch_request
from faircopy.wire.messages import RequestHeader

if TYPE_CHECKING:
    from faircopy.api.fetch.fetch import FetchHandler


async def fetch_many(handler: FetchHandler, exchange: Exchange, header: RequestHeader, frame: memoryview) -> None:
    """Answer a Fetch request with so many partitions that others must have their turn in between.

    Raises MalformedMessage, ClientGone.
    """
    version, large = header.api_version, handler.large
    request = await large.run(read_fetch_request, version, frame, header.body_at)
    if request.session_id:
        handler.refuse_session(exchange, header)
        return
    pace = large.pace_for(exchange.connection)
    answer = await make_large_answer(handler, request, pace)
    if not answer.is_enough:
        answer = await wait_for_more(handler, exchange, request, pace)
    is_small = total_bytes(answer.to_read) <= INLINE_READ_BYTES
    outcomes = await handler.disk.run(find_all, answer.to_read, is_small)
    async for read, outcome in pace.over(zip(answer.to_read, outcomes, strict=True)):
        answer.take(read, outcome)
    send(exchange, await large.run(encode_fetch_response, version, header.correlation_id, answer.results))


async def make_large_answer(handler: FetchHandler, request: FetchRequest, pace: Pace) -> Answer:
    """An answer as of now: nearly, since logs may grow between two turns."""
    answer = Answer(handler.planner, request)
    async for asked in pace.over(request.partitions):
        answer.add(asked)
    return answer


async def wait_for_more(handler: FetchHandler, exchange: Exchange, request: FetchRequest, pace: Pace) -> Answer:
    """The answer when there is enough to send, or when time is up."""
    until_s = handler.loop.time() + request.max_wait_ms / 1000
    changed = asyncio.Event()
    watched = []
    timer = handler.loop.call_at(until_s, changed.set)
    exchange.when_lost = changed.set
    try:
        async for asked in pace.over(request.partitions):
            partition = handler.planner.catalog.find(asked.topic, asked.partition)
            if partition is not None:
                partition.log.watch(changed.set)
                watched.append(partition)
        while True:
            changed.clear()
            # Once before the first wait: a log may have grown before it was watched.
            answer = await make_large_answer(handler, request, pace)
            if answer.is_enough or handler.loop.time() >= until_s:
                return answer
            await changed.wait()
    finally:
        exchange.when_lost = None
        timer.cancel()
        for partition in watched:
            partition.log.unwatch(changed.set)

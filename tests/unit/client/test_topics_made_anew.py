"""Requests that have no room for a topic's id: what is answered counts only if the id is still there
afterwards.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from faircopy.client import DataLost
from faircopy.client.brokers import Brokers, Outcome
from faircopy.client.errors import request_failed
from faircopy.client.protocol import FETCH, LIST_OFFSETS, SPANS, Request
from faircopy.client.reading import PartitionToRead, Reading
from faircopy.wire.codec import Message
from faircopy.wire.error_codes import ErrorCode
from faircopy.wire.records import NewRecord, build_batch

OLD, NEW = b"the old topic id", b"the new topic id"
TIMESTAMP = -1


class OneTopic:
    """In place of `Brokers`: a topic with one message. After the request `made_anew_after`, it is another."""

    def __init__(self, made_anew_after: Request | None) -> None:
        self._made_anew_after = made_anew_after
        self._topic_id = OLD
        self.asked: list[Request] = []

    async def ask(
        self, find: Any, request: Request, body: Any, outcome: Outcome, doing: str, timeout_seconds: float
    ) -> Message:
        self.asked.append(request)
        answered = self._answer(request, body)
        if request is self._made_anew_after:
            self._topic_id = NEW
        code, message = outcome(answered)
        if code:
            raise request_failed(code, message, doing)
        return answered

    def _answer(self, request: Request, body: Any) -> Message:
        if request is SPANS:
            is_there = body["topic_id"] == self._topic_id
            return answer(error_code=ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_ID)
        records = build_batch([NewRecord(self._topic_id)])
        row = answer(error_code=0, offset=1, records=records)
        topics = [answer(partitions=[row])]
        return answer(error_code=0, responses=topics, topics=topics)


def answer(**fields: Any) -> Message:
    return cast(Message, SimpleNamespace(**fields))


def reading(brokers: OneTopic) -> Reading:
    return Reading(cast(Brokers, brokers), timeout_seconds=1)


async def read(brokers: OneTopic, topic_id: bytes) -> list[bytes]:
    place = PartitionToRead("orders", 0, topic_id)
    return [piece.data async for piece in reading(brokers).pieces(place, 0, 1)]


def test_what_was_read_before_the_topic_went_is_not_delivered() -> None:
    brokers = OneTopic(made_anew_after=FETCH)
    with pytest.raises(DataLost, match="topic orders was deleted, or deleted and made anew"):
        asyncio.run(read(brokers, OLD))
    assert brokers.asked == [FETCH, SPANS]


def test_an_offset_that_was_found_before_the_topic_went_is_not_told() -> None:
    brokers = OneTopic(made_anew_after=LIST_OFFSETS)
    with pytest.raises(DataLost, match="topic orders was deleted, or deleted and made anew"):
        asyncio.run(reading(brokers).offsets_at({("orders", 0): TIMESTAMP}, {"orders": OLD}))


def test_a_topic_that_is_still_there_is_read() -> None:
    brokers = OneTopic(made_anew_after=None)
    (data,) = asyncio.run(read(brokers, OLD))
    assert OLD in data


def test_without_an_id_nothing_more_is_asked() -> None:
    brokers = OneTopic(made_anew_after=FETCH)
    assert asyncio.run(read(brokers, bytes(16)))
    assert brokers.asked == [FETCH]

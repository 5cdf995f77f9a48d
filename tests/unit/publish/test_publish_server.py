"""Requests and replies: what is refused, what may be tried again, and that a failure stays with its table."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish.files import FsyncError
from faircopy.publish.layout import BAD_VALUES, Layout, TopicColumns
from faircopy.publish.requests import (
    Chunk,
    Cut,
    Drop,
    Open,
    Publish,
    RequestError,
    Tidy,
    format_request,
    parse_reply,
    parse_request,
    request_id,
)
from faircopy.publish.server import PublishServer
from faircopy.publish.trimming import Keep, Upkeep
from faircopy.wire.records import NewRecord
from tests.unit.publish.published_log import GrowingLog
from tests.unit.publish.simulated_disk import SimulatedFiles, failing_sync

NOW_MS = 1_790_000_000_000
GOOD = [NewRecord(b"value")] * 10
ORDERS = ("orders", 0)
HELD = {"next_offsets": {"orders": {"0": 10}}, "topic_ids": {"orders": "0f"}}

chunks = st.builds(Chunk, st.just("/log/0.log"), st.integers(0, 2**40), st.integers(0, 2**40))
spans = st.tuples(st.integers(0, 2**60), st.integers(0, 2**60), st.text(max_size=9))
cuts = st.builds(
    Cut,
    st.text(max_size=5),
    st.text(max_size=5),
    st.integers(0, 9),
    st.integers(0, 2**30),
    st.integers(2**30, 2**62),
    st.lists(chunks, max_size=2).map(tuple),
    st.lists(spans, max_size=2).map(tuple),
)
KEEP = {"topic": "orders", "first_offsets": {"0": 60}, "age_ms": -1}

keeps = st.lists(
    st.builds(
        Keep,
        st.text(max_size=5),
        st.dictionaries(st.integers(0, 9), st.integers(0, 2**62)),
        st.integers(-1, 2**40),
    ),
    max_size=3,
    unique_by=lambda keep: keep.topic,
).map(tuple)
columns = st.builds(TopicColumns, st.text(max_size=5), st.text(max_size=5), st.sampled_from(BAD_VALUES))
layouts = st.builds(
    Layout,
    st.lists(columns, max_size=3, unique_by=lambda topic: topic.topic).map(tuple),
    st.booleans(),
)
requests = st.one_of(
    st.builds(Open, st.text(max_size=5), st.just("/t"), layouts),
    st.builds(Drop, st.text(max_size=5), st.just("/t")),
    st.builds(
        Publish,
        st.text(max_size=5),
        st.just("/t"),
        st.lists(cuts, max_size=3, unique_by=lambda cut: (cut.topic, cut.partition)).map(tuple),
        layouts,
    ),
    st.builds(Tidy, st.text(max_size=5), st.just("/t"), st.builds(Upkeep, keeps, st.integers(0, 2**40))),
)


@given(st.integers(0, 2**60), requests)
def test_requests_come_back(number: int, request: Any) -> None:
    line = format_request(number, NOW_MS, request)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert parse_request(line) == (number, NOW_MS, request)


PUBLISH: dict[str, Any] = {
    "topic": "t", "topic_id": "0f", "partition": 0, "first_offset": 0, "end_offset": 1,
    "chunks": [], "spans": [],
}  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [
        [],
        {},
        {"id": 1},
        {"id": "1", "open": {}},
        {"id": 1, "close": {}},
        {"id": 1, "open": {"table": "t"}},
        {"id": 1, "open": {"table": "t", "directory": "relative"}},
        {"id": 1, "open": {"table": "t", "directory": "/t", "layout": []}},
        {"id": 1, "open": {"table": "t", "directory": "/t", "layout": {"topics": [], "by_day": 1}}},
        {"id": 1, "open": {"table": "t", "directory": "/t", "layout": {"topics": [{}], "by_day": True}}},
        {"id": 1, "drop": {"table": "t", "directory": "/"}},
        {"id": 1, "publish": {"table": "t", "directory": "/t"}},
        {"id": 1, "publish": {"table": "t", "directory": "/t", "partitions": [PUBLISH, PUBLISH]}},
        {"id": 1, "publish": {"table": "t", "directory": "/t", "partitions": [PUBLISH | {"partition": "0"}]}},
        {
            "id": 1,
            "publish": {"table": "t", "directory": "/t", "partitions": [PUBLISH | {"partition": True}]},
        },
        {
            "id": 1,
            "publish": {"table": "t", "directory": "/t", "partitions": [PUBLISH | {"first_offset": -1}]},
        },
        {
            "id": 1,
            "publish": {"table": "t", "directory": "/t", "partitions": [PUBLISH | {"first_offset": 2}]},
        },
        {"id": 1, "publish": {"table": "t", "directory": "/t", "partitions": [PUBLISH | {"chunks": [{}]}]}},
        {
            "id": 1,
            "publish": {"table": "t", "directory": "/t", "partitions": [PUBLISH | {"spans": [[1, 2]]}]},
        },
        {"id": 1, "tidy": {"table": "t", "directory": "/t"}},
        *(
            {"id": 1, "tidy": {"table": "t", "directory": "/t", "upkeep": upkeep}}
            for upkeep in (
                {"keeps": [], "grace_ms": "3"},
                {"keeps": [], "grace_ms": -1},
                {"keeps": [KEEP, KEEP], "grace_ms": 1},
                {"keeps": [KEEP | {"age_ms": -2}], "grace_ms": 1},
                {"keeps": [KEEP | {"first_offsets": {"x": 1}}], "grace_ms": 1},
                {"keeps": [KEEP | {"first_offsets": {"0": -1}}], "grace_ms": 1},
            )
        ),
    ],
)
def test_requests_that_are_refused(message: Any) -> None:
    line = json.dumps(message | {"now_ms": 0} if isinstance(message, dict) else message).encode()
    with pytest.raises(RequestError):
        parse_request(line)
    number, verb, body = parse_reply(PublishServer(SimulatedFiles()).answer(line)[0].replace(b"null", b"-1"))
    assert (verb, body["retry"]) == ("failed", False)
    assert number == (1 if request_id(line) == 1 else -1)


@pytest.mark.parametrize("now_ms", [None, -1, "0", 0.5])
def test_a_request_without_a_time_is_refused(now_ms: object) -> None:
    with pytest.raises(RequestError):
        parse_request(
            json.dumps({"id": 1, "now_ms": now_ms, "drop": {"table": "t", "directory": "/t"}}).encode()
        )


@given(st.binary(max_size=80))
def test_lines_of_garbage(line: bytes) -> None:
    reply, fatal = PublishServer(SimulatedFiles()).answer(line)
    assert b'"failed"' in reply and fatal is None


class Place:
    """A server on a simulated disk."""

    def __init__(self) -> None:
        self.files = SimulatedFiles()
        self.files.make_directory(Path("/log"))
        self.log = GrowingLog(self.files, Path("/log"), [ORDERS])
        self.server = PublishServer(self.files)

    def ask(self, request: Any) -> tuple[str, Any]:
        reply, _ = self.server.answer(format_request(7, NOW_MS, request))
        number, verb, body = parse_reply(reply)
        assert number == 7
        return verb, body

    def publish(self, table: str = "orders") -> Publish:
        self.log.append(ORDERS, GOOD)
        return Publish(table, f"/plain/{table}", self.log.cut())


def test_open_publish_drop() -> None:
    place = Place()
    assert place.ask(Open("orders", "/plain/orders")) == ("opened", {"next_offsets": {}, "topic_ids": {}})
    assert place.ask(place.publish())[1]["rows"] == 10
    assert place.ask(Open("orders", "/plain/orders")) == ("opened", HELD)
    assert place.ask(Drop("orders", "/plain/orders")) == ("dropped", {})
    assert place.ask(Open("orders", "/plain/orders")) == ("opened", {"next_offsets": {}, "topic_ids": {}})


def test_a_table_is_opened_by_the_first_publication() -> None:
    place = Place()
    verb, body = place.ask(place.publish())
    assert verb == "published"
    assert body.keys() == {
        "sequence", "rows", "bytes", "skipped_records", "skipped_offsets", "live_files",
        "dead_letters",
    }  # fmt: skip


def test_a_failure_stays_with_its_table() -> None:
    place = Place()
    place.ask(Open("broken", "/plain/broken"))
    place.ask(Open("orders", "/plain/orders"))
    entry = place.files.file(Path("/plain/broken/_spark_metadata/32"))
    entry.content, good = b"v1\n{", entry.content
    verb, body = place.ask(Open("broken", "/plain/broken"))
    assert (verb, body["retry"]) == ("failed", False)
    assert "plain table broken" in body["message"] and "32 is damaged" in body["message"]
    assert place.ask(place.publish())[0] == "published"
    entry.content = good
    assert place.ask(Open("broken", "/plain/broken"))[0] == "opened"


def test_what_may_be_tried_again() -> None:
    place = Place()
    place.ask(Open("orders", "/plain/orders"))
    request = place.publish()

    def full(operation: str) -> None:
        raise OSError(28, "No space left on device")

    place.files.before_operation = full
    verb, body = place.ask(request)
    assert (verb, body["retry"]) == ("failed", True)
    assert "No space left" in body["message"]
    place.files.before_operation = lambda operation: None
    assert place.ask(request)[1]["rows"] == 10


def test_a_segment_that_retention_deleted_meanwhile() -> None:
    place = Place()
    request = place.publish()
    place.files.delete(Path("/log/orders-0.log"))
    verb, body = place.ask(request)
    assert (verb, body["retry"]) == ("failed", True)


def test_a_log_that_does_not_fit() -> None:
    place = Place()
    request = place.publish()
    place.files.file(Path("/log/orders-0.log")).content = bytes(10_000)
    verb, body = place.ask(request)
    assert (verb, body["retry"]) == ("failed", False)


def test_after_a_failed_fsync_there_are_no_more_replies() -> None:
    place = Place()
    requests: list[Open | Publish] = [Open("orders", "/plain/orders"), place.publish(), place.publish()]
    lines = b"".join(format_request(number, NOW_MS, request) for number, request in enumerate(requests))
    syncs = iter(range(1000))

    def fail_late(operation: str) -> None:
        if operation == "sync" and next(syncs) == 20:
            failing_sync(operation)

    place.files.before_operation = fail_late
    replies = io.BytesIO()
    with pytest.raises(FsyncError):
        place.server.serve(io.BytesIO(lines), replies)
    verbs = [parse_reply(line)[1] for line in replies.getvalue().splitlines()]
    assert verbs[-1] == "failed" and verbs[:-1] == ["opened", "published"][: len(verbs) - 1]
    assert parse_reply(replies.getvalue().splitlines()[-1])[2]["retry"] is True

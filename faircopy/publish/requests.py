"""Requests to the publisher and its replies, as values and as JSON. One line of JSON each.

    {"id": 1, "now_ms": 1790000000000, "open": {"table": "orders", "directory": "/plain/orders",
         "layout": {"by_day": false,
                    "topics": [{"topic": "orders", "schema": "id bigint", "bad_values": "keep"}]}}}
        -> {"id": 1, "opened": {"next_offsets": {"orders": {"0": 120}}, "topic_ids": {"orders": "3f2a..."}}}
    {"id": 2, "now_ms": 1790000000900, "publish": {"table": "orders", "directory": "/plain/orders",
         "layout": {"by_day": false, "topics": []},
         "partitions": [
            {"topic": "orders", "topic_id": "3f2a...", "partition": 0, "first_offset": 120, "end_offset": 180,
             "chunks": [{"path": "/log/orders-0/0.log", "position": 4096, "size": 8192}],
             "spans": [[120, 129, "7.0.1"]]}]}}
        -> {"id": 2, "published": {"sequence": 40, "rows": 60, "bytes": 12345, ...}}
    {"id": 3, "now_ms": 1790000001000, "drop": {"table": "orders", "directory": "/plain/orders"}}
        -> {"id": 3, "dropped": {}}
    {"id": 4, "now_ms": 1790000002000, "tidy": {"table": "orders", "directory": "/plain/orders",
         "upkeep": {"grace_ms": 3600000,
                    "keeps": [{"topic": "orders", "first_offsets": {"0": 60}, "age_ms": -1}]}}}
        -> {"id": 4, "tidied": {"dropped_files": 2, "retired_files": 3, "left_files": 5}}
    any -> {"id": 2, "failed": {"message": "...", "retry": true}}

`now_ms` is the broker's steady clock, which measures the age of tables' files. Chunks are whole batches of
the broker's log, in order. A span is a transaction's first and last offset, and its TxId. Everything is
checked before it is used, since the broker and the publisher may have different versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from faircopy.errors import FaircopyError
from faircopy.publish.layout import NO_COLUMNS, Layout, TopicColumns
from faircopy.publish.trimming import FOREVER_MS, Keep, Upkeep

TxidSpan = tuple[int, int, str]
"""The first and last offset of a transaction, and its TxId, as tables show it."""

_T = TypeVar("_T")


class RequestError(FaircopyError):
    """A line is not a request, or not a reply."""


class Chunk(NamedTuple):
    """`size` bytes of the file at `path` (absolute), from `position` on."""

    path: str
    position: int
    size: int


class Cut(NamedTuple):
    """One partition's part of a publication: its rows from `first_offset` to before `end_offset`."""

    topic: str
    topic_id: str
    partition: int
    first_offset: int
    end_offset: int
    chunks: tuple[Chunk, ...]
    spans: tuple[TxidSpan, ...] = ()


class Open(NamedTuple):
    """Create the table if it does not exist, recover it from a crash, give it the columns of `layout`, and
    return what it holds.
    """

    table: str
    directory: str
    layout: Layout = NO_COLUMNS


class Publish(NamedTuple):
    """Add one file with all of these rows: all or nothing."""

    table: str
    directory: str
    partitions: tuple[Cut, ...]
    layout: Layout = NO_COLUMNS


class Drop(NamedTuple):
    """Delete the table."""

    table: str
    directory: str


class Tidy(NamedTuple):
    """Drop the rows that are not kept, and delete files whose grace is over."""

    table: str
    directory: str
    upkeep: Upkeep


Request = Open | Publish | Drop | Tidy


class Published(NamedTuple):
    """The result of a publication. If all of it was published before, `rows` is 0 and `sequence` that of an
    earlier one.

    `bytes` is the file's size. `skipped_records` could not be decoded; `skipped_offsets` were in no request,
    since they were deleted before (offsets before the first publication of a partition do not count).
    `live_files` are those that a batch read takes. `dead_letters` went to another table.
    """

    sequence: int
    rows: int
    bytes: int
    skipped_records: int
    skipped_offsets: int
    live_files: int
    dead_letters: int = 0


class Tidied(NamedTuple):
    """How many files a table dropped. `retired_files` wait for the end of their grace. `left_files` have
    rows; those that a merged file covers do not count.
    """

    dropped_files: int
    retired_files: int
    left_files: int = 0


def format_request(number: int, now_ms: int, request: Request) -> bytes:
    """The line for a request, with the newline."""
    return _line({"id": number, "now_ms": now_ms, _VERBS[type(request)]: _as_json(request)})


def parse_request(line: bytes) -> tuple[int, int, Request]:
    """(id, time, request). Raises RequestError."""
    message = _message(line)
    for verb, parse in _PARSERS.items():
        if verb in message:
            return message["id"], _checked(_now_ms, message), _checked(parse, message[verb])
    raise RequestError(f"a request asks for none of {', '.join(_PARSERS)}: {line[:200]!r}")


def request_id(line: bytes) -> int | None:
    """The id of a line that may not be a request, or None."""
    try:
        return int(_message(line)["id"])
    except RequestError:
        return None


def format_reply(number: int | None, verb: str, body: Mapping[str, Any]) -> bytes:
    """The line for a reply, with the newline."""
    return _line({"id": number, verb: body})


def parse_reply(line: bytes) -> tuple[int, str, dict[str, Any]]:
    """(id, verb, body). Raises RequestError."""
    message = _message(line)
    verbs = [key for key in message if key != "id"]
    if len(verbs) != 1 or not isinstance(message[verbs[0]], dict):
        raise RequestError(f"not a reply of the publisher: {line[:200]!r}")
    return message["id"], verbs[0], message[verbs[0]]


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"a line is not JSON ({error}): {line[:200]!r}") from None
    if not isinstance(message, dict) or not isinstance(message.get("id"), int):
        raise RequestError(f"a line is not an object with an id: {line[:200]!r}")
    return message


def _as_json(value: Any) -> Any:
    """Named tuples as objects, at any depth; spans stay lists."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _as_json(field) for name, field in value._asdict().items()}
    return [_as_json(item) for item in value] if isinstance(value, tuple) else value


def _checked(parse: Callable[[Any], _T], body: Any) -> _T:
    try:
        return parse(body)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RequestError(f"a request has a wrong or missing part: {error!r}") from None


def _now_ms(message: Any) -> int:
    return _natural(message, "now_ms")


def _typed(body: Any, name: str, kind: type[_T]) -> _T:
    value = body[name]
    if type(value) is not kind:
        raise TypeError(f"{name} should be of type {kind.__name__}")
    return value


def _natural(body: Any, name: str) -> int:
    value = _typed(body, name, int)
    if value < 0:
        raise ValueError(f"{name} is negative")
    return value


def _absolute(body: Any, name: str) -> str:
    value = _typed(body, name, str)
    if not value.startswith("/") or not value.strip("/"):
        raise ValueError(f"{name} is not an absolute path")
    return value


def _open(body: Any) -> Open:
    return Open(_typed(body, "table", str), _absolute(body, "directory"), _layout(body))


def _publish(body: Any) -> Publish:
    cuts = tuple(_cut(cut) for cut in _typed(body, "partitions", list))
    if len({(cut.topic, cut.partition) for cut in cuts}) < len(cuts):
        raise ValueError("a partition comes twice")
    return Publish(_typed(body, "table", str), _absolute(body, "directory"), cuts, _layout(body))


def _layout(body: Any) -> Layout:
    if "layout" not in body:
        return NO_COLUMNS
    layout = _typed(body, "layout", dict)
    topics = tuple(
        TopicColumns(*(_typed(each, name, str) for name in TopicColumns._fields))
        for each in _typed(layout, "topics", list)
    )
    if len({each.topic for each in topics}) < len(topics):
        raise ValueError("a topic comes twice")
    return Layout(topics, _typed(layout, "by_day", bool))


def _tidy(body: Any) -> Tidy:
    upkeep = _typed(body, "upkeep", dict)
    keeps = tuple(_keep(keep) for keep in _typed(upkeep, "keeps", list))
    if len({keep.topic for keep in keeps}) < len(keeps):
        raise ValueError("a topic comes twice")
    return Tidy(
        _typed(body, "table", str), _absolute(body, "directory"), Upkeep(keeps, _natural(upkeep, "grace_ms"))
    )


def _keep(body: Any) -> Keep:
    age_ms = _typed(body, "age_ms", int)
    if age_ms < FOREVER_MS:
        raise ValueError("age_ms is negative")
    return Keep(_typed(body, "topic", str), _offsets(body["first_offsets"]), age_ms)


def _offsets(body: Any) -> dict[int, int]:
    if not isinstance(body, dict):
        raise TypeError("offsets of partitions should be an object")
    return {int(name): _natural(body, name) for name in body}


def _drop(body: Any) -> Drop:
    return Drop(_typed(body, "table", str), _absolute(body, "directory"))


def _cut(body: Any) -> Cut:
    if _natural(body, "first_offset") > _natural(body, "end_offset"):
        raise ValueError("first_offset is beyond end_offset")
    return Cut(
        _typed(body, "topic", str),
        _typed(body, "topic_id", str),
        _natural(body, "partition"),
        _natural(body, "first_offset"),
        _natural(body, "end_offset"),
        tuple(
            Chunk(_absolute(chunk, "path"), _natural(chunk, "position"), _natural(chunk, "size"))
            for chunk in _typed(body, "chunks", list)
        ),
        tuple((int(first), int(last), str(txid)) for first, last, txid in body.get("spans", [])),
    )


_PARSERS: dict[str, Callable[[Any], Request]] = {
    "open": _open,
    "publish": _publish,
    "drop": _drop,
    "tidy": _tidy,
}
_VERBS: dict[type[Any], str] = {Open: "open", Publish: "publish", Drop: "drop", Tidy: "tidy"}

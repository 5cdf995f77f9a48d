"""What a source reads: topics and partitions, and from which offset to which, in the words of Spark's Kafka
source. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from faircopy.client import EARLIEST, LATEST
from faircopy.client.brokers import KnownTopic, TopicPartition
from faircopy.spark.options import BadOption, Options

WAYS = ("subscribe", "subscribePattern", "assign")
WORDS = {"earliest": EARLIEST, "latest": LATEST}
Offsets = dict[TopicPartition, int]


@dataclass(frozen=True)
class Bound:
    """Where reading starts or ends: an offset for some partitions, or a time. What is neither is `otherwise`.

    Among offsets, EARLIEST and LATEST stand for the start and the end. `at_ms` is for all partitions,
    `times_ms` for some; where nothing is so new, `otherwise` holds if `or_otherwise`, or else it is an error.
    """

    otherwise: int
    offsets: Offsets = field(default_factory=dict)
    at_ms: int | None = None
    times_ms: Offsets = field(default_factory=dict)
    or_otherwise: bool = True

    @property
    def is_otherwise_only(self) -> bool:
        """Whether it says nothing about particular partitions or times."""
        return not self.offsets and not self.times_ms and self.at_ms is None


class Subscription(NamedTuple):
    """Which partitions are read: by the way that an option has named."""

    way: str
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def partitions(self, known: Mapping[str, KnownTopic]) -> list[TopicPartition]:
        """The partitions that there are now, in order."""
        if self.way == "assign":
            return [
                each for each in self.assigned if each[0] in known and each[1] < known[each[0]].partitions
            ]
        names = self.topics if self.pattern is None else sorted(filter(self.pattern.fullmatch, known))
        return [(name, number) for name in names if name in known for number in range(known[name].partitions)]

    def missing(self, known: Mapping[str, KnownTopic]) -> list[str]:
        """What is named and not there."""
        found = set(self.partitions(known))
        if self.way == "assign":
            return [f"{topic}-{number}" for topic, number in self.assigned if (topic, number) not in found]
        return [name for name in self.topics if name not in known]


def subscription_of(options: Options) -> Subscription:
    """What the options subscribe to. Raises BadOption."""
    given = [way for way in WAYS if options.text(way) is not None]
    if len(given) != 1:
        raise BadOption(f"give exactly one of the options {', '.join(WAYS)}: there are {given or 'none'}")
    (way,) = given
    if way == "subscribe":
        topics = tuple(filter(None, (each.strip() for each in options.required(way, "").split(","))))
        return Subscription(way, topics=dict_of(topics))
    if way == "subscribePattern":
        return Subscription(way, pattern=options.parsed(way, compiled))
    return Subscription(way, assigned=options.parsed(way, assigned) or ())


def dict_of(topics: tuple[str, ...]) -> tuple[str, ...]:
    """Each topic once."""
    return tuple(dict.fromkeys(topics))


def compiled(text: str) -> re.Pattern[str]:
    """A regular expression. Raises ValueError."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(str(error)) from error


def assigned(text: str) -> tuple[TopicPartition, ...]:
    """`{"topic": [0, 1]}`. Raises ValueError, TypeError, AttributeError."""
    return tuple((topic, int(number)) for topic, numbers in json.loads(text).items() for number in numbers)


def starting(options: Options, otherwise: str) -> Bound:
    """Where reading starts. Raises BadOption."""
    is_error = options.choice("startingOffsetsByTimestampStrategy", {"error": True, "latest": False}, True)
    return replace(bound(options, "starting", otherwise), or_otherwise=not is_error)


def ending(options: Options) -> Bound:
    """Where a batch ends. Raises BadOption."""
    return bound(options, "ending", "latest")


def bound(options: Options, which: str, otherwise: str) -> Bound:
    """The bound that options with this prefix give. Raises BadOption."""
    at_ms = options.number(f"{which}Timestamp")
    if at_ms is not None:
        return Bound(LATEST, at_ms=at_ms)
    times_ms = options.parsed(f"{which}OffsetsByTimestamp", by_partition)
    if times_ms is not None:
        return Bound(LATEST if which == "ending" else EARLIEST, times_ms=times_ms)
    text = options.text(f"{which}Offsets", otherwise) or ""
    if text.lower() in WORDS:
        return Bound(WORDS[text.lower()])
    offsets = options.parsed(f"{which}Offsets", by_partition) or {}
    return Bound(LATEST if which == "ending" else EARLIEST, offsets=offsets)


def by_partition(text: str) -> Offsets:
    """`{"topic": {"0": 17}}`, where -2 is the earliest and -1 the latest. Raises ValueError."""
    found: Offsets = {}
    for topic, numbers in json.loads(text).items():
        for number, offset in numbers.items():
            if int(offset) < EARLIEST_IN_JSON:
                raise ValueError(f"offset {offset} of {topic}-{number} is neither one nor -1 or -2")
            found[topic, int(number)] = int(offset)
    return found


EARLIEST_IN_JSON = -2
assert (EARLIEST, LATEST) == (-2, -1), "those in JSON are the broker's own"


class Position(NamedTuple):
    """How far a stream has come: the offset that is next in each partition, and the ids of topics."""

    offsets: Offsets
    topic_ids: dict[str, bytes]

    def as_json(self) -> dict[str, Any]:
        """What Spark keeps in a checkpoint: {"topic": {"id": hexadecimal, "offsets": {"0": 17}}}."""
        found: dict[str, Any] = {}
        for (topic, number), offset in sorted(self.offsets.items()):
            row = found.setdefault(topic, {"id": self.topic_ids[topic].hex(), "offsets": {}})
            row["offsets"][str(number)] = offset
        return found

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Position:
        """The inverse of `as_json`."""
        offsets = {
            (topic, int(number)): offset
            for topic, row in stored.items()
            for number, offset in row["offsets"].items()
        }
        return cls(offsets, {topic: bytes.fromhex(row["id"]) for topic, row in stored.items()})

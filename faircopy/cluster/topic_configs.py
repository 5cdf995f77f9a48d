"""Settings of a topic: names, defaults and checks. Names are Kafka's where Kafka has them; `plain.*` are faircopy's
own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from faircopy.errors import FaircopyError

INT64_MAX = 2**63 - 1


class InvalidTopicConfig(FaircopyError):
    """A topic setting is unknown, or has a value that it can't have; nothing was changed."""


class TopicConfig(NamedTuple):
    """One setting. `kind` is Kafka's ConfigDef type code: 1 boolean, 2 string, 3 int, 5 long, 7 list."""

    name: str
    kind: int
    default: str
    about: str
    check: Callable[[str], bool]
    expected: str


def whole_number(least: int, most: int = INT64_MAX) -> tuple[Callable[[str], bool], str]:
    def check(text: str) -> bool:
        return bool(re.fullmatch(r"-?\d{1,19}", text)) and least <= int(text) <= most

    return check, f"a whole number from {least} to {most}"


def one_of(*choices: str) -> tuple[Callable[[str], bool], str]:
    return (lambda text: text in choices), " or ".join(choices)


def table_name(text: str) -> bool:
    return not text or (bool(re.fullmatch(r"[a-zA-Z0-9._-]{1,200}", text)) and text not in (".", ".."))


CONFIGS = {
    config.name: config
    for config in (
        TopicConfig("cleanup.policy", 7, "delete", "what happens to old messages", *one_of("delete")),
        TopicConfig("retention.ms", 5, "604800000", "age at which messages go; -1 never", *whole_number(-1)),
        TopicConfig("retention.bytes", 5, "-1", "log size above which old messages go; -1 never", *whole_number(-1)),
        TopicConfig("segment.bytes", 3, "268435456", "size of a log segment", *whole_number(1 << 14, 2**31 - 1)),
        TopicConfig("max.message.bytes", 3, "1048588", "largest record batch", *whole_number(1, 2**31 - 1)),
        TopicConfig("message.timestamp.type", 2, "CreateTime", "whose clock", *one_of("CreateTime", "LogAppendTime")),
        TopicConfig("compression.type", 2, "producer", "batches stay as the producer sent them", *one_of("producer")),
        TopicConfig(
            "min.insync.replicas",
            3,
            "1",
            "replicas that must have a message before the ack",
            *whole_number(1, 1),
        ),
        TopicConfig("plain.enabled", 1, "true", "publish as a plain Parquet table", *one_of("true", "false")),
        TopicConfig(
            "plain.table",
            2,
            "",
            "plain table to publish to; empty: one named as the topic",
            table_name,
            "a name",
        ),
        TopicConfig("plain.interval.ms", 5, "1000", "time between publications", *whole_number(50)),
        TopicConfig("plain.max.bytes", 5, "268435456", "publish earlier when so much is waiting", *whole_number(1)),
    )
}


def check_configs(configs: Mapping[str, str | None]) -> None:
    """Raise InvalidTopicConfig unless every setting is known and has a value that it may have."""
    for name, value in configs.items():
        config = CONFIGS.get(name)
        if config is None:
            raise InvalidTopicConfig(f"unknown topic setting {name!r}; known are {', '.join(CONFIGS)}")
        if value is None or not config.check(value):
            hint = "; faircopy keeps contiguous offsets and does not compact" if name == "cleanup.policy" else ""
            raise InvalidTopicConfig(f"topic setting {name} can't be {value!r}: give {config.expected}{hint}")

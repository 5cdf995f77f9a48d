"""Settings of a topic: names, defaults and checks. Names are Kafka's where Kafka has them; `plain.*` are
faircopy's own.

Every setting of Kafka 4 is accepted, kept and shown, since tools set them whether they matter or not. The
second part of the table has those without effect here, each with the reason. Defaults are Kafka's, except for
`segment.bytes` and the timestamp limits: a broker whose clock is wrong must not reject anything unless it is
told to.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from faircopy.errors import FaircopyError
from faircopy.settings.columns import BadTableSchema, parse_columns

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
WITHOUT_EFFECT = "No effect here: "


class InvalidTopicConfig(FaircopyError):
    """A topic setting is unknown, or its value is illegal. Nothing was changed."""


class ConfigType(IntEnum):
    """The type of a setting (Kafka: ConfigDef.Type), as DescribeConfigs numbers it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Validator(NamedTuple):
    """Accepts or refuses a value (Kafka: ConfigDef.Validator). `expected` says what it should be."""

    passes: Callable[[str], bool]
    expected: str


class TopicConfig(NamedTuple):
    """One setting. `hint` goes into the error when a value is refused."""

    name: str
    type: ConfigType
    default: str
    about: str
    validator: Validator
    hint: str = ""


def whole_number(least: int, most: int = INT64_MAX) -> Validator:
    """Accepts decimal integers from `least` to `most`, both inclusive."""

    def passes(text: str) -> bool:
        return bool(re.fullmatch(r"-?[0-9]{1,19}", text)) and least <= int(text) <= most

    return Validator(passes, f"a whole number from {least} to {most}")


def fraction(text: str) -> bool:
    """Whether text is a number from 0 to 1."""
    try:
        return math.isfinite(float(text)) and 0 <= float(text) <= 1
    except ValueError:
        return False


def one_of(*choices: str) -> Validator:
    """Accepts one of these words."""
    return Validator(lambda text: text in choices, " or ".join(choices))


def pattern(expression: str, expected: str) -> Validator:
    """Accepts what matches a regular expression. `expected` describes it for people."""
    return Validator(lambda text: bool(re.fullmatch(expression, text)), expected)


def elements(text: str) -> list[str]:
    """The elements of a list, as Kafka reads them."""
    return [element.strip() for element in text.split(",")] if text.strip() else []


def list_of(*choices: str) -> Validator:
    """Accepts a comma-separated list of at least one of these words."""
    return Validator(
        lambda text: bool(elements(text)) and set(elements(text)) <= set(choices), " or ".join(choices)
    )


BOOLEAN = Validator(lambda text: text.lower() in ("true", "false"), "true or false")
THROTTLED = pattern(r"\*|([0-9]+:[0-9]+(,[0-9]+:[0-9]+)*)?", "PARTITION:BROKER,... or *")
NO_COMPACTION = f"{WITHOUT_EFFECT}compacted topics keep all messages"
NO_REPLICATION = f"{WITHOUT_EFFECT}there is one broker"
NO_TIERS = f"{WITHOUT_EFFECT}there is no tiered storage"
OWN_INDEX = f"{WITHOUT_EFFECT}faircopy has its own index"
OWN_FLUSH = f"{WITHOUT_EFFECT}the broker's setting durability says when data is flushed"
AS_SENT = f"{WITHOUT_EFFECT}batches stay as their producer sent them, and all consumers read all codecs"
OLD_FORMATS = f"{WITHOUT_EFFECT}there is one message format"

# fmt: off
_ROWS: Sequence[TopicConfig] = (
    TopicConfig("cleanup.policy", ConfigType.LIST, "delete",
                "what happens to old messages; delete: they go by retention.*; compact: they all stay, since "
                "faircopy does not compact yet; compact,delete: as delete",
                list_of("delete", "compact")),
    TopicConfig("retention.ms", ConfigType.LONG, "604800000", "age at which messages go; -1 never",
                whole_number(-1)),
    TopicConfig("retention.bytes", ConfigType.LONG, "-1", "log size above which old messages go; -1 never",
                whole_number(-1)),
    TopicConfig("segment.ms", ConfigType.LONG, "604800000", "age at which a log segment is closed",
                whole_number(1)),
    TopicConfig("segment.bytes", ConfigType.INT, "268435456", "size of a log segment",
                whole_number(1 << 14, INT32_MAX)),
    TopicConfig("max.message.bytes", ConfigType.INT, "1048588", "largest record batch",
                whole_number(0, INT32_MAX)),
    TopicConfig("message.timestamp.type", ConfigType.STRING, "CreateTime", "whose clock",
                one_of("CreateTime", "LogAppendTime")),
    TopicConfig("message.timestamp.before.max.ms", ConfigType.LONG, str(INT64_MAX),
                "how far behind the broker's clock a batch's first message may be", whole_number(0)),
    TopicConfig("message.timestamp.after.max.ms", ConfigType.LONG, str(INT64_MAX),
                "how far ahead of the broker's clock a message may be", whole_number(0)),
    TopicConfig("message.timestamp.difference.max.ms", ConfigType.LONG, str(INT64_MAX),
                "both of the above, as Kafka before 4 called them", whole_number(0)),
    TopicConfig("transactional.ack", ConfigType.STRING, "written",
                "what the ack of a message in an open transaction means; written: it survives a kill of the "
                "broker; durable: with durability fsync, also a loss of power",
                one_of("written", "durable")),
    TopicConfig("transactional.ack.offset", ConfigType.STRING, "expected",
                "offsets in the acks of transactional batches; expected: where they go if nobody else writes "
                "first, and never lower; none: -1", one_of("none", "expected")),
    TopicConfig("plain.enabled", ConfigType.BOOLEAN, "true",
                "publish as a plain Parquet table; unless it is set, compacted topics have none",
                one_of("true", "false")),
    TopicConfig("plain.table", ConfigType.STRING, "",
                "plain table to publish to; empty: one named as the topic",
                pattern(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{0,200}", "a name")),
    TopicConfig("plain.value.format", ConfigType.STRING, "binary",
                "what values are; json: the plain table has a column for each field of plain.schema",
                one_of("binary", "json")),
    TopicConfig("plain.schema", ConfigType.STRING, "",
                "columns of the plain table from JSON values, as in SQL: id bigint, name string",
                Validator(lambda text: True, "columns as in SQL")),
    TopicConfig("plain.bad.values", ConfigType.STRING, "keep",
                "values that do not fit plain.schema become nulls, or stop the table, or go to another table",
                one_of("keep", "stop", "dead-letter")),
    TopicConfig("plain.partition.by", ConfigType.STRING, "none",
                "day: the plain table has a column day, and merged files end with the day",
                one_of("none", "day")),
    TopicConfig("plain.interval.ms", ConfigType.LONG, "10000", "time between publications", whole_number(50)),
    TopicConfig("plain.max.bytes", ConfigType.LONG, "268435456", "publish earlier when so much is waiting",
                whole_number(1)),
    TopicConfig("plain.retention.ms", ConfigType.LONG, "-2",
                "age at which rows leave the plain table; -1 never, -2 when the topic no longer has them",
                whole_number(-2)),
    TopicConfig("plain.grace.ms", ConfigType.LONG, "3600000",
                "how long files stay on disk after the table has dropped them; queries must not take longer",
                whole_number(1_000)),

    TopicConfig("compression.type", ConfigType.STRING, "producer", AS_SENT,
                one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")),
    TopicConfig("compression.gzip.level", ConfigType.INT, "-1", AS_SENT,
                pattern("-1|[1-9]", "1 to 9, or -1")),
    TopicConfig("compression.lz4.level", ConfigType.INT, "9", AS_SENT, whole_number(1, 17)),
    TopicConfig("compression.zstd.level", ConfigType.INT, "3", AS_SENT, whole_number(-131_072, 22)),
    TopicConfig("min.insync.replicas", ConfigType.INT, "1", NO_REPLICATION, whole_number(1, INT32_MAX)),
    TopicConfig("unclean.leader.election.enable", ConfigType.BOOLEAN, "false", NO_REPLICATION, BOOLEAN),
    TopicConfig("leader.replication.throttled.replicas", ConfigType.LIST, "", NO_REPLICATION, THROTTLED),
    TopicConfig("follower.replication.throttled.replicas", ConfigType.LIST, "", NO_REPLICATION, THROTTLED),
    TopicConfig("segment.jitter.ms", ConfigType.LONG, "0",
                f"{WITHOUT_EFFECT}segments are closed when they are due",
                whole_number(0)),
    TopicConfig("segment.index.bytes", ConfigType.INT, "10485760", OWN_INDEX, whole_number(4, INT32_MAX)),
    TopicConfig("index.interval.bytes", ConfigType.INT, "4096", OWN_INDEX, whole_number(0, INT32_MAX)),
    TopicConfig("flush.messages", ConfigType.LONG, str(INT64_MAX), OWN_FLUSH, whole_number(1)),
    TopicConfig("flush.ms", ConfigType.LONG, str(INT64_MAX), OWN_FLUSH, whole_number(0)),
    TopicConfig("preallocate", ConfigType.BOOLEAN, "false",
                f"{WITHOUT_EFFECT}journals are always preallocated", BOOLEAN),
    TopicConfig("file.delete.delay.ms", ConfigType.LONG, "60000",
                f"{WITHOUT_EFFECT}files are deleted at once",
                whole_number(0)),
    TopicConfig("delete.retention.ms", ConfigType.LONG, "86400000", NO_COMPACTION, whole_number(0)),
    TopicConfig("min.compaction.lag.ms", ConfigType.LONG, "0", NO_COMPACTION, whole_number(0)),
    TopicConfig("max.compaction.lag.ms", ConfigType.LONG, str(INT64_MAX), NO_COMPACTION, whole_number(1)),
    TopicConfig("min.cleanable.dirty.ratio", ConfigType.DOUBLE, "0.5", NO_COMPACTION,
                Validator(fraction, "a number from 0 to 1")),
    TopicConfig("message.format.version", ConfigType.STRING, "3.0-IV1", OLD_FORMATS,
                pattern(r"[0-9]+(\.[0-9]+)+(-IV[0-9]+)?", "a version such as 3.0-IV1")),
    TopicConfig("message.downconversion.enable", ConfigType.BOOLEAN, "true", OLD_FORMATS, BOOLEAN),
    TopicConfig("remote.storage.enable", ConfigType.BOOLEAN, "false", NO_TIERS, one_of("false"),
                "there is no tiered storage"),
    TopicConfig("remote.log.copy.disable", ConfigType.BOOLEAN, "false", NO_TIERS, BOOLEAN),
    TopicConfig("remote.log.delete.on.disable", ConfigType.BOOLEAN, "false", NO_TIERS, BOOLEAN),
    TopicConfig("remote.copy.lag.ms", ConfigType.LONG, "0", NO_TIERS, whole_number(-1)),
    TopicConfig("remote.copy.lag.bytes", ConfigType.LONG, "0", NO_TIERS, whole_number(-1)),
    TopicConfig("local.retention.ms", ConfigType.LONG, "-2", NO_TIERS, whole_number(-2)),
    TopicConfig("local.retention.bytes", ConfigType.LONG, "-2", NO_TIERS, whole_number(-2)),
)
# fmt: on

CONFIGS = {config.name: config for config in _ROWS}


def as_read(configs: Mapping[str, str | None]) -> dict[str, str | None]:
    """Settings as Kafka reads them: without blanks around a value; true and false in small letters."""
    return {
        name: None if value is None else value_as_read(CONFIGS.get(name), value)
        for name, value in configs.items()
    }


def value_as_read(config: TopicConfig | None, value: str) -> str:
    """One value; that of an unknown setting is only trimmed."""
    is_boolean = config is not None and config.type is ConfigType.BOOLEAN
    return value.strip().lower() if is_boolean else value.strip()


def is_compacted(configs: Mapping[str, str]) -> bool:
    """Whether a topic with these settings of its own holds the newest value of each key, as state."""
    return "compact" in elements(configs.get("cleanup.policy", ""))


def is_deleted_from(configs: Mapping[str, str]) -> bool:
    """Whether old messages of a topic with these settings of its own go by age and size."""
    return "delete" in elements(configs.get("cleanup.policy", "delete"))


def value_in(configs: Mapping[str, str], name: str) -> str | None:
    """The value of a setting by a topic's own settings; None if they leave it to the broker.

    A compacted topic has no plain table unless it says so: it holds state, most of which is superseded, rows
    of little use.
    """
    default = "false" if name == "plain.enabled" and is_compacted(configs) else None
    return configs.get(name, default)


def check_configs(configs: Mapping[str, str | None]) -> None:
    """Raise InvalidTopicConfig unless every setting is known and has a legal value."""
    for name, value in configs.items():
        config = CONFIGS.get(name)
        if config is None:
            raise InvalidTopicConfig(f"unknown topic setting {name!r}; known are {', '.join(CONFIGS)}")
        if value is None or not config.validator.passes(value):
            hint = f"; {config.hint}" if config.hint else ""
            raise InvalidTopicConfig(
                f"topic setting {name} can't be {value!r}: give {config.validator.expected}{hint}"
            )
    check_columns(configs)
    least, most = (configs.get(f"{end}.compaction.lag.ms") for end in ("min", "max"))
    if int(least or 0) > int(most or INT64_MAX):
        raise InvalidTopicConfig(
            f"min.compaction.lag.ms ({least}) is more than max.compaction.lag.ms ({most})"
        )


def check_columns(configs: Mapping[str, str | None]) -> None:
    """Raise InvalidTopicConfig unless plain.schema can be read, and stands beside JSON values."""
    schema = configs.get("plain.schema") or ""
    if schema:
        try:
            parse_columns(schema)
        except BadTableSchema as error:
            raise InvalidTopicConfig(f"topic setting plain.schema can't be {schema!r}: {error}") from None
    if bool(schema) != (configs.get("plain.value.format") == "json"):
        raise InvalidTopicConfig(
            "topic settings plain.value.format=json and plain.schema (columns, as in SQL) belong together: "
            "set both, or none"
        )

"""What Kafka calls the settings of a broker: some mean one of ours, and others have no effect here.

Tools ask for them by these names, and set them. Those that Kafka takes only when it starts are shown, as far
as tools look at them.
"""

from __future__ import annotations

from typing import NamedTuple

from faircopy.settings.table import INT64_MAX, BadSetting, parse_bool, parse_int

OURS = {
    "auto.create.topics.enable": "auto.create.topics",
    "broker.id": "node.id",
    "connections.max.idle.ms": "connections.idle.ms",
    "log.dirs": "data.dir",
    "log.retention.bytes": "topic.retention.bytes",
    "log.retention.check.interval.ms": "retention.check.interval.ms",
    "log.retention.ms": "topic.retention.ms",
    "log.segment.bytes": "topic.segment.bytes",
    "max.connections": "connections.max",
    "message.max.bytes": "topic.max.message.bytes",
    "num.partitions": "topic.partitions",
    "offsets.topic.num.partitions": "offsets.partitions",
    "queued.max.request.bytes": "requests.in.flight.max.bytes",
    "socket.request.max.bytes": "request.max.bytes",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "transaction.abort.interval.ms",
    "transaction.state.log.num.partitions": "metadata.journals",
}
"""Our names of settings that mean the same."""
THEIRS = {ours: theirs for theirs, ours in OURS.items()}


class WithoutEffect(NamedTuple):
    """A setting of Kafka's that has no effect here. `kind` is int, float, bool or str. If it is *fixed*, only
    the default is allowed: another value would promise what does not happen.
    """

    default: str
    kind: str
    why: str
    is_fixed: bool = False


THREADS = "faircopy shares one event loop, and has its own threads for the disk"
NO_COMPACTION = "compacted topics keep all messages"
NO_REPLICATION = "there is one broker"
OWN_FLUSH = "the setting durability says when data is flushed"
OWN_INDEX = "faircopy has its own index"
AS_SENT = "batches stay as their producer sent them"
PER_TOPIC = "set it for each topic"

# fmt: off
WITHOUT_EFFECT = {
    "background.threads": WithoutEffect("10", "int", THREADS),
    "compression.gzip.level": WithoutEffect("-1", "int", AS_SENT),
    "compression.lz4.level": WithoutEffect("9", "int", AS_SENT),
    "compression.type": WithoutEffect("producer", "str", AS_SENT),
    "compression.zstd.level": WithoutEffect("3", "int", AS_SENT),
    "default.replication.factor": WithoutEffect("1", "int", NO_REPLICATION, is_fixed=True),
    "delete.topic.enable": WithoutEffect("true", "bool", "topics can be deleted", is_fixed=True),
    "follower.replication.throttled.rate": WithoutEffect(str(INT64_MAX), "int", NO_REPLICATION),
    "leader.replication.throttled.rate": WithoutEffect(str(INT64_MAX), "int", NO_REPLICATION),
    "log.cleaner.backoff.ms": WithoutEffect("15000", "int", NO_COMPACTION),
    "log.cleaner.dedupe.buffer.size": WithoutEffect("134217728", "int", NO_COMPACTION),
    "log.cleaner.delete.retention.ms": WithoutEffect("86400000", "int", NO_COMPACTION),
    "log.cleaner.io.buffer.load.factor": WithoutEffect("0.9", "float", NO_COMPACTION),
    "log.cleaner.io.buffer.size": WithoutEffect("524288", "int", NO_COMPACTION),
    "log.cleaner.io.max.bytes.per.second": WithoutEffect("1.7976931348623157E308", "float", NO_COMPACTION),
    "log.cleaner.max.compaction.lag.ms": WithoutEffect(str(INT64_MAX), "int", NO_COMPACTION),
    "log.cleaner.min.cleanable.ratio": WithoutEffect("0.5", "float", NO_COMPACTION),
    "log.cleaner.min.compaction.lag.ms": WithoutEffect("0", "int", NO_COMPACTION),
    "log.cleaner.threads": WithoutEffect("1", "int", NO_COMPACTION),
    "log.cleanup.policy": WithoutEffect("delete", "str", PER_TOPIC, is_fixed=True),
    "log.flush.interval.messages": WithoutEffect(str(INT64_MAX), "int", OWN_FLUSH),
    "log.flush.interval.ms": WithoutEffect(str(INT64_MAX), "int", OWN_FLUSH),
    "log.index.interval.bytes": WithoutEffect("4096", "int", OWN_INDEX),
    "log.index.size.max.bytes": WithoutEffect("10485760", "int", OWN_INDEX),
    "log.message.timestamp.after.max.ms": WithoutEffect(str(INT64_MAX), "int", PER_TOPIC, is_fixed=True),
    "log.message.timestamp.before.max.ms": WithoutEffect(str(INT64_MAX), "int", PER_TOPIC, is_fixed=True),
    "log.message.timestamp.type": WithoutEffect("CreateTime", "str", PER_TOPIC, is_fixed=True),
    "log.preallocate": WithoutEffect("false", "bool", "journals are always preallocated"),
    "log.roll.jitter.ms": WithoutEffect("0", "int", "segments are closed when they are due"),
    "log.roll.ms": WithoutEffect("604800000", "int", PER_TOPIC, is_fixed=True),
    "log.segment.delete.delay.ms": WithoutEffect("60000", "int", "files are deleted at once"),
    "max.connection.creation.rate": WithoutEffect("2147483647", "int", "connections come at any rate"),
    "min.insync.replicas": WithoutEffect("1", "int", NO_REPLICATION),
    "num.io.threads": WithoutEffect("8", "int", THREADS),
    "num.network.threads": WithoutEffect("3", "int", THREADS),
    "num.recovery.threads.per.data.dir": WithoutEffect("2", "int", THREADS),
    "num.replica.fetchers": WithoutEffect("1", "int", NO_REPLICATION),
    "offsets.topic.replication.factor": WithoutEffect("1", "int", NO_REPLICATION, is_fixed=True),
    "producer.id.expiration.ms": WithoutEffect("86400000", "int", "the newest 100,000 producers are known"),
    "replica.alter.log.dirs.io.max.bytes.per.second":
        WithoutEffect(str(INT64_MAX), "int", "there is one directory"),
    "transaction.partition.verification.enable":
        WithoutEffect("true", "bool", "partitions of a transaction are always verified"),
    "transaction.state.log.min.isr": WithoutEffect("1", "int", NO_REPLICATION, is_fixed=True),
    "transaction.state.log.replication.factor": WithoutEffect("1", "int", NO_REPLICATION, is_fixed=True),
    "unclean.leader.election.enable": WithoutEffect("false", "bool", NO_REPLICATION),
}
# fmt: on


def check_without_effect(name: str, text: str) -> None:
    """Raise BadSetting unless Kafka could take this value, or if it would have an effect there."""
    setting = WITHOUT_EFFECT[name]
    if setting.is_fixed and text != setting.default:
        raise BadSetting(f"{name} is always {setting.default} here, and can't be {text!r}: {setting.why}")
    if setting.kind == "bool":
        parse_bool(name, text, "set while the broker runs")
    elif setting.kind == "int":
        parse_int(name, text, "set while the broker runs")
    elif setting.kind == "float":
        check_float(name, text)


def check_float(name: str, text: str) -> None:
    """Raises BadSetting."""
    try:
        float(text)
    except ValueError:
        raise BadSetting(f"{name} is {text!r}: give a number") from None

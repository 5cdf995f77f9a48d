"""The broker's settings: one table with the allowed values of each.

A setting `journal.segment.bytes` is the field `journal_segment_bytes`. `settings/sources.py` reads them.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass, field
from typing import Any

from faircopy.errors import FaircopyError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
BOOLEAN_WORDS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(
    ("false", "0", "no", "off"), False
)


class BadSetting(FaircopyError):
    """A setting is unknown, or its value is not allowed."""


def setting(
    default: Any,
    about: str,
    *,
    least: int | None = None,
    most: int | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field of `Settings` with the metadata to check and explain it."""
    return field(default=default, metadata={"about": about, "least": least, "most": most, "choices": choices})


@dataclass(frozen=True)
class Settings:
    """All settings of a broker; bytes and milliseconds as the names say."""

    data_dir: str = setting("./faircopy-data", "directory of all the broker's data")
    listeners: str = setting(
        "127.0.0.1:9092",
        "HOST:PORT to accept clients on, or several NAME://HOST:PORT separated by commas; port 0 takes a "
        "free one",
    )
    advertised_listeners: str = setting(
        "",
        "HOST:PORT that clients are told, or NAME://HOST:PORT of listeners; if empty, the listener's own "
        "address, or, if that is 0.0.0.0 or [::], the address that the client connected to",
    )
    node_id: int = setting(1, "number of this broker", least=0, most=2**31 - 1)
    durability: str = setting(
        "fsync",
        "fsync: acked means on disk. os: acked means in the page cache, as with Kafka's defaults",
        choices=("fsync", "os"),
    )

    arbiter: str = setting(
        "",
        "what says who leads: lmdb:DIRECTORY for processes of one machine, etcd://HOST:PORT,... or "
        "etcds://HOST:PORT,... (TLS) for several; empty: this broker leads by itself",
    )
    replica_set: str = setting("", "name of the brokers that share their topics, at the arbiter")
    arbiter_lease_ms: int = setting(
        5_000,
        "time after which a broker that the arbiter has not heard of leads no more",
        least=1_000,
        most=60_000,
    )
    arbiter_user: str = setting("", "user at etcd; its password is in arbiter.password.file")
    arbiter_password_file: str = setting("", "file with the password of arbiter.user")
    arbiter_tls_ca_file: str = setting(
        "", "certificates that etcd's may be signed with, as PEM; empty: those that the system trusts"
    )
    arbiter_tls_cert_file: str = setting("", "certificate that this broker shows to etcd, as PEM")
    arbiter_tls_key_file: str = setting("", "private key of arbiter.tls.cert.file, as PEM")

    replication_listener: str = setting(
        "",
        "HOST:PORT on which a follower of a replica set waits for its leader, and which the leader is told; "
        "port 0 takes a free one",
    )
    replication_secret_file: str = setting(
        "", "file with what the brokers of a replica set know and nobody else does: at least 16 bytes"
    )

    metadata_journals: int = setting(
        8, "number of metadata journals; fixed when the data directory is made", least=1, most=1024
    )
    offsets_partitions: int = setting(
        8, "journals of group offsets; fixed when the data directory is made", least=1, most=1024
    )
    shards: int = setting(
        1,
        "number of shards, over which journals and partitions are spread; fixed when the data directory is "
        "made",
        least=1,
        most=1024,
    )
    journal_segment_bytes: int = setting(64 << 20, "size of a journal segment", least=1 << 20, most=1 << 30)
    checkpoint_bytes: int = setting(
        64 << 20, "journal bytes of a partition after which it is checkpointed", least=1 << 16
    )
    disk_reserve_bytes: int = setting(
        64 << 20,
        "space in reserve for a full disk, used by operations that free space; at most a 16th of the disk; 0 "
        "reserves none",
        least=0,
    )
    checkpoint_interval_ms: int = setting(60_000, "time after which changes are checkpointed", least=100)

    recent_drafts_max_bytes: int = setting(
        64 << 20,
        "memory for messages of open transactions, so that copying does not have to read them back",
        least=0,
    )

    auto_create_topics: bool = setting(True, "create a topic when a client first asks for it")
    topic_partitions: int = setting(
        1, "partitions of a topic if its creator names no number", least=1, most=10_000
    )
    topic_retention_ms: int = setting(
        604_800_000, "default of a topic's retention.ms; -1 keeps for ever", least=-1
    )
    topic_retention_bytes: int = setting(
        -1, "default of a topic's retention.bytes, for each partition; -1 has no limit", least=-1
    )
    topic_segment_bytes: int = setting(
        256 << 20, "default of a topic's segment.bytes", least=1 << 14, most=2**31 - 1
    )
    topic_max_message_bytes: int = setting(
        1_048_588, "default of a topic's max.message.bytes (one record batch)", least=1
    )
    topic_transactional_ack_offset: str = setting(
        "expected",
        "default of a topic's transactional.ack.offset: what acks of transactional batches have as offset. "
        "expected: where the batch goes if nobody else writes first, and never lower; none: -1",
        choices=("none", "expected"),
    )
    retention_check_interval_ms: int = setting(60_000, "how often retention is applied", least=100)

    transactional_ack: str = setting(
        "written",
        "what the ack of a message in an open transaction means, unless its topic has a transactional.ack of "
        "its own. written: it survives a kill of the broker. durable: with durability fsync, it is fsynced, "
        "and the transaction also goes on after a loss of power",
        choices=("written", "durable"),
    )
    transaction_max_timeout_ms: int = setting(
        604_800_000, "longest transaction timeout that a producer may ask for", least=1
    )
    transaction_drafts_max_bytes: int = setting(
        64 << 30, "most bytes of messages that one open transaction may have", least=1
    )
    drafts_max_bytes: int = setting(
        1 << 40,
        "most bytes of messages that all open transactions may have; at most half of the disk",
        least=1,
    )
    transaction_abort_interval_ms: int = setting(
        1_000, "how often transactions past their timeout are looked for", least=10
    )
    transactional_id_expiration_ms: int = setting(
        604_800_000, "idle time after which a transactional.id is forgotten", least=1
    )
    producer_id_block: int = setting(1_000, "producer ids that are reserved at a time", least=1)

    group_initial_rebalance_delay_ms: int = setting(
        100, "how long a new group waits for more members", least=0
    )
    group_min_session_timeout_ms: int = setting(6_000, "shortest session timeout of a member", least=1)
    group_max_session_timeout_ms: int = setting(1_800_000, "longest session timeout of a member", least=1)
    group_max_size: int = setting(1_000, "largest number of members of a group", least=1)
    group_max_bytes: int = setting(
        16 << 20, "memory for the metadata and assignments of a group's members", least=1 << 16, most=1 << 30
    )
    groups_max_bytes: int = setting(128 << 20, "the same for all groups together", least=1 << 20)
    offsets_retention_ms: int = setting(604_800_000, "how long offsets of an empty group are kept", least=1)
    offsets_retention_check_interval_ms: int = setting(
        600_000, "how often expired offsets of empty groups are looked for", least=10
    )

    request_max_bytes: int = setting(100 << 20, "largest request", least=1 << 10, most=2**31 - 1)
    requests_in_flight_max_bytes: int = setting(
        256 << 20, "bytes of requests that are in progress at once", least=1 << 20
    )
    connections_max: int = setting(4_096, "connections in all", least=1)
    max_connections_per_ip: int = setting(2**31 - 1, "connections from one address", least=1)
    connections_idle_ms: int = setting(600_000, "idle time after which a connection is closed", least=1_000)
    fetch_max_bytes: int = setting(
        55 << 20, "most bytes in the response to a fetch", least=1 << 10, most=2**31 - 1
    )

    plain_enabled: bool = setting(
        True, "default of a topic's plain.enabled: publish it as a plain Parquet table"
    )
    plain_readers: str = setting(
        "owner",
        "who may read plain tables: only the broker's own user, the group of the data directory, or everyone",
        choices=("owner", "group", "everyone"),
    )
    plain_interval_ms: int = setting(10_000, "default of a topic's plain.interval.ms", least=50)
    plain_max_bytes: int = setting(
        256 << 20, "default of a topic's plain.max.bytes: publish earlier when this much is waiting", least=1
    )
    plain_retention_ms: int = setting(
        -2,
        "default of a topic's plain.retention.ms: how long rows stay in plain tables; -2: as in the topic",
        least=-2,
    )
    plain_unpublished_max_bytes: int = setting(
        1 << 30,
        "past their retention, so many bytes of a partition wait for being published to a plain table",
        least=0,
    )
    plain_grace_ms: int = setting(
        3_600_000,
        "default of a topic's plain.grace.ms: how long files stay on disk after a table has dropped them",
        least=1_000,
    )
    plain_idle_ms: int = setting(30_000, "idle time after which the publisher's process is ended", least=100)

    def acks_drafts_durably(self, transactional_ack: str) -> bool:
        """Whether this value of transactional.ack makes acks of drafts wait for an fsync."""
        return transactional_ack == "durable" and self.durability == "fsync"


REMOVED = {
    "plain.horizon.ms": "streams may lag as far as they like now, and small files are merged for batch reads "
    "when there are many"
}
"""Settings of former versions, and why they are gone."""

FIELDS = {item.name.replace("_", "."): item for item in dataclasses.fields(Settings)}


def changed_settings(settings: Settings) -> dict[str, Any]:
    """The settings that differ from their defaults."""
    values = ((key, getattr(settings, item.name), item.default) for key, item in FIELDS.items())
    return {key: value for key, value, default in values if value != default}


def find(key: str, where: str) -> dataclasses.Field[Any]:
    """The field of a setting. Raises BadSetting with the nearest name."""
    if key in FIELDS:
        return FIELDS[key]
    if key in REMOVED:
        raise BadSetting(f"setting {key} ({where}) is gone: {REMOVED[key]}. Leave it out")
    near = difflib.get_close_matches(key, FIELDS, n=1)
    hint = f": did you mean {near[0]}?" if near else ": see faircopy settings"
    raise BadSetting(f"unknown setting {key!r} ({where}){hint}")


def parse(key: str, text: str, where: str) -> Any:
    """The value that a text means for a setting, without the blanks around it. Errors name the source,
    `where`. Raises BadSetting.
    """
    kind, text = find(key, where).type, text.strip()
    if kind == "bool":
        return parse_bool(key, text, where)
    if kind == "int":
        return check(key, parse_int(key, text, where), where)
    return check(key, text, where)


def parse_bool(key: str, text: str, where: str) -> bool:
    """Raises BadSetting."""
    if text.lower() not in BOOLEAN_WORDS:
        raise BadSetting(f"{key} ({where}) is {text!r}: give true or false")
    return BOOLEAN_WORDS[text.lower()]


def parse_int(key: str, text: str, where: str) -> int:
    """Raises BadSetting."""
    try:
        return int(text)
    except ValueError:
        raise BadSetting(f"{key} ({where}) is {text!r}: give a whole number") from None


def check(key: str, value: Any, where: str) -> Any:
    """Return `value` if the setting allows it. Raises BadSetting."""
    item = find(key, where)
    check_kind(item, key, value, where)
    if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
        raise BadSetting(f"{key} ({where}) has more than 64 bits: give a smaller number")
    least, most, choices = item.metadata["least"], item.metadata["most"], item.metadata["choices"]
    if least is not None and value < least:
        raise BadSetting(f"{key} ({where}) is {value}: give at least {least}")
    if most is not None and value > most:
        raise BadSetting(f"{key} ({where}) is {value}: give at most {most}")
    if choices and value not in choices:
        raise BadSetting(f"{key} ({where}) is {value!r}: give one of {', '.join(choices)}")
    return value


def check_kind(item: dataclasses.Field[Any], key: str, value: Any, where: str) -> None:
    """Raises BadSetting if the value is not of the setting's type."""
    expected = {"int": int, "bool": bool, "str": str}[str(item.type)]
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        wanted = "a whole number" if expected is int else expected.__name__
        raise BadSetting(f"{key} ({where}) is {value!r}: give {wanted}")

"""Which plain table, and which columns of it, topics may ask for, and how a topic may change its mind.

A table has the columns of all its topics, and never loses or changes one. So topics that share a table must
agree on the type of each name, and a topic that has messages may only add columns. The publisher checks the
first of these again, since topics may have gone; here whoever sets a topic up is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from faircopy.catalogue.topic_configs import InvalidTopicConfig, value_in
from faircopy.catalogue.topics import Topic
from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.publish.arrow import OFF
from faircopy.publish.names import UNREADABLE
from faircopy.settings.columns import Column, conflict, parse_columns, quoted

REMEDY = "Give it a table of its own for that (topic setting plain.table)"


def ensure_agreement(
    name: str, configs: Mapping[str, str], topics: Mapping[str, HostedTopic], changed: Iterable[Topic] = ()
) -> None:
    """Raise InvalidTopicConfig if a topic of this name, new or not, can't have these settings of its own,
    because nobody could read its plain table, or the table would have to change its columns, or because
    others that share it disagree. `changed` are topics as they will be, in place of those in `topics`.
    """
    columns, table = columns_of(configs), table_of(name, configs)
    if value_in(configs, "plain.enabled") != "false":
        ensure_readable(name, table)
    before = topics.get(name)
    if before is not None and has_messages(before) and table_of(name, before.topic.configs) == table:
        ensure_only_more(name, table, columns_of(before.topic.configs), columns)
    if not columns:
        return  # they contradict none
    others = {other.topic.name: other.topic for other in topics.values()}
    others |= {other.name: other for other in changed}
    for other in others.values():
        if other.name != name and table_of(other.name, other.configs) == table:
            contradiction = conflict(columns, columns_of(other.configs))
            if contradiction:
                raise InvalidTopicConfig(
                    f"topics {name!r} and {other.name!r} share the plain table {table!r}, and their "
                    f"settings plain.schema contradict each other: {contradiction}. {REMEDY}"
                )


def ensure_no_table(name: str, configs: Mapping[str, str]) -> None:
    """Raise InvalidTopicConfig if a topic of a replica set of several replicas asks for a plain table."""
    if configs.get("plain.enabled") == "true":
        raise InvalidTopicConfig(
            f"topic {name!r} can't have a plain table (topic setting plain.enabled): several replicas keep "
            f"it, and another leader's own table would lack what this one has published. Leave it out for now"
        )


def ensure_none_is_asked_for(name: str, configs: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Raise InvalidTopicConfig if a topic asks for a plain table that nobody can write here. One that has
    asked `before` may keep its settings, and gets its table when somebody can.
    """
    if configs.get("plain.enabled") == "true" != before.get("plain.enabled"):
        raise InvalidTopicConfig(
            f"topic {name!r} can't have a plain table (topic setting plain.enabled): {OFF}. Or leave the "
            f"setting out: the topic gets its table once pyarrow is there"
        )


def ensure_readable(name: str, table: str) -> None:
    """Raise InvalidTopicConfig if readers would find nothing in a table of this name."""
    if table in UNREADABLE:
        raise InvalidTopicConfig(
            f"topic {name!r}: its plain table would be called {table!r}, a name that Spark and Delta tables "
            f"keep for files of their own, so readers would find no rows. Give the table another name (topic "
            f"setting plain.table), or have none (plain.enabled=false)"
        )


def ensure_only_more(name: str, table: str, before: tuple[Column, ...], after: tuple[Column, ...]) -> None:
    """Raise InvalidTopicConfig if a column changes its type or goes."""
    contradiction = conflict(after, before)
    if contradiction:
        raise InvalidTopicConfig(
            f"topic setting plain.schema of {name!r}: {contradiction}, in its plain table {table!r}. The "
            f"topic has messages, so its columns can't change any more, only become more. {REMEDY}"
        )
    gone = [quoted(column.name) for column in before if column not in after]
    if gone:
        raise InvalidTopicConfig(
            f"topic setting plain.schema of {name!r} lacks {', '.join(gone)}, which its plain table "
            f"{table!r} has. The topic has messages, so columns can't go any more, only become more. {REMEDY}"
        )


def columns_of(configs: Mapping[str, str]) -> tuple[Column, ...]:
    """The columns that a topic with these settings asks for."""
    schema = configs.get("plain.schema", "")
    return parse_columns(schema) if schema else ()


def table_of(name: str, configs: Mapping[str, str]) -> str:
    """The plain table of a topic with these settings."""
    return configs.get("plain.table") or name


def has_messages(hosted: HostedTopic) -> bool:
    """Whether a topic has ever had a message that could be in its table."""
    return any(partition.failure is not None or partition.log.end_offset for partition in hosted.partitions)

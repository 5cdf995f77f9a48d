"""Which columns topics of one plain table may ask for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from faircopy.catalogue.topic_configs import InvalidTopicConfig, check_configs
from faircopy.hosting.table_agreement import ensure_agreement, ensure_none_is_asked_for

JSON = {"plain.value.format": "json"}


def topic(name: str, end_offset: int = 1, **configs: str) -> Any:
    settings = {f"plain.{key.replace('_', '.')}": value for key, value in configs.items()}
    partition = SimpleNamespace(failure=None, log=SimpleNamespace(end_offset=end_offset))
    return SimpleNamespace(topic=SimpleNamespace(name=name, configs=settings), partitions=[partition])


def ensure(name: str, schema: str, *topics: Any, table: str = "") -> None:
    configs = {"plain.schema": schema, "plain.table": table}
    ensure_agreement(name, configs, cast(Any, {each.topic.name: each for each in topics}))


@pytest.mark.parametrize("schema", ["id bigint", "name string, id bigint", "id long, at timestamp"])
def test_columns_may_be_added(schema: str) -> None:
    ensure("orders", schema, topic("orders", schema="id bigint"))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("id int", "column id int here is id bigint there, in its plain table 'orders'"),
        ("ID bigint", "column ID bigint here is id bigint there"),
        ("name string", "lacks id, which its plain table 'orders' has"),
        ("", "lacks id"),
    ],
)
def test_columns_of_a_topic_with_messages_stay(schema: str, why: str) -> None:
    before = topic("orders", schema="id bigint")
    with pytest.raises(InvalidTopicConfig) as refused:
        ensure("orders", schema, before)
    assert why in str(refused.value) and "plain.table" in str(refused.value)
    ensure("orders", schema, before, table="other")
    ensure("orders", schema, topic("orders", end_offset=0, schema="id bigint"))


@pytest.mark.parametrize("name", ["_spark_metadata", "_delta_log", "_SUCCESS"])
def test_no_table_is_called_what_readers_have_for_themselves(name: str) -> None:
    with pytest.raises(InvalidTopicConfig, match=f"table would be called '{name}'(?s:.*)plain.table"):
        ensure(name, "")
    with pytest.raises(InvalidTopicConfig, match=f"table would be called '{name}'"):
        ensure("orders", "", table=name)
    ensure(name, "", table="other")
    ensure_agreement(name, {"plain.enabled": "false"}, {})
    ensure_agreement(name, {"cleanup.policy": "compact"}, {})
    with pytest.raises(InvalidTopicConfig, match=f"table would be called '{name}'"):
        ensure_agreement(name, {"cleanup.policy": "compact", "plain.enabled": "true"}, {})
    ensure("_orders", "", table="._spark_metadata")


def test_a_table_is_asked_for_where_nobody_can_write_it() -> None:
    asked = {"plain.enabled": "true"}
    with pytest.raises(InvalidTopicConfig, match=r"'orders' can't have a plain table(?s:.*)pip install"):
        ensure_none_is_asked_for("orders", asked, {"plain.enabled": "false"})
    ensure_none_is_asked_for("orders", asked, asked)
    ensure_none_is_asked_for("orders", {"plain.table": "both"}, {})


def test_topics_of_a_table_agree() -> None:
    others = [topic("left", table="both", schema="id bigint"), topic("alone", schema="id string")]
    ensure("right", "id bigint, more string", *others, table="both")
    ensure("right", "", *others, table="both")
    ensure("right", "id string", *others)
    with pytest.raises(InvalidTopicConfig, match="'right' and 'left' share the plain table 'both'"):
        ensure("right", "id string", *others, table="both")
    with pytest.raises(InvalidTopicConfig, match="'both' and 'left' share"):
        ensure("both", "id string", *others)


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({"plain.schema": "id bigint"}, "belong together"),
        (JSON, "belong together"),
        (JSON | {"plain.schema": ""}, "belong together"),
        (JSON | {"plain.schema": "id doubel"}, "character 4 is 'doubel'"),
        (JSON | {"plain.schema": "offset bigint"}, "column 'offset' is one that plain tables have anyway"),
        ({"plain.value.format": "avro"}, "binary or json"),
        ({"plain.bad.values": "drop"}, "keep or stop or dead-letter"),
        ({"plain.partition.by": "hour"}, "none or day"),
    ],
)
def test_settings_are_checked(configs: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidTopicConfig, match=why):
        check_configs(configs)


def test_settings_that_are_taken() -> None:
    check_configs(JSON | {"plain.schema": "id bigint", "plain.bad.values": "stop"})
    check_configs({"plain.schema": "", "plain.value.format": "binary"})

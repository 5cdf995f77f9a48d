"""Settings: from files, the environment and the command line; what is wrong with one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from faircopy.settings.sources import load_settings
from faircopy.settings.table import BadSetting, Settings, changed_settings


def test_later_sources_are_stronger(tmp_path: Path) -> None:
    config = tmp_path / "broker.toml"
    config.write_text(
        'durability = "os"\n"topic.partitions" = 2\n'
        "[topic.retention]\nms = 5\n[auto.create]\ntopics = false\n"
    )
    variables = {"FAIRCOPY_TOPIC_PARTITIONS": "3", "FAIRCOPY_TOPIC_RETENTION_MS": "6", "OTHER": "x"}
    settings = load_settings(config, variables, ["topic.retention.ms=7"], listeners="127.0.0.1:1")
    assert (settings.durability, settings.topic_partitions, settings.topic_retention_ms) == ("os", 3, 7)
    assert settings.auto_create_topics is False
    assert settings.listeners == "127.0.0.1:1"
    assert settings.data_dir == "./faircopy-data"


def test_blanks_around_a_value_are_no_part_of_it() -> None:
    variables = {
        "FAIRCOPY_DURABILITY": " os ",
        "FAIRCOPY_TOPIC_PARTITIONS": "\t3\n",
        "FAIRCOPY_AUTO_CREATE_TOPICS": " FALSE",
    }
    overrides = [" durability = os ", "topic.partitions=\t3\n", "auto.create.topics = FALSE"]
    for settings in (load_settings(environment=variables), load_settings(overrides=overrides)):
        assert (settings.durability, settings.topic_partitions) == ("os", 3)
        assert settings.auto_create_topics is False


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("durabilty=os", "did you mean durability?"),
        ("no.such.thing=1", "unknown setting"),
        ("durability=paper", "give one of fsync, os"),
        ("topic.partitions=many", "give a whole number"),
        ("topic.partitions=0", "give at least 1"),
        ("topic.partitions=100000", "give at most 10000"),
        ("auto.create.topics=perhaps", "give true or false"),
    ],
)
def test_a_bad_setting_is_told(override: str, message: str) -> None:
    with pytest.raises(BadSetting, match=message.replace("?", r"\?")):
        load_settings(overrides=[override])
    key, _, value = override.partition("=")
    with pytest.raises(BadSetting, match=message.replace("?", r"\?")):
        load_settings(environment={"FAIRCOPY_" + key.upper().replace(".", "_"): value})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("durability = ", "is not TOML"),
        ("durabilty = 'os'", "did you mean"),
        ("listeners = 9092", "give str"),
        ("[topic]\npartitions = true", "whole number"),
    ],
)
def test_a_bad_file_is_told(tmp_path: Path, content: str, message: str) -> None:
    config = tmp_path / "broker.toml"
    config.write_text(content)
    with pytest.raises(BadSetting, match=message):
        load_settings(config)
    with pytest.raises(BadSetting, match="can't read"):
        load_settings(tmp_path / "missing.toml")


def test_settings_that_differ() -> None:
    assert changed_settings(Settings()) == {}
    assert changed_settings(Settings(topic_partitions=3)) == {"topic.partitions": 3}

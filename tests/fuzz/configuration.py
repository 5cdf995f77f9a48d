"""Configuration: what an operator, or a client that may change topics, has written."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import cast

from faircopy.catalogue.topic_configs import CONFIGS, InvalidTopicConfig, check_configs
from faircopy.catalogue.topics import InvalidTopicName, Topic, check_topic_name
from faircopy.hosting.hosted_topic import HostedTopic
from faircopy.net.listeners import parse_listeners
from faircopy.settings.sources import load_settings
from faircopy.settings.table import FIELDS, BadSetting, Settings
from faircopy.wire.address import parse_address
from tests.fuzz.choices import Choices
from tests.fuzz.documents import ODD_TEXTS, ODD_TOML

SETTINGS = Settings()
NAMES = sorted(FIELDS)
TOPIC_NAMES = sorted(CONFIGS)
PAIRS_MAX = 8
ODD_NAMES = ["a", "a.a", ".".join("a" * 2_000), '"listeners"', '"x" . y', "[plain]\nenabled", "[" * 2_000]
ID = uuid.UUID(int=1)


class Written:
    """In the place of a path: the text of its file."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read_text(self) -> str:
        return self._content.decode()

    def __str__(self) -> str:
        return "faircopy.toml"


def feed_settings(data: bytes) -> bool:
    """The first byte chooses between TOML files, variables of the environment, and texts of --set."""
    choices = Choices(data)
    kind = choices.number() % 4
    try:
        if kind == 0:
            check_settings(load_settings(cast(Path, Written(choices.rest()))))
        elif kind == 1:
            environment = {
                f"FAIRCOPY_{name.replace('.', '_').upper()}": text for name, text in pairs(choices, NAMES)
            }
            check_settings(load_settings(environment=environment))
        elif kind == 2:
            check_settings(load_settings(cast(Path, Written(odd_toml(choices)))))
        else:
            overrides = [f"{name}={text}" for name, text in pairs(choices, NAMES)]
            check_settings(load_settings(overrides=overrides))
    except BadSetting:
        return False
    return True


def pairs(choices: Choices, names: list[str]) -> list[tuple[str, str]]:
    """Names and values; the first number chooses a known name, or lets the input have its own."""
    found: list[tuple[str, str]] = []
    while not choices.is_over and len(found) < PAIRS_MAX:
        number = choices.number()
        name = names[number] if number < len(names) else text_of(choices.some())
        number = choices.number()
        found.append((name, ODD_TEXTS[number] if number < len(ODD_TEXTS) else text_of(choices.some())))
    return found


def odd_toml(choices: Choices) -> bytes:
    """Known and other names, each with an odd value."""
    lines: list[str] = []
    while not choices.is_over and len(lines) < PAIRS_MAX:
        number = choices.number()
        name = NAMES[number] if number < len(NAMES) else choices.one_of(ODD_NAMES)
        lines.append(f"{name} = {choices.one_of(ODD_TOML)}")
    return "\n".join(lines).encode("utf-8", "replace")


def text_of(content: bytes) -> str:
    """A text as the environment and the command line give it."""
    return content.decode("utf-8", "surrogateescape")


def check_settings(settings: Settings) -> None:
    """What was accepted can be used."""
    for listener in parse_listeners(settings):
        assert parse_address(str(listener.address)) == listener.address


def feed_topic_configs(data: bytes) -> bool:
    """A name of a topic, and settings for it."""
    choices = Choices(data)
    name = choices.some().decode("utf-8", "replace")
    configs = dict(pairs(choices, TOPIC_NAMES))
    try:
        check_topic_name(name)
        check_configs(configs)
        check_topic(Topic(name, ID, 1, configs, 1))
    except (InvalidTopicName, InvalidTopicConfig):
        return False
    return True


def check_topic(topic: Topic) -> None:
    """A topic with settings that were accepted can be hosted, and its directory stands in ours."""
    HostedTopic(topic, SETTINGS)
    assert Path("/log", topic.directory_name).parent == Path("/log")

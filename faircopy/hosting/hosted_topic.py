"""A topic with its partitions on this broker, and the settings that apply to it."""

from __future__ import annotations

from collections.abc import Mapping

from faircopy.catalogue.topic_configs import CONFIGS, INT64_MAX, is_deleted_from, value_in
from faircopy.catalogue.topics import Topic
from faircopy.partition.hosted import HostedPartition
from faircopy.settings.table import Settings

UNLIMITED = -1
"""No limit, in retention.ms and retention.bytes."""


class HostedTopic:
    """A topic and its partitions on this broker. Settings are read once, since every Produce needs them."""

    def __init__(self, topic: Topic, settings: Settings) -> None:
        self.partitions: list[HostedPartition] = []
        self._settings = settings
        self.topic = topic
        self.change(topic)

    def change(self, topic: Topic) -> None:
        """Apply changed settings."""
        self.topic = topic
        self.max_message_bytes = int(self.config("max.message.bytes"))
        self.has_log_append_time = self.config("message.timestamp.type") == "LogAppendTime"
        self.is_deleted_from = is_deleted_from(topic.configs)
        self.retention_ms = int(self.config("retention.ms")) if self.is_deleted_from else UNLIMITED
        self.retention_bytes = int(self.config("retention.bytes")) if self.is_deleted_from else UNLIMITED
        self.segment_ms = int(self.config("segment.ms"))
        difference_ms = int(self.config("message.timestamp.difference.max.ms"))
        self.timestamp_before_max_ms = min(difference_ms, int(self.config("message.timestamp.before.max.ms")))
        self.timestamp_after_max_ms = min(difference_ms, int(self.config("message.timestamp.after.max.ms")))
        has_limits = min(self.timestamp_before_max_ms, self.timestamp_after_max_ms) < INT64_MAX
        self.has_timestamp_limits = has_limits and not self.has_log_append_time
        self.has_limit_before = self.has_timestamp_limits and self.timestamp_before_max_ms < INT64_MAX
        self.acks_expected_offsets = self.config("transactional.ack.offset") == "expected"
        acks_durably = self._settings.acks_drafts_durably(self.config("transactional.ack"))
        for partition in self.partitions:
            partition.log.segment_bytes = int(self.config("segment.bytes"))
            partition.acks_drafts_durably = acks_durably

    def config(self, name: str) -> str:
        """The value of a setting: the topic's own, or the broker's default, or the built-in default."""
        value = value_in(self.topic.configs, name)
        if value is not None:
            return value
        default = broker_default(self._settings, name)
        return CONFIGS[name].default if default is None else default


def broker_default(settings: Settings, name: str) -> str | None:
    """The broker's default for a topic setting, if it has one."""
    for field in ("topic_" + name.replace(".", "_"), name.replace(".", "_")):
        if hasattr(settings, field):
            value = getattr(settings, field)
            return str(value).lower() if isinstance(value, bool) else str(value)
    return None


def settings_text(configs: Mapping[str, str]) -> str:
    """A topic's own settings, for the log."""
    return "".join(f", {key}={value}" for key, value in configs.items())

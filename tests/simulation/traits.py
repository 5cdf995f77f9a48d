"""What a seed decides about its machine."""

from __future__ import annotations

import random

from faircopy.settings.table import Settings

SLOW_DISK_CHANCE = 0.25
DURABLE_ACKS_CHANCE = 0.3
TABLES_CHANCE = 0.25  # they take more time than everything else


def transactional_ack_of(seed: int) -> str:
    """What the ack of a draft means in the run of this seed."""
    return "durable" if random.Random(-1 - seed).random() < DURABLE_ACKS_CHANCE else "written"


def settings_of(chosen: random.Random, transactional_ack: str) -> Settings:
    """Settings of a broker with small segments, so that rare events happen often."""
    return Settings(
        transactional_ack=transactional_ack,
        durability=chosen.choice(["fsync", "fsync", "os"]),
        metadata_journals=3,
        offsets_partitions=3,
        shards=chosen.choice([1, 3]),
        journal_segment_bytes=chosen.choice([4_000, 20_000, 1 << 20]),
        checkpoint_bytes=chosen.choice([2_000, 20_000, 1 << 20]),
        checkpoint_interval_ms=chosen.choice([1_000, 5_000, 60_000]),
        recent_drafts_max_bytes=chosen.choice([0, 500, 1 << 20]),
        retention_check_interval_ms=2_000,
        offsets_retention_check_interval_ms=5_000,
        topic_segment_bytes=chosen.choice([2_000, 1 << 20]),
        auto_create_topics=False,
        disk_reserve_bytes=chosen.choice([0, 30_000]),
        plain_enabled=chosen.random() < TABLES_CHANCE,
        plain_interval_ms=chosen.choice([1_000, 4_000]),
        plain_grace_ms=20_000,
        producer_id_block=2,
        transactional_id_expiration_ms=chosen.choice([3_000, 604_800_000]),
    )


def has_slow_disk(seed: int) -> bool:
    """Whether the disk is slower than the network in the run of this seed."""
    return random.Random(~seed).random() < SLOW_DISK_CHANCE

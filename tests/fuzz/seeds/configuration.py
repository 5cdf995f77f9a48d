"""Seeds of configuration: settings, and those of topics."""

from __future__ import annotations

from tests.fuzz import configuration
from tests.fuzz.seeds.seed import Seeds, sized


def settings() -> Seeds:
    yield "toml-flat", b'\0"journal.segment.bytes" = 1048576\nlisteners = "[::1]:0"\n'
    yield "toml-nested", b"\0[journal.segment]\nbytes = 1048576\n[plain]\nenabled = false\n"
    name = bytes([configuration.NAMES.index("listeners")])
    yield "environment", b"\1" + name + b"\xff" + sized(b"0.0.0.0:9092")
    own_name, own_text = b"\xff" + sized(b"durability"), b"\xff" + sized(b"os")
    yield "override", b"\3" + name + b"\xff" + sized(b"localhost:1") + own_name + own_text
    yield "toml-odd", b"\2" + name + b"\1" + name + b"\2"


def topic_configs() -> Seeds:
    name = bytes([configuration.TOPIC_NAMES.index("retention.ms")])
    yield "retention", sized(b"orders") + name + b"\xff" + sized(b"-1")
    name = bytes([configuration.TOPIC_NAMES.index("plain.table")])
    yield "table", sized(b"a.b_c-d") + name + b"\xff" + sized(b"other")

"""What commands print: for people, for programs; and nothing that a client has smuggled in."""

from __future__ import annotations

import re

from faircopy.cli.columns import columns, printable, tab_separated
from faircopy.cli.message_format import encoded, for_terminal

EVIL = "\x1b[31mred\x1b[0m[red]x[/red]\ttab\nline\u202e"
SHOWN = "\\x1b[31mred\\x1b[0m[red]x[/red]\\ttab\\nline\\u202e"


def test_programs_get_values_as_they_are() -> None:
    row = {"name": "a\tb\nc", "age_ms": 90_000, "none": None, "is": True, "all": ["x", "y"], "part": 0.25}
    assert tab_separated([row]) == "name\tage_ms\tnone\tis\tall\tpart\na\\tb\\nc\t90000\t\tyes\tx,y\t0.25"


def test_people_get_values_with_units() -> None:
    row = {"name": "a\tb", "age_ms": 90_000, "kept_bytes": 2048, "count": 1234, "none": None, "is": True}
    assert SHOWN in columns([{"transactional_id": EVIL, "age_ms": EVIL, "all": [EVIL], "kept_bytes": EVIL}])
    assert "\x1b" not in columns(
        [{"transactional_id": EVIL, "age_ms": EVIL, "all": [EVIL], "kept_bytes": EVIL}]
    )
    heading, line = columns([row]).splitlines()
    assert heading.split() == ["name", "age", "kept", "count", "none", "is"]
    assert re.split("  +", line) == ["a\\tb", "1.5 min", "2.0 KiB", "1,234", "-", "yes"]


def test_what_clients_send_is_no_command_for_a_terminal() -> None:
    assert printable(EVIL) == SHOWN
    assert printable("Grüße, 世界") == "Grüße, 世界"
    assert for_terminal(b"a\x1b[2J\tb\nc\xff\r") == b"a\\x1b[2J\tb\nc\\xff\\r"
    assert for_terminal("é".encode()) == "é".encode()


def test_bytes_are_text_or_base64() -> None:
    assert encoded("value", None) == {"value": None}
    assert encoded("value", b"\\xff") == {"value": "\\xff"}
    assert encoded("value", b"\xff") == {"value": "/w==", "value_encoding": "base64"}


def test_a_time_since_when_is_a_moment() -> None:
    lines = columns([{"leads_since_ms": 1_700_000_000_000}]).splitlines()
    assert [line.strip() for line in lines] == ["leads since", "2023-11-14 22:13:20.000"]

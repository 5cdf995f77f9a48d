"""The key-value part of a Parquet file's footer.

The rest is up to Arrow, which is given sound files only.
"""

from __future__ import annotations

import json

from faircopy.publish.offsets import Held
from faircopy.publish.schema import Footer, FooterError, Slice, footer_metadata, parse_footer
from tests.fuzz.choices import Choices
from tests.fuzz.documents import odd_document

SOUND = footer_metadata(
    Footer(Held({"orders": {0: 10}, "audit": {1: 5}}, {"orders": "0f"}), [Slice("orders", 0, 10)])
)
KEYS = list(SOUND)


def feed_footer(data: bytes) -> bool:
    """Values by their keys: sound ones, changed ones, or any bytes. What is read is written back the same."""
    choices = Choices(data)
    metadata = {key.encode(): value_of(key, choices) for key in KEYS}
    try:
        footer = parse_footer(metadata, "d-0000000032-0..9.parquet")
    except FooterError:
        return False
    written = {key.encode(): value.encode() for key, value in footer_metadata(footer).items()}
    assert parse_footer(written, "the same") == footer
    return True


def value_of(key: str, choices: Choices) -> bytes:
    kind = choices.number() % 4
    if kind == 0:
        return SOUND[key].encode()
    if kind == 1:
        return choices.some()
    return odd_document(json.loads(SOUND[key]), choices)

"""Layouts of the Kafka messages that faircopy speaks, in a notation of its own, one file per family.

The texts (`notation.py` tells how to read them) are parsed when a message of theirs is first used;
`wire/codec.py` makes readers and writers of them.
"""

from __future__ import annotations

from functools import cache

from faircopy.wire.schema import (
    configs,
    groups,
    inspection,
    metadata,
    offsets,
    produce_fetch,
    sasl,
    topics,
    transactions,
)
from faircopy.wire.schema.notation import Schema, parse_api, split_apis

_FAMILIES = (produce_fetch, metadata, groups, offsets, transactions, topics, configs, sasl, inspection)
_TEXTS = {api_key: text for family in _FAMILIES for api_key, text in split_apis(family.MESSAGES)}


def api_keys() -> frozenset[int]:
    """Every API that has a schema, advertised or not."""
    return frozenset(_TEXTS)


@cache
def schema_of(api_key: int) -> Schema:
    """The layouts of an API. Raises KeyError for one without a schema."""
    return parse_api(_TEXTS[api_key])

"""The client's extracts of the layouts are those that the broker has."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from faircopy.api.routes import schema_of
from faircopy.client import protocol
from faircopy.client.protocol import Request
from faircopy.wire.codec import is_flexible
from faircopy.wire.schema import Field

REQUESTS = [each for each in vars(protocol).values() if isinstance(each, Request)]
Layout = list[tuple[str, str, bool, bool, "Layout"]]


def layout(fields: Iterable[Field], version: int) -> Layout:
    """Name, type, whether it is an array, whether it may be null, and the fields inside."""
    return [
        (
            field.name,
            field.type,
            field.array,
            field.nullable is not None and field.nullable.has(version),
            layout(field.fields, version),
        )
        for field in fields
        if field.versions.has(version) and field.tag is None
    ]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.schema.name)
def test_layouts_are_the_brokers(request_: Request) -> None:
    mine, version = request_
    its = schema_of(mine.api_key)
    assert mine.name == its.name
    assert its.versions.has(version)
    assert layout(mine.request, version) == layout(its.request, version)
    assert layout(mine.response, version) == layout(its.response, version)
    assert is_flexible(mine, version) == is_flexible(its, version)

"""What we write kio reads, and what kio writes we read: every message, every version."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from faircopy.api.routes import ROUTES, schema_of
from faircopy.faults.orders import SCHEMA as FAULTS
from faircopy.wire import codec
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.codec import Direction
from faircopy.wire.schema import REQUIRED
from tests.unit.wire import kio_oracle as oracle

OWN_APIS_FROM = 10_000

every_message = pytest.mark.parametrize(
    ("api_key", "version", "direction"),
    [pytest.param(*m, id=f"{ApiKey(m[0]).name}-{m[2]}-{m[1]}") for m in oracle.all_messages()],
)


def test_names_are_those_of_the_layouts() -> None:
    schemas = {key: route.schema for key, route in ROUTES.items()} | {ApiKey.FAULTS: FAULTS}
    assert {*ApiKey} == schemas.keys()
    for key in ApiKey:
        assert schemas[key].name.upper() == key.name.replace("_", "")


def test_only_our_own_apis_are_out_of_kios_reach() -> None:
    covered = {api_key for api_key, _, _ in oracle.all_messages()}
    assert all(api_key >= OWN_APIS_FROM for api_key in ROUTES.keys() - covered)


@every_message
def test_names_are_those_of_kafka(api_key: int, version: int, direction: Direction) -> None:
    def check(fields: Any, entity: Any) -> None:
        for ours, theirs in oracle.paired(fields, entity, version):
            assert ours.name == oracle.kio_name(theirs)
            if ours.fields:
                check(ours.fields, oracle.element_class(theirs))

    entity = oracle.kio_class(api_key, version, direction)
    assert entity.__flexible__ == codec.is_flexible(schema_of(api_key), version)
    check(oracle.our_fields(api_key, direction), entity)


@every_message
def test_defaults_are_those_of_kafka(api_key: int, version: int, direction: Direction) -> None:
    """Where both have one; we have a few more, for what nearly every caller would say anyway."""

    def check(fields: Any, entity: Any) -> None:
        for ours, theirs in oracle.paired(fields, entity, version):
            if ours.default is not REQUIRED and theirs.default is not dataclasses.MISSING:
                assert ours.absent_value() == oracle.kio_default(theirs, ours, version)
            if ours.fields:
                check(ours.fields, oracle.element_class(theirs))

    check(oracle.our_fields(api_key, direction), oracle.kio_class(api_key, version, direction))


@every_message
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_both_ways(api_key: int, version: int, direction: Direction, data: st.DataObject) -> None:
    fields, entity = oracle.our_fields(api_key, direction), oracle.kio_class(api_key, version, direction)
    body = data.draw(oracle.messages(fields, entity, version))
    expected = oracle.normal(body, fields, version)

    ours = bytearray()
    codec.writer(schema_of(api_key), version, direction)(ours, body)
    assert oracle.from_kio(oracle.kio_read(entity, bytes(ours)), fields, version) == expected

    theirs = oracle.kio_bytes(oracle.to_kio(body, fields, entity, version))
    message, end = codec.reader(schema_of(api_key), version, direction)(
        memoryview(b"xyz" + theirs + b"trailing"), 3
    )
    assert oracle.plain(message, fields, version) == expected
    assert end == 3 + len(theirs)

    again = bytearray()
    codec.writer(schema_of(api_key), version, direction)(again, message)
    assert again == theirs

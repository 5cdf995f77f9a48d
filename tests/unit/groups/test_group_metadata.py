"""Who is in a group, to bytes and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.groups.group_metadata import (
    BadGroupMetadata,
    GroupMetadata,
    MemberMetadata,
    encode_group,
)
from faircopy.groups.group_offsets import decode_change

TEXTS = st.text(max_size=8)
NUMBERS = st.integers(0, 2**31 - 1)
PROTOCOLS = st.lists(st.tuples(TEXTS, st.binary(max_size=20)), max_size=3).map(tuple)
MEMBERS = st.builds(
    MemberMetadata,
    TEXTS,
    st.none() | TEXTS,
    TEXTS,
    TEXTS,
    NUMBERS,
    NUMBERS,
    PROTOCOLS,
    st.binary(max_size=20),
)
GROUPS = st.builds(
    GroupMetadata,
    NUMBERS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    st.lists(MEMBERS, max_size=3).map(tuple),
    NUMBERS,
)


@given(TEXTS, GROUPS)
def test_a_group_comes_back(group: str, metadata: GroupMetadata) -> None:
    change = decode_change(encode_group(group, metadata))
    assert change == (group, {}, True, metadata)


@pytest.mark.parametrize("change", [lambda payload: payload[:-1], lambda payload: payload + b"x"])
def test_bytes_that_are_missing_or_too_many_are_refused(change: Any) -> None:
    member = MemberMetadata("m", None, "c", "h", 1, 1, (("range", b"said"),), b"assigned")
    with pytest.raises(BadGroupMetadata):
        decode_change(change(encode_group("g", GroupMetadata(1, "consumer", "range", "m", (member,)))))


def test_a_group_that_is_deleted_loses_its_members() -> None:
    payload = json.dumps({"group": "g", "offsets": [], "membership": None}).encode()
    assert decode_change(payload) == ("g", {}, True, None)

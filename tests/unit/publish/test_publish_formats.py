"""Spark log entries, file names, the state file, footers: what is written is read, garbage is refused."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircopy.publish import names, spark_log
from faircopy.publish.offsets import Held
from faircopy.publish.schema import Footer, FooterError, Slice, footer_metadata, parse_footer
from faircopy.publish.spark_log import (
    NEVER_NEW_MS,
    DataFile,
    Listed,
    LogFormatError,
    format_entry,
    parse_entry,
)
from faircopy.publish.table_state import OtherFormatError, format_state, parse_state

directories = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..")
)
data_files = st.builds(
    DataFile,
    st.sampled_from(["d-0000000040-0..9.parquet", "_m=0000000047-0.1f2e3d4c._COPYING_"]),
    st.integers(0, 2**50),
    st.integers(1, 2**45) | st.just(NEVER_NEW_MS),
)


@given(directories, st.lists(data_files, max_size=5))
def test_entries_come_back(name: str, files: list[DataFile]) -> None:
    directory = PurePosixPath("/plain") / name
    content = format_entry(directory, files)
    assert content.startswith(b"v1") and not content.endswith(b"\n")
    assert list(parse_entry(content)) == [Listed(directory, file) for file in files]


def test_an_entry_to_the_letter() -> None:
    content = format_entry(PurePosixPath("/a b/ü%"), [DataFile("d-0000000033-0..9.parquet", 12, 34)])
    version, line = content.decode().split("\n")
    assert version == "v1"
    assert json.loads(line) == {
        "path": "file:///a%20b/%C3%BC%25/d-0000000033-0..9.parquet",
        "size": 12,
        "isDir": False,
        "modificationTime": 34,
        "blockReplication": 1,
        "blockSize": 134217728,
        "action": "add",
    }


HELD = b'{"next_offsets": {}, "topic_ids": {}}'
GOOD = format_entry(PurePosixPath("/t"), [DataFile("d-0000000033-0..9.parquet", 12, 34)])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"v2" + GOOD[2:],
        GOOD[:-1],
        GOOD[: len(GOOD) // 2],
        GOOD.replace(b'"add"', b'"delete"'),
        GOOD.replace(b":12", b':"12"'),
        GOOD.replace(b'"size"', b'"length"'),
        b"v1\n[]",
        b"v1\n7",
        b"v1\n\xff\xfe",
    ],
)
def test_damaged_entries(content: bytes) -> None:
    with pytest.raises(LogFormatError):
        list(parse_entry(content))


@given(
    st.binary(max_size=60) | st.sampled_from([b"-", b"0", b"/", b"//", b"%41", b"../"]), st.integers(0, 200)
)
def test_garbled_entries_raise_nothing_else(noise: bytes, at: int) -> None:
    """If one is read all the same, it would be written like that."""
    for garbled in (GOOD[:at] + noise + GOOD[at:], GOOD[:at] + noise + GOOD[at + len(noise) :]):
        try:
            listed = list(parse_entry(garbled))
        except LogFormatError:
            continue
        directory = listed[0].directory if listed else PurePosixPath("/t")
        assert format_entry(directory, [file for _, file in listed]) == garbled


@given(st.integers(0, 10**12))
def test_entry_names(entry: int) -> None:
    name = spark_log.entry_name(entry)
    assert name.endswith(".compact") == (entry % 16 == 15)
    assert spark_log.entry_of_name(name) == entry


@pytest.mark.parametrize(
    "name", [".33.tmp", "33.compact", "47", ".33.crc", "033", "-1", "x", "٣٣", "33.compact.tmp"]
)
def test_names_that_are_no_entries(name: str) -> None:
    assert spark_log.entry_of_name(name) is None


def test_three_compacts_are_kept() -> None:
    entries = [15, 31, *range(32, 64)]
    assert spark_log.superseded([e for e in entries if e < 63]) == []
    assert spark_log.superseded(entries) == [15]
    assert spark_log.superseded(range(31, 100)) == [*range(31, 63)]


def test_names_of_data_files() -> None:
    assert names.published(40, [(120, 180)]) == "d-0000000040-120..179.parquet"
    assert names.published(41, [(0, 1)] * 4) == "d-0000000041-4p.parquet"
    for name in (names.published(40, [(0, 1)]), names.merged(40, 3), names.schema(40)):
        assert names.sequence_of(name) == 40
        assert names.sequence_of(names.temporary(name)) is None
        assert names.is_temporary(names.temporary(name)) and not names.is_temporary(name)
        named = names.with_checksum(name, 0x1F2E)
        stem, ending = name.rsplit(".", 1)
        assert named == f"{stem}.00001f2e.{ending}"
        assert names.is_merged(named) == (name == names.merged(40, 3))
        assert names.is_schema(named) == (name == names.schema(40))
        assert (names.sequence_of(named), names.checksum_of(named), names.checksum_of(name)) == (
            40,
            0x1F2E,
            None,
        )
    assert names.sequence_of("other.parquet") is None


@given(st.dictionaries(st.from_regex(r"d-\d{10}-[^/]{0,5}\.parquet", fullmatch=True), st.integers(0, 2**45)))
def test_the_state_comes_back(retired_ms: dict[str, int]) -> None:
    assert parse_state(format_state(retired_ms), "/t") == retired_ms


@pytest.mark.parametrize("name", ["../d-0000000001-m0.parquet", "_spark_metadata", ""])
def test_only_data_files_may_be_deleted(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a data file"):
        parse_state(format_state({name: 0}), "/t")


def test_states_that_are_refused() -> None:
    with pytest.raises(OtherFormatError, match=r"in /t: it has format 2.*Upgrade faircopy"):
        parse_state(b'{"format": 2, "anything": 0}', "/t")
    with pytest.raises(OtherFormatError, match=r"in /t: it has format 0.*Delete the directory"):
        parse_state(b'{"format": 0, "anything": 0}', "/t")
    for damaged in (b"", b"[]", b"{}", b'{"format": "1"}', b'{"format": 1, "retired": 5}'):
        with pytest.raises((ValueError, TypeError, KeyError)):
            parse_state(damaged, "/t")


@given(
    st.dictionaries(st.text(max_size=5), st.dictionaries(st.integers(0, 99), st.integers(0, 2**60))),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5)),
    st.lists(st.builds(Slice, st.text(max_size=5), st.integers(0, 99), st.integers(0, 2**40))),
)
def test_footers_come_back(
    next_offsets: dict[str, dict[int, int]], topic_ids: dict[str, str], slices: list[Slice]
) -> None:
    footer = Footer(Held(next_offsets, topic_ids), slices)
    metadata = {key.encode(): value.encode() for key, value in footer_metadata(footer).items()}
    assert parse_footer(metadata, "f") == footer


@pytest.mark.parametrize("slices", [b"", b"[[1]]", b"{", b"7", b'["abc"]'])
def test_damaged_footers(slices: bytes) -> None:
    with pytest.raises(FooterError, match=r"footer of d\.parquet"):
        parse_footer({b"faircopy.held": HELD, b"faircopy.slices": slices}, "d.parquet")
    with pytest.raises(FooterError):
        parse_footer(None, "d.parquet")

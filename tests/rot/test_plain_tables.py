"""Every flip in a plain table is found: in Spark's log of it, in its own file, and in its data files."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path, PurePosixPath

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from faircopy.publish import compaction, names
from faircopy.publish.checksum import SummedFile, is_sound
from faircopy.publish.data_file import DataFileWriter
from faircopy.publish.files import Files, NewFile
from faircopy.publish.schema import SCHEMA, parse_footer
from faircopy.publish.spark_log import DataFile, format_entry, parse_entry
from faircopy.publish.table import Table
from faircopy.verify.directory import DirectoryCheck
from faircopy.verify.findings import Finding
from faircopy.verify.parquet_damage import first_byte
from faircopy.verify.plain_tables import PlainTableCheck
from faircopy.wire.records import NewRecord
from tests.rot.flips import Flip, flipped, flips_of
from tests.rot.made import Made
from tests.unit.publish.published_log import GrowingLog

SAMPLES = 25


def check(table: Path) -> list[Finding]:
    """What is wrong with a table by itself."""
    return list(PlainTableCheck(table, lambda _partition: None, lambda _bytes: None).run())


def entries_of(table: Path) -> list[Path]:
    """The entries of Spark's log, in order."""
    return sorted((table / "_spark_metadata").iterdir(), key=lambda each: int(each.stem))


def test_flips_in_sparks_log(stopped: Made, chance: random.Random) -> None:
    table = stopped.data / "plain" / "orders"
    entries = entries_of(table)
    assert check(table) == []
    for path in [*entries[:4], entries[-1]]:
        listed = [file.name for _, file in parse_entry(path.read_bytes())]
        for flip in flips_of(chance, range(path.stat().st_size)):
            with flipped(path, flip):
                findings = check(table)
            # A name, a size or a time may turn into another possible one: then the data file does not fit it.
            is_named = any(each.path == path or each.path.name in listed for each in findings)
            assert is_named or any("it is missing" in each.what for each in findings), (path, flip, findings)


def test_flips_in_the_tables_own_file(stopped: Made, chance: random.Random) -> None:
    table = stopped.data / "plain" / "audit"
    path = table / "_faircopy.json"
    for flip in flips_of(chance, range(path.stat().st_size)):
        with flipped(path, flip):
            assert [each.path for each in check(table)] == [path], flip


def test_every_flip_in_a_small_data_file(stopped: Made, chance: random.Random) -> None:
    table = stopped.data / "plain" / "audit"
    for entry in entries_of(table)[2:4]:
        ((_, file),) = parse_entry(entry.read_bytes())
        assert is_sound(Files(), table, file)
        for flip in flips_of(chance, range(file.size)):
            with flipped(table / file.name, flip):
                assert not is_sound(Files(), table, file), flip


@pytest.mark.parametrize("table", ["audit", "orders", "bulk"])
def test_flips_in_data_files(stopped: Made, table: str, chance: random.Random) -> None:
    directory = stopped.data / "plain" / table
    for path in sorted(directory.glob("*.parquet"))[:3]:
        for flip in flips_of(chance, (), range(path.stat().st_size), SAMPLES):
            column = column_at(path, flip.byte)
            with flipped(path, flip):
                (finding,) = check(directory)
            # Pages have checksums, which tell the column; their headers, and the footer, have none.
            is_placed = column is None or f"column {column} " in finding.what or "footer" in finding.what
            assert finding.path == path and (is_placed or finding.byte is None), (flip, finding)


def column_at(path: Path, byte: int) -> str | None:
    """The column whose pages have a byte of the file."""
    with parquet.ParquetFile(path) as file:
        for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
            for chunk in map(group.column, range(group.num_columns)):
                if first_byte(chunk) <= byte < first_byte(chunk) + chunk.total_compressed_size:
                    return str(chunk.path_in_schema)
    return None


def test_rows_that_are_not_the_logs(stopped: Made) -> None:
    """A file may be sound, and wrong all the same: rows are compared with the log."""
    table = stopped.data / "plain" / "audit"
    entry = entries_of(table)[-1]
    listed = entry.read_bytes()
    ((_, file),) = parse_entry(listed)
    made = rewritten(table / file.name, file.modified_ms)
    changed = DataFile(made.name, made.stat().st_size, file.modified_ms)
    try:
        entry.write_bytes(format_entry(PurePosixPath(table), [changed]))
        findings = list(DirectoryCheck(stopped.data).run())
        assert [each.path for each in findings] == [made] and "is not the log's" in findings[0].what, findings
    finally:
        made.unlink()
        entry.write_bytes(listed)


def rewritten(path: Path, modified_ms: int) -> Path:
    """The same rows, but for one value, in a file beside it whose checksum fits."""
    with parquet.ParquetFile(path) as file:
        rows = file.read().cast(SCHEMA)
        footer = parse_footer(file.metadata.metadata, path.name)
    values = [*rows["value"].to_pylist()[:-1], b"another"]
    rows = rows.set_column(1, SCHEMA.field("value"), pa.array(values, pa.binary()))
    unfinished = path.with_name("unfinished")
    with NewFile(unfinished) as new:
        summed = SummedFile(new, modified_ms)
        writer = DataFileWriter(summed, SCHEMA)
        writer.add(rows.combine_chunks().to_batches()[0], footer.slices)
        writer.finish(footer.held)
    base = path.name.rsplit(".", 2)[0] + ".parquet"
    return unfinished.rename(path.with_name(names.with_checksum(base, summed.checksum)))


@pytest.fixture
def merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table with merged files, and a checkpoint of its Delta log."""
    monkeypatch.setattr(compaction, "MANY_FILES", 8)
    log = GrowingLog(Files(), tmp_path, [("orders", 0), ("orders", 1)])
    clock_ms = count(1_790_000_000_000, 1000)
    table = Table(Files(), tmp_path / "plain" / "orders", lambda: next(clock_ms))
    for number in range(80):
        log.append(("orders", number // 3 % 2), [NewRecord(b"message %d" % number)])
        table.publish(log.cut())
    table.close()
    return tmp_path / "plain" / "orders"


def test_a_table_whose_files_were_merged_is_sound(merged: Path) -> None:
    """A merged file has the newest number and the oldest rows; the files that it was made of stay."""
    assert check(merged) == []
    for path in [*merged.glob("_m=*"), min(merged.glob("d-*..*"))]:
        with flipped(path, Flip(path.stat().st_size // 2, 1)):
            assert [finding.path.name for finding in check(merged)] == [path.name]


def test_flips_in_the_delta_log(merged: Path, chance: random.Random) -> None:
    """What readers take from it is found: the files, and how many rows they have."""
    checkpoint, *versions = sorted((merged / "_delta_log").glob("0*"))[-3:]
    lines = versions[-1].read_bytes()
    for word in (b"d-0", b'"size":', b"numRecords", b"faircopy.ends"):
        byte = lines.index(word) + len(word) - 1
        with flipped(versions[-1], Flip(byte, 1)):
            assert check(merged), word
    for flip in flips_of(chance, (), range(checkpoint.stat().st_size), SAMPLES):
        with flipped(checkpoint, flip):
            assert check(merged)

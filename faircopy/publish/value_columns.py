"""The columns of rows that a table has of its own: the fields of their values, and their day."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from faircopy.errors import FaircopyError
from faircopy.publish.columns import Rows
from faircopy.publish.json_values import misfits, parse_json
from faircopy.publish.layout import DEAD_LETTER, STOP, Layout
from faircopy.publish.schema import DAY_FIELD, MISFIT_FIELD, SCHEMA, Selection, Slice
from faircopy.publish.table_columns import arrow_schema, with_columns
from faircopy.settings.columns import parse_columns


class BadValueError(FaircopyError):
    """A value does not fit the schema, and its topic shall not be published then; nothing was published."""


class _Topic(NamedTuple):
    """What becomes of a topic's values."""

    schema: pa.Schema
    bad_values: str


class ValueColumns:
    """Gives rows the columns of a table, and leaves out those which are not selected."""

    def __init__(self, schema: pa.Schema, layout: Layout, selection: Selection) -> None:
        """`schema` has all columns of the table. Of topics with dead letters, FITTING leaves out the rows
        whose values do not fit; MISFITS has these rows alone.
        """
        self._schema = schema
        self._selection = selection
        self._topics = {
            each.topic: _Topic(arrow_schema(parse_columns(each.schema)), each.bad_values)
            for each in layout.topics
        }
        self.left_out = 0

    @property
    def selected(self) -> Selection:
        """Which rows have been selected in fact."""
        return (
            Selection.ALL if self._selection is Selection.FITTING and not self.left_out else self._selection
        )

    def add_to(self, rows: Rows) -> Iterator[Rows]:
        """The selected rows, in order, with all columns. Raises BadValueError."""
        first = 0
        for slices in _by_topic(rows.slices):
            count = sum(each.rows for each in slices)
            found = self._of_topic(rows.batch.slice(first, count), slices)
            first += count
            if found.batch.num_rows:
                yield found

    def _of_topic(self, batch: pa.RecordBatch, slices: list[Slice]) -> Rows:
        topic = self._topics.get(slices[0].topic)
        if topic is None:
            is_wanted = self._selection is not Selection.MISFITS
            return Rows(self._complete(batch, {}), slices) if is_wanted else Rows(batch.slice(0, 0), [])
        values = batch.column("value")
        columns, fits = parse_json(values, topic.schema)
        if topic.bad_values == STOP and not pc.all(fits).as_py():
            raise _bad_value(batch, fits.index(False).as_py())
        own = dict(zip(topic.schema.names, columns, strict=True))
        found = Rows(self._complete(batch, own | {MISFIT_FIELD.name: misfits(values, fits)}), slices)
        return self._selected(found, fits, has_dead_letters=topic.bad_values == DEAD_LETTER)

    def _complete(self, batch: pa.RecordBatch, own: dict[str, pa.Array]) -> pa.RecordBatch:
        """Rows with all columns of the table."""
        if self._schema.equals(SCHEMA):
            return batch
        if DAY_FIELD.name in self._schema.names:
            own = own | {DAY_FIELD.name: batch.column("timestamp").cast(DAY_FIELD.type)}
        kept = {name: column for name, column in own.items() if name in self._schema.names}
        arrays = [*batch.columns, *kept.values()]
        return with_columns(
            pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *kept]), self._schema
        )

    def _selected(self, rows: Rows, fits: pa.Array, *, has_dead_letters: bool) -> Rows:
        if self._selection is Selection.ALL:
            return rows
        wanted = fits if self._selection is Selection.FITTING else pc.invert(fits)
        if not has_dead_letters:
            wanted = pa.array([self._selection is Selection.FITTING] * len(fits), pa.bool_())
        if pc.all(wanted).as_py():
            return rows
        self.left_out += len(wanted) - wanted.true_count
        return Rows(rows.batch.filter(wanted), _counted(rows.slices, wanted))


def _by_topic(slices: list[Slice]) -> Iterator[list[Slice]]:
    """Slices of one topic together."""
    group: list[Slice] = []
    for each in slices:
        if group and group[0].topic != each.topic:
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _counted(slices: list[Slice], wanted: pa.Array) -> list[Slice]:
    """Slices of the rows that are wanted."""
    first = 0
    left = []
    for each in slices:
        left.append(each._replace(rows=wanted.slice(first, each.rows).true_count))
        first += each.rows
    return [each for each in left if each.rows]


def _bad_value(rows: pa.RecordBatch, number: int) -> BadValueError:
    topic, partition, offset = (
        rows.column(name)[number].as_py() for name in ("topic", "partition", "offset")
    )
    return BadValueError(
        f"the value of {topic}-{partition} at offset {offset} does not fit topic setting plain.schema, and "
        f"with plain.bad.values=stop nothing is published from there on. Set plain.bad.values to keep "
        f"(nulls, and the text in column {MISFIT_FIELD.name}) or to dead-letter (another table), correct "
        f"plain.schema, or delete the topic's messages up to there (DeleteRecords)"
    )

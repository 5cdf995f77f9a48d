"""`faircopy settings`: the settings and their defaults."""

from __future__ import annotations

import click

from faircopy.cli.output import json_option, show
from faircopy.settings.table import FIELDS


@click.command()
@json_option
def settings(as_json: bool) -> None:
    """Show all settings of a broker with their defaults.

    A setting `journal.segment.bytes` is given as --set journal.segment.bytes=N, as the variable
    FAIRCOPY_JOURNAL_SEGMENT_BYTES, or in the TOML file of --config.
    """
    rows = []
    for key, item in FIELDS.items():
        choices = item.metadata["choices"]
        meaning = item.metadata["about"] + (f" ({' or '.join(choices)})" if choices and not as_json else "")
        default = item.default if as_json else as_given(item.default)
        row = {"setting": key, "default": default, "meaning": meaning}
        rows.append(row | ({"choices": list(choices)} if as_json else {}))
    show(rows, as_json, empty="")


def as_given(value: object) -> str:
    """A value in the form in which it is set."""
    return str(value).lower() if isinstance(value, bool) else str(value)

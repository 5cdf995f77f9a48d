"""The systems that were measured."""

from __future__ import annotations

from bench.page.document import Cell, Section, Table, system
from bench.page.palette import in_order
from bench.results import Results


def systems(results: Results) -> Section:
    """Versions and settings of each system."""
    by_name = {each.name: each for each in results.systems}
    names = in_order(by_name)
    rows = [
        [
            system(name),
            Cell(f"{by_name[name].kind} {by_name[name].version}"),
            Cell(by_name[name].protocol),
            Cell(by_name[name].durability),
            Cell(", ".join(f"{key}={value}" for key, value in by_name[name].settings.items()), "code"),
        ]
        for name in names
    ]
    columns = ["System", "Software", "Commit protocol", "Durability", "Settings"]
    caption = (
        "A system has the same colour, marker and line on the whole page. Lines are dashed if nothing is "
        "fsynced."
    )
    return Section(
        "systems",
        "Systems",
        [
            "Each is one broker on loopback, on the same machine and disk, with the same clients. Rivals of "
            "local-copy are the same broker with another commit protocol, so that only the protocol differs."
        ],
        [Table(caption, columns, rows)] if rows else [],
        names,
        ("systems", "system"),
    )

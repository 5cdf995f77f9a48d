"""`python -m tests.fetch`: bring what the tests need from outside into the cache."""

from __future__ import annotations

import sys

import click

from bench.kafka_tools.tools import KAFKA_TOOLS
from bench.systems.cache import cache
from bench.systems.kafka import KAFKA
from tests.ecosystem.dependencies import OF_THE_ECOSYSTEM
from tests.fetch.etcd import ETCD
from tests.fetch.tlc import TLC
from tests.fetch.tries import fetch_all
from tests.flink.installed import FLINK

DEPENDENCIES = {each.name: each for each in (KAFKA, KAFKA_TOOLS, FLINK, TLC, ETCD, *OF_THE_ECOSYSTEM)}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, type=click.Choice([*DEPENDENCIES]))
def main(names: tuple[str, ...]) -> None:
    """Fetch or build what is not in the cache yet: all of it, or only NAMES.

    \b
    Example: python -m tests.fetch kafka tlc
    """
    click.echo(f"the cache is {cache()}")
    missing = fetch_all((DEPENDENCIES[name] for name in names or DEPENDENCIES), click.echo)
    if missing:
        click.echo(f"missing: {', '.join(missing)}: the tests that need it can't run")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()

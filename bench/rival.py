"""python -m bench.rival PROTOCOL start: `faircopy start` for a broker with another commit protocol."""

from __future__ import annotations

import click

from bench.protocols.markers import MarkersBroker
from bench.protocols.none import NoneBroker
from bench.protocols.parallel_prepare import ParallelPrepareBroker
from bench.protocols.remote_copy import RemoteCopyBroker
from faircopy.broker.broker import Broker
from faircopy.cli.start import start

BROKERS: dict[str, type[Broker]] = {
    "markers": MarkersBroker,
    "none": NoneBroker,
    "parallel-prepare": ParallelPrepareBroker,
    "remote-copy": RemoteCopyBroker,
}


@click.group()
@click.argument("protocol", type=click.Choice(list(BROKERS)))
@click.pass_context
def main(context: click.Context, protocol: str) -> None:
    """A broker with a rival of faircopy's commit protocol, which keeps none of faircopy's promises."""
    context.obj = BROKERS[protocol]


main.add_command(start)

if __name__ == "__main__":
    main()

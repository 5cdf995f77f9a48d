"""`faircopy start`: run a broker until a signal comes."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import click
import uvloop

from faircopy.broker.broker import Broker
from faircopy.broker.settings import Settings, load_settings

EX_IOERR = 74
GLIBC_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


@click.command()
@click.option("--data-dir", metavar="DIR", help="Where everything is kept.  [default: ./faircopy-data]")
@click.option(
    "--listen", metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.  [default: 127.0.0.1:9092]"
)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings from a TOML file.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="One setting; may be given many times.")
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
def start(
    data_dir: str | None,
    listen: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    verbose: bool,
) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    Settings come, the later ones stronger, from defaults, the file of --config, variables FAIRCOPY_*, --set, and the
    options; faircopy settings shows them all.

    \b
    Examples:
      faircopy start
      faircopy start --data-dir /var/lib/faircopy --listen 0.0.0.0:9092 --set advertised.listener=log1:9092
      FAIRCOPY_DURABILITY=os faircopy start --set topic.partitions=4
    """
    settings = load_settings(config, os.environ, overrides, data_dir=data_dir, listen=listen)
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
        stream=sys.stderr,
    )
    allow_many_files()
    share_memory_arenas()
    sys.exit(uvloop.run(run(settings)))


async def run(settings: Settings) -> int:
    """Start a broker, say that it is ready, wait for a signal, and stop it. Returns the exit code."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    broker = Broker(settings)
    # Recovery makes many objects that stay: collections would look at them again and again.
    gc.disable()
    await broker.start()
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    # The disk threads' few lines of Python must not keep the loop waiting for the default 5 ms.
    sys.setswitchinterval(0.0005)
    host, port = broker.server.address
    click.echo(f"faircopy is ready on {host}:{port}")
    sys.stdout.flush()
    await unless_disk_fails(broker, stop.wait())
    await unless_disk_fails(broker, broker.stop())
    return 0


async def unless_disk_fails(broker: Broker, work: Coroutine[Any, Any, Any]) -> None:
    """Do this; if the disk fails, end the process (I10): nothing more may be written, and no destructor may try."""
    done: asyncio.Future[Any] = asyncio.ensure_future(work)
    await asyncio.wait([done, broker.failed], return_when=asyncio.FIRST_COMPLETED)
    if broker.failed.done():
        os._exit(EX_IOERR)
    done.result()


def share_memory_arenas() -> None:
    """Have all threads take memory from two arenas: by default glibc gives each of the disk threads its own, and each
    keeps tens of MiB of what it has freed.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(GLIBC_ARENA_MAX, 2)


def allow_many_files() -> None:
    """Raise the limit of open files to what the system allows: each partition holds a few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

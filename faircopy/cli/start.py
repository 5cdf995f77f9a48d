"""`faircopy start`: run a broker until a signal arrives."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import resource
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click
import uvloop

from faircopy import __version__
from faircopy.broker.broker import Broker
from faircopy.broker.environment import Environment
from faircopy.cli.logs import log_to_stderr
from faircopy.cli.signals import end_before_ready, first_signal
from faircopy.settings.sources import load_settings
from faircopy.settings.table import Settings, changed_settings
from faircopy.storage.descriptors import UNLIMITED

EX_IOERR = 74
EX_TEMPFAIL = 75
STANDARD_ERROR = 2
BROKER_ID = click.IntRange(0, 2**31 - 1)
MALLOC_OPTIONS = {
    -1: 8 << 20,  # M_TRIM_THRESHOLD, in bytes
    -3: 4 << 20,  # M_MMAP_THRESHOLD, in bytes
    -8: 2,  # M_ARENA_MAX
}
"""Parameters of glibc's mallopt, by their numbers in malloc.h."""

log = logging.getLogger(__name__)


@click.command()
@click.option("--data-dir", metavar="DIR", help="Directory for all data.  [default: ./faircopy-data]")
@click.option(
    "--listen",
    "listeners",
    metavar="HOST:PORT",
    help="Address for clients; port 0 takes a free one.  [default: 127.0.0.1:9092]",
)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings from a TOML file.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="One setting; can be given more than once."
)
@click.option("--arbiter", metavar="ADDRESS", help="What says who leads: lmdb:DIR or etcd://HOST:PORT,...")
@click.option("--replica-set", metavar="NAME", help="The replica set that the data directory belongs to.")
@click.option(
    "--broker-id",
    "node_id",
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    help="Number of this broker.  [default: 1]",
)
@click.option("--new-set", is_flag=True, help="Make the replica set if the arbiter has none of this name.")
@click.option("--repair", is_flag=True, help="Pass over journal entries that can't follow those before them.")
@click.option("-v", "--verbose", is_flag=True, help="Also log what is done for clients.")
@click.pass_obj
def start(
    broker_type: type[Broker] | None,
    /,
    data_dir: str | None,
    listeners: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    new_set: bool,
    repair: bool,
    verbose: bool,
    **membership: str | int | None,
) -> None:
    """Run a broker until Ctrl-C, SIGTERM or SIGHUP, which stop it in an orderly way.

    Settings come from defaults, the file of --config, variables FAIRCOPY_*, --set, and the options; later
    ones override earlier ones. faircopy settings shows them all.

    --repair is for a directory whose broker can't start, or whose partition is stopped, since a journal holds
    an entry that can't follow those before it. A bug of faircopy has written it: please report it. Each such
    entry is logged and passed over, for this start and all later ones. Make a copy of the directory first.

    With --arbiter, the broker leads its data directory only while it holds a lease there. A second process
    that is started with the same set, on the same directory or on a volume that is attached to its machine
    later, waits until that lease is gone, and then serves. A broker that loses its lease begins anew, and
    waits like any other. docs/OPERATIONS.md says how to run that.

    \b
    Examples:
      faircopy start
      faircopy start --data-dir /var/lib/faircopy --listen 0.0.0.0:9092
      faircopy start --listen internal://0.0.0.0:9092,external://0.0.0.0:9094 \\
                     --set advertised.listeners=external://log1.example.org:9094
      faircopy start --arbiter lmdb:/var/lib/faircopy/arbiter --replica-set orders --new-set
      faircopy start --arbiter etcd://h1:2379,h2:2379,h3:2379 --replica-set orders --broker-id 2
      FAIRCOPY_DURABILITY=os faircopy start --set topic.partitions=4

    \b
    Exit codes: 0 orderly stop; 1 could not start; 70 a bug in faircopy showed itself, of which nothing was
    written; 74 its disk failed; 75 its lease was lost while it was stopping; 128 plus a signal's number (143
    for SIGTERM): a signal came before it was ready, or a second one while it was stopping. After 75 and 128
    it ended at once, as in a crash: nothing that was acknowledged is lost.
    """
    settings = load_settings(
        config,
        os.environ,
        overrides,
        data_dir=data_dir,
        listeners=listeners,
        **membership,
    )
    log_to_stderr(verbose=verbose)
    descriptors_max = allow_many_files()
    give_memory_back()
    # A program that includes this command may name another broker class in the command's context.
    choices = Choices(repairs=repair, makes_set=new_set)
    sys.exit(uvloop.run(run(settings, descriptors_max, broker_type or Broker, choices)))


class Choices(NamedTuple):
    """What is said for one start only."""

    repairs: bool = False
    makes_set: bool = False


async def run(settings: Settings, descriptors_max: int, broker_type: type[Broker], choices: Choices) -> int:
    """Start a broker, say that it is ready, wait for a signal, and stop it. Returns the exit code."""
    end_before_ready()
    environment = Environment(descriptors_max=descriptors_max)
    broker = broker_type(settings, environment, repairs=choices.repairs, makes_set=choices.makes_set)
    # Recovery makes many objects that stay: collections would look at them again and again.
    gc.disable()
    await unless_it_must_end(broker, broker.start(), begin_anew)
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    # The disk threads' few lines of Python must not keep the loop waiting for the default 5 ms.
    sys.setswitchinterval(0.0005)
    log_start(broker)
    with first_signal(broker.loop) as came:
        for listener in broker.server.listeners:
            click.echo(f"faircopy is ready on {listener.address}")
        sys.stdout.flush()
        await unless_it_must_end(broker, came.wait(), begin_anew)
    await unless_it_must_end(broker, broker.stop(), end_without_a_lease)
    return 0


def log_start(broker: Broker) -> None:
    """Log what runs, where, with which settings, and what it found there."""
    settings = broker.settings
    log.info("faircopy %s, process %d, on %s", __version__, os.getpid(), broker.directory.path)
    log.info("%s", broker.recovery)
    changed = ", ".join(f"{key}={value}" for key, value in changed_settings(settings).items())
    log.info("settings that differ from their defaults: %s", changed or "none")
    for listener in broker.server.listeners:
        told = listener.advertised or (
            "the address that they connected to" if listener.address.is_wildcard else "the same"
        )
        log.info("listener %s on %s; clients are told %s", listener.name, listener.address, told)


async def unless_it_must_end(
    broker: Broker, work: Coroutine[Any, Any, Any], without_a_lease: Callable[[], NoReturn]
) -> None:
    """Do this. If the disk fails, end the process (I10), so that not even a destructor writes more. If the
    lease is lost, end the publisher, and do that instead.
    """
    done: asyncio.Future[Any] = asyncio.ensure_future(work)
    ends = (broker.failed, broker.leadership.lost)
    await asyncio.wait([done, *ends], return_when=asyncio.FIRST_COMPLETED)
    if broker.failed.done():
        os._exit(EX_IOERR)
    if broker.leadership.lost.done():
        await broker.give_up()
        without_a_lease()
    done.result()


def end_without_a_lease() -> NoReturn:
    """End the process at once, as in a crash: it was to stop, and another one may lead by now."""
    log.warning("the lease was lost while the broker was stopping: it ends at once, as in a crash")
    os._exit(EX_TEMPFAIL)


def begin_anew() -> NoReturn:
    """Replace this process by a new one with the same command line, id and standard streams. Sockets, locks
    and files are closed by that, and threads end: nothing of this life goes on.
    """
    log.warning("this process begins a new life, since another one may lead")
    keep_no_files()
    logging.shutdown()
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def keep_no_files() -> None:
    """Have an exec close everything but the standard streams: LMDB leaves that out for its data files.
    (Closing them here would release locks while threads still write.)
    """
    for link in list(Path("/dev/fd").iterdir()):
        if int(link.name) > STANDARD_ERROR:
            with contextlib.suppress(OSError):  # the one that listed the others is closed by now
                os.set_inheritable(int(link.name), False)


def give_memory_back() -> None:
    """Have glibc keep less free memory. By default each disk thread gets an arena of its own, which keeps
    tens of MiB, and the memory of frames of several MiB may never go back to the system.
    """
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        for parameter, value in MALLOC_OPTIONS.items():
            libc.mallopt(parameter, value)


def allow_many_files() -> int:
    """Raise the limit of open files as far as the system allows, since partitions need many; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else UNLIMITED

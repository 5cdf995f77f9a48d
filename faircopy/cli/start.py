"""`faircopy start`: run a broker until a signal arrives."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click

from faircopy import __version__
from faircopy.broker.broker import Broker
from faircopy.broker.environment import Environment
from faircopy.broker.follower import Follower
from faircopy.broker.leadership import MemberOfASet, Start, leadership_of
from faircopy.cli.logs import log_to_stderr
from faircopy.cli.signals import end_before_ready, first_signal
from faircopy.loop.running import run as run_on_a_loop
from faircopy.publish.arrow import OFF
from faircopy.settings.sources import load_settings
from faircopy.settings.table import BadSetting, Settings, changed_settings
from faircopy.storage.process import allow_many_files, keep_no_files

EX_IOERR = 74
EX_TEMPFAIL = 75
BROKER_ID_MAX = 2**31 - 1
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
    type=click.IntRange(0, BROKER_ID_MAX),
    metavar="N",
    help="Number of this broker.  [default: 1]",
)
@click.option("--new-set", is_flag=True, help="Make the replica set if the arbiter has none of this name.")
@click.option(
    "--replicas", metavar="N,N,...", help="Brokers of a set that is made: this one, which leads, then others."
)
@click.option("--replication-listener", metavar="HOST:PORT", help="Where a follower waits for its leader.")
@click.option(
    "--secret-file", "replication_secret_file", metavar="FILE", help="What the brokers of a set share."
)
@click.option("--alone", is_flag=True, help="Let the directory leave its replica set for good, and lead.")
@click.option("--repair", is_flag=True, help="Pass over journal entries that can't follow those before them.")
@click.option("--ephemeral", is_flag=True, help="For tests: a temporary directory, a free port, as JSON.")
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
    replicas: str | None,
    alone: bool,
    repair: bool,
    ephemeral: bool,
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

    With --new-set and --replicas, the broker makes a set that keeps several copies of the data, and leads it.
    The others follow, each with a directory of its own. Everything is on the disks of all before it is
    acknowledged. If the leader's directory is lost, --alone lets that of a follower leave the set for good,
    and serve. Nobody is elected in its place yet: docs/REPLICA_SETS.md says what holds.

    With --ephemeral, the broker is for tests. It keeps its data in a temporary directory, takes a free port,
    and says which in one line of JSON. It ends with the process that started it, or at the end of standard
    input if that is a pipe, and removes its data. docs/TESTING.md says what tests can do with it.

    \b
    Examples:
      faircopy start
      faircopy start --data-dir /var/lib/faircopy --listen 0.0.0.0:9092
      faircopy start --listen internal://0.0.0.0:9092,external://0.0.0.0:9094 \\
                     --set advertised.listeners=external://log1.example.org:9094
      faircopy start --arbiter lmdb:/var/lib/faircopy/arbiter --replica-set orders --new-set
      faircopy start --arbiter etcd://h1:2379,h2:2379,h3:2379 --replica-set orders --broker-id 2
      faircopy start --arbiter etcd://h1:2379 --replica-set orders --new-set --replicas 1,2 \\
                     --secret-file secret --set plain.enabled=false
      faircopy start --arbiter etcd://h1:2379 --replica-set orders --broker-id 2 \\
                     --secret-file secret --replication-listener h2:9192 --set plain.enabled=false
      faircopy start --data-dir /var/lib/faircopy --alone
      FAIRCOPY_DURABILITY=os faircopy start --set topic.partitions=4

    \b
    Exit codes: 0 orderly stop; 1 could not start; 70 a bug in faircopy showed itself, of which nothing was
    written; 74 its disk failed; 75 its lease was lost while it was stopping; 128 plus a signal's number (143
    for SIGTERM): a signal came before it was ready, or a second one while it was stopping. After 75 and 128
    it ended at once, as in a crash: nothing that was acknowledged is lost.
    """
    log_to_stderr(verbose=verbose)
    descriptors_max = allow_many_files()
    give_memory_back()
    if ephemeral:
        ensure_ephemeral(data_dir, membership, is_of_a_directory=new_set or bool(replicas) or alone or repair)
        # Other brokers have no use for any of it.
        from faircopy.cli.ephemeral import run_ephemeral

        sys.exit(run_ephemeral(config, overrides, listeners, descriptors_max))
    settings = load_settings(
        config,
        os.environ,
        overrides,
        data_dir=data_dir,
        listeners=listeners,
        **membership,
    )
    # A program that includes this command may name another broker class in the command's context.
    choices = Choices(repair, Start(new_set, broker_ids(replicas), alone))
    sys.exit(run_on_a_loop(run(settings, descriptors_max, broker_type or Broker, choices)))


def ensure_ephemeral(
    data_dir: str | None, membership: Mapping[str, object], *, is_of_a_directory: bool
) -> None:
    """Raise BadSetting for an option that says something about a directory that stays."""
    if data_dir is not None or is_of_a_directory or any(each is not None for each in membership.values()):
        raise BadSetting(
            "--ephemeral makes a directory of its own, which belongs to no replica set, and removes it in "
            "the end: leave out --data-dir and the options of replica sets and repair"
        )


class Choices(NamedTuple):
    """What is said for one start only."""

    repairs: bool = False
    of_set: Start = Start()


def broker_ids(text: str | None) -> tuple[int, ...]:
    """The brokers that --replicas names. Raises BadSetting."""
    if text is None:
        return ()
    ids = [part.strip() for part in text.split(",")]
    if not all(each.isdecimal() and int(each) <= BROKER_ID_MAX for each in ids) or len(set(ids)) < len(ids):
        raise BadSetting(f"--replicas is {text!r}: give numbers of brokers, each once, such as 1,2,3")
    return tuple(map(int, ids))


async def run(settings: Settings, descriptors_max: int, broker_type: type[Broker], choices: Choices) -> int:
    """Start a broker, say that it is ready, wait for a signal, and stop it. Returns the exit code."""
    end_before_ready()
    environment = Environment(descriptors_max=descriptors_max)
    leadership = leadership_of(settings, environment, choices.of_set)
    if isinstance(leadership, MemberOfASet) and await leadership.follows():
        return await follow(Follower(settings, environment, leadership))
    return await lead(broker_type(settings, environment, repairs=choices.repairs, leadership=leadership))


async def lead(broker: Broker) -> int:
    """Run a broker that leads."""
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
    ready = [f"faircopy is ready on {listener.address}" for listener in broker.server.listeners]
    return await until_signal(broker, ready)


async def follow(follower: Follower) -> int:
    """Run a broker that follows."""
    await unless_it_must_end(follower, follower.start(), begin_anew)
    log.info("faircopy %s, process %d, on %s", __version__, os.getpid(), follower.directory.path)
    return await until_signal(follower, [f"faircopy follows, and waits for its leader on {follower.address}"])


async def until_signal(broker: Broker | Follower, ready: list[str]) -> int:
    """Say that a broker is ready, wait for a signal, and stop it. Returns the exit code."""
    with first_signal(broker.loop) as came:
        for line in ready:
            click.echo(line)
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
    if broker.plain_tables.are_off and (settings.plain_enabled or broker.plain_tables.tables):
        log.warning("%s. To do without them: --set plain.enabled=false", OFF)
    for listener in broker.server.listeners:
        told = listener.advertised or (
            "the address that they connected to" if listener.address.is_wildcard else "the same"
        )
        log.info("listener %s on %s; clients are told %s", listener.name, listener.address, told)


async def unless_it_must_end(
    broker: Broker | Follower, work: Coroutine[Any, Any, Any], without_a_lease: Callable[[], NoReturn]
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


def give_memory_back() -> None:
    """Have glibc keep less free memory. By default each disk thread gets an arena of its own, which keeps
    tens of MiB, and the memory of frames of several MiB may never go back to the system.
    """
    with contextlib.suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        for parameter, value in MALLOC_OPTIONS.items():
            libc.mallopt(parameter, value)

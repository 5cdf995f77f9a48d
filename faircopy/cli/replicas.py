"""`faircopy replicas`: who leads a replica set, and how its record is made again."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from faircopy.api.inspect import SCHEMA as INSPECT
from faircopy.cli.output import asks_broker, confirm, json_option, note, say, show, yes_option
from faircopy.client.connection import BrokerConnection, ensure_ok
from faircopy.errors import FaircopyError
from faircopy.settings.sources import load_settings
from faircopy.settings.table import Settings

if TYPE_CHECKING:
    from faircopy.arbiter.backend import Backend
    from faircopy.arbiter.joining import Known
    from faircopy.arbiter.rebuilding import Found

Result = TypeVar("Result")
IN_DOUBT = (
    "this is what the broker knew last: the arbiter does not answer it, and its lease may have expired, so "
    "it holds all answers to clients. By now another broker may lead"
)
DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


class NoReplicaSet(FaircopyError):
    """There is no replica set to look at."""


def finds_arbiter(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where the arbiter is; a broker's own settings count as well."""
    options = (
        click.option("--arbiter", metavar="ADDRESS", help="lmdb:DIR or etcd://HOST:PORT,..."),
        click.option("--replica-set", metavar="NAME", help="The replica set's name."),
        click.option(
            "--config", type=click.Path(path_type=Path), metavar="FILE", help="A broker's settings."
        ),
        click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="One setting."),
    )
    return functools.reduce(lambda made, option: option(made), reversed(options), command)


@click.group()
def replicas() -> None:
    """Look at a replica set, and at its record at the arbiter."""


@replicas.command()
@finds_arbiter
@asks_broker
def status(
    arbiter: str | None,
    replica_set: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    broker: str,
    as_json: bool,
) -> None:
    """Show who leads a replica set, since when and in which epoch, who is registered, how old each lease is,
    and what the loss of which broker would cost now.

    Asks a broker of the set, or, if that is said (also by FAIRCOPY_ARBITER or --config), the arbiter itself,
    which works while no broker runs. A lease at an arbiter of kind lmdb has no age: it ends with its process.

    \b
    Examples:
      faircopy replicas status
      faircopy replicas status --arbiter etcd://h1:2379,h2:2379 --replica-set orders
      faircopy replicas status --json | jq .leader
    """
    settings = settings_for(config, overrides, arbiter, replica_set)
    about = asyncio.run(ask_arbiter(settings)) if settings.arbiter else ask_broker(broker)
    if as_json:
        say(about, True, "")
        return
    rows = about.pop("brokers")
    show(rows, False, empty="no broker is known")
    note(sentence(about))
    note(about["loss"])
    for each in about.get("missing", []):
        note(f"broker {each['broker']} has been missing for {each['for_ms'] / 1000:.0f} s: {each['why']}")
    if about.get("lease_in_doubt"):
        note(IN_DOUBT)


def sentence(about: dict[str, Any]) -> str:
    """Who leads, since when."""
    if "epoch" not in about:
        return ""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(about["since_ms"] / 1000))
    name = f"replica set {about['replica_set']} ({about['set_id']})"
    if about["leader"] is None:
        return f"{name}: nobody leads; the last epoch was {about['epoch']}"
    return f"{name}: broker {about['leader']} leads since {since}, in epoch {about['epoch']}"


def settings_for(
    config: Path | None, overrides: tuple[str, ...], arbiter: str | None, replica_set: str | None
) -> Settings:
    """The settings of a broker, as `faircopy start` reads them. Raises BadSetting."""
    return load_settings(config, os.environ, overrides, arbiter=arbiter, replica_set=replica_set)


def ask_broker(broker: str) -> dict[str, Any]:
    """What a broker says of its set. Raises NoReplicaSet."""
    with BrokerConnection(broker) as connection:
        answer = connection.ask(INSPECT, 0, {"subject": "replicas"})
    ensure_ok(answer.error_code, None, "asking for the replica set")
    about: dict[str, Any] | None = json.loads(answer.document)
    if about is None:
        raise NoReplicaSet(
            f"the broker at {broker} leads by itself: it was started without --arbiter and --replica-set"
        )
    return about


async def ask_arbiter(settings: Settings) -> dict[str, Any]:
    """The state of the set, straight from the arbiter."""
    from faircopy.arbiter.registration import BROKERS
    from faircopy.arbiter.set_status import status_of

    async def ask(backend: Backend) -> dict[str, Any]:
        entries = (await backend.snapshot()).entries
        brokers = [key for key in entries if key.startswith(BROKERS)]
        leases = {int(key.removeprefix(BROKERS)): await backend.lease_seconds_left(key) for key in brokers}
        return status_of(settings.replica_set, entries, leases)

    return await with_backend(settings, ask)


async def with_backend(settings: Settings, ask: Callable[[Backend], Awaitable[Result]]) -> Result:
    """Ask the arbiter that the settings name. Raises BadSetting, StoreUnavailable."""
    import uuid

    from faircopy.arbiter.address import arbiter_options
    from faircopy.arbiter.backends import open_backend

    options = arbiter_options(settings)
    if options is None:
        raise NoReplicaSet("no arbiter is named: give --arbiter ADDRESS and --replica-set NAME")
    backend = open_backend(
        options, settings.replica_set, f"operator.{uuid.uuid4()}", asyncio.get_running_loop()
    )
    try:
        return await ask(backend)
    finally:
        await backend.close()


@replicas.command(name="rebuild-record")
@click.argument("directories", nargs=-1, required=True, type=DIRECTORY)
@click.option("--from", "chosen", type=DIRECTORY, metavar="DIRECTORY", help="Do it, from this one.")
@yes_option
@finds_arbiter
@json_option
def rebuild_record(
    directories: tuple[Path, ...],
    chosen: Path | None,
    yes: bool,
    arbiter: str | None,
    replica_set: str | None,
    config: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what DIRECTORIES of a replica set have, and make the set's record at the arbiter again if told to.

    This is for an arbiter that has lost the record, or was restored from an old backup. Stop all brokers of
    the set first, and name all of its directories. Without --from nothing is changed. With it, the record
    gets this directory as its only replica, in a new epoch; it must be the newest.

    \b
    Examples (with FAIRCOPY_ARBITER and FAIRCOPY_REPLICA_SET set):
      faircopy replicas rebuild-record /mnt/volume/d
      faircopy replicas rebuild-record /mnt/volume/d --from /mnt/volume/d
    """
    settings = settings_for(config, overrides, arbiter, replica_set)
    if chosen is not None and chosen not in directories:
        raise click.UsageError(f"--from {chosen} is none of the directories that are named")
    asyncio.run(rebuild(settings, directories, chosen, as_json=as_json, yes=yes))


async def rebuild(
    settings: Settings, directories: Sequence[Path], chosen: Path | None, *, as_json: bool, yes: bool
) -> None:
    """Say what there is, and do it if a directory is chosen."""
    from faircopy.storage.data_directory import hold_unchanged

    with contextlib.ExitStack() as held:
        for directory in directories:
            held.enter_context(hold_unchanged(directory))  # no broker starts meanwhile
        found = [found_in(directory) for directory in directories]
        await with_backend(settings, lambda backend: rebuild_at(backend, found, chosen, as_json, yes))


def found_in(directory: Path) -> Found:
    """What a locked directory has."""
    from faircopy.arbiter.directory_note import NOTE_NAME, decode_note
    from faircopy.arbiter.rebuilding import Found
    from faircopy.storage.epochs import greatest_epoch
    from faircopy.storage.local_notes import LocalNotes
    from faircopy.storage.state_store import StateStore

    store = StateStore(directory / "state.lmdb", asyncio.get_running_loop())
    try:
        notes = LocalNotes(store)
        return Found(str(directory), decode_note(notes.get(NOTE_NAME)), greatest_epoch(notes))
    finally:
        store.close()


async def rebuild_at(
    backend: Backend, found: Sequence[Found], chosen: Path | None, as_json: bool, yes: bool
) -> None:
    """Say what there is, and write the record if a directory is chosen. Raises CannotRebuild."""
    from faircopy.arbiter.rebuilding import rebuilt, write
    from faircopy.arbiter.registration import BROKERS, known_from, registered_in, with_prefix

    entries = (await backend.snapshot()).entries
    known = known_from(entries)
    if not as_json:
        show([row_of(each) for each in found], False, empty="", folds=False)
        note(record_sentence(known))
    if chosen is None:
        if as_json:
            say({"directories": [row_of(each) for each in found], "record": about_record(known)}, True, "")
        else:
            note("nothing was changed: name the directory to make the record from with --from")
        return
    one = next(each for each in found if Path(each.path) == chosen)
    made = rebuilt(
        one, [each for each in found if each is not one], known, registered_in(with_prefix(entries, BROKERS))
    )
    if made.loses:
        note(made.loses)
    if not yes and not as_json:
        confirm(f"make the record from {chosen}, with broker {made.broker} as the only replica?")
    await write(backend, made, entries)
    say(
        {
            "set_id": made.record.set_id,
            "broker": made.broker,
            "epoch": made.record.epoch,
            "loses": made.loses,
        },
        as_json,
        f"the record is made again: start broker {made.broker} with {chosen}",
    )


def row_of(found: Found) -> dict[str, Any]:
    """What a directory has."""
    it = found.note
    return {
        "directory": found.path,
        "set_id": it.set_id or None,
        "broker": it.broker if it.is_member else None,
        "life": it.last,
        "epoch": found.newest_epoch,
    }


def about_record(known: Known) -> dict[str, Any] | None:
    """The arbiter's record; None if it has none."""
    record = known.record
    if record is None:
        return None
    return {"set_id": record.set_id, "replicas": list(record.replicas), "epoch": record.epoch}


def record_sentence(known: Known) -> str:
    """The arbiter's record, for people."""
    record = known.record
    if record is None:
        return "the arbiter has no record of this set"
    replicas = ", ".join(map(str, record.replicas))
    return f"the arbiter's record: set id {record.set_id}, broker {replicas}, epoch {record.epoch}"

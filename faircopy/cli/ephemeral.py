"""`faircopy start --ephemeral`: a broker for tests, in a temporary directory, that ends with its parent.

This process only keeps another one, its fork, which is the broker. So a broker that is killed, on request or
by its test, comes back at the same address within moments, and the directory is removed in the end.

It says where the broker listens in one line of JSON. If standard input is a pipe, each line on it is an order
(JSON, `{"order": NAME, ...}`), and is answered by one more line. The end of the input is the end of all.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faircopy.cli.kept_broker import KeptBroker
from faircopy.cli.signals import heard
from faircopy.errors import FaircopyError
from faircopy.settings.sources import load_settings
from faircopy.settings.table import Settings

SETTINGS = (
    "durability=os", "plain.enabled=false", "arbiter=", "replica.set=", "metadata.journals=1",
    "offsets.partitions=1", "shards=1", "journal.segment.bytes=4194304", "disk.reserve.bytes=1048576",
    "group.initial.rebalance.delay.ms=0", "transaction.abort.interval.ms=100",
)  # fmt: skip
"""What is worth nothing in a test and takes time or space is left out; --set has the last word."""
LISTENER = "127.0.0.1:0"
PARENT_CHECK_SECONDS = 0.5
ORDERS_BYTES = 1 << 16
EX_OK = 0


class BadOrder(FaircopyError):
    """An order can't be carried out. Nothing was changed."""


def run_ephemeral(
    config: Path | None, overrides: tuple[str, ...], listeners: str | None, descriptors_max: int
) -> int:
    """Run a broker for tests until the parent is gone, or a signal comes. Returns the exit code."""
    parent = os.getppid()
    with temporary_directory() as directory:
        settings = load_settings(
            config, os.environ, (*SETTINGS, *overrides),
            data_dir=str(directory / "data"), listeners=listeners or LISTENER,
        )  # fmt: skip
        return Ephemeral(settings, directory, descriptors_max, parent).run()


@contextlib.contextmanager
def temporary_directory() -> Iterator[Path]:
    """A directory that is removed in the end."""
    directory = Path(tempfile.mkdtemp(prefix="faircopy-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Ephemeral:
    """Keeps the broker of a parent process, and carries out its orders."""

    def __init__(self, settings: Settings, directory: Path, descriptors_max: int, parent: int) -> None:
        self._broker = KeptBroker(settings, directory, descriptors_max)
        self._parent = parent
        self._is_over = False
        self._unread = b""
        self._input = [0] if is_pipe(0) else []

    def run(self) -> int:
        """Start the broker, say so, and keep it until all is over. Returns the exit code."""
        woken = self._hear_signals()
        try:
            self._broker.start()
            say(
                bootstrap_servers=self._broker.address,
                pid=os.getpid(),
                data_dir=self._broker.settings.data_dir,
            )
            while True:
                ready, _, _ = select.select([woken, *self._input], [], [], PARENT_CHECK_SECONDS)
                if woken in ready:
                    os.read(woken, ORDERS_BYTES)
                if self._is_over or os.getppid() != self._parent or not self._read_orders(ready):
                    return EX_OK
                self._broker.come_back()
                if self._broker.exit_code is not None:
                    return self._broker.exit_code
        finally:
            self._broker.kill()

    def _hear_signals(self) -> int:
        """Take note of signals. Returns a descriptor from which can be read when one has come."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in heard():
            signal.signal(number, self._end)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        return woken

    def _end(self, number: int, frame: object) -> None:
        self._is_over = True

    # -- orders ----------------------------------------------------------------------------------------------

    def _read_orders(self, ready: list[int]) -> bool:
        """Carry out the orders that have come. False at the end of the input."""
        if 0 not in ready:
            return True
        piece = os.read(0, ORDERS_BYTES)
        *lines, self._unread = (self._unread + piece).split(b"\n")
        for line in lines:
            self._answer(line)
        return bool(piece)

    def _answer(self, line: bytes) -> None:
        try:
            say(answer=self._carry_out(parsed(line)))
        except FaircopyError as error:
            say(error=str(error))

    def _carry_out(self, order: dict[str, Any]) -> Any:
        broker = self._broker
        match order.pop("order", None):
            case "kill":
                broker.kill()
            case "start":
                broker.start()
            case "freeze":
                broker.freeze()
            case "resume":
                broker.resume()
            case "broker":
                return {"pid": broker.pid, "starts": broker.starts, "is_frozen": broker.is_frozen}
            case "clear":
                broker.start()
                broker.resume()
                return broker.ask("clear", order)
            case str(name):
                return broker.ask(name, order)
            case _:
                raise BadOrder('an order is a line of JSON such as {"order": "kill"}')
        return None


def parsed(line: bytes) -> dict[str, Any]:
    """A line as an order. Raises BadOrder."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise BadOrder(f"an order is a line of JSON, and this is none: {error}") from error
    if not isinstance(found, dict):
        raise BadOrder(f"an order is a JSON object, and this is none: {found!r}")
    return found


def say(**document: Any) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def is_pipe(descriptor: int) -> bool:
    """Whether this is a pipe or a socket, whose other end somebody holds; no terminal, no file."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

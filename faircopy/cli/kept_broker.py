"""The broker of `faircopy start --ephemeral`: a fork of the process that keeps it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import uvloop

from faircopy.broker.environment import Environment
from faircopy.broker.for_tests import BrokerForTests
from faircopy.client.connection import BrokerConnection
from faircopy.client.errors import ConnectionFailed
from faircopy.errors import FaircopyError
from faircopy.faults.orders import SCHEMA as FAULTS
from faircopy.net.listeners import Listener, bind_all, parse_listeners
from faircopy.settings.table import Settings
from faircopy.storage.disk_for_tests import DiskForTests
from faircopy.storage.system import mount

ASK_SECONDS = 60.0
EX_FAILED = 1
EX_IOERR = 74
KILLED = -signal.SIGKILL
READY = b"\n"


class BrokerIsAway(FaircopyError):
    """The broker can't be asked now."""


class KeptBroker:
    """A broker in a child process, on the same addresses in all of its lives.

    `pid` is None while it is down. `exit_code` is set once it has ended by itself, and not by a kill.
    """

    def __init__(self, settings: Settings, directory: Path, descriptors_max: int) -> None:
        """Take the addresses. Raises CannotListen, BadSetting."""
        # Bound here and in the child, which listens: nobody else is given the port while the child is dead.
        bound = bind_all(parse_listeners(settings))
        self._reserved = [taken for _, taken in bound]
        listeners = [listener for listener, _ in bound]
        text = ",".join(f"{each.name}://{each.address}" for each in listeners)
        self.settings = dataclasses.replace(settings, listeners=text)
        self.address = reachable(listeners[0])
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.starts = 0
        self.is_frozen = False
        self._directory = directory
        self._descriptors_max = descriptors_max
        self._lifeline: int | None = None

    # -- its lives -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it if it is down, and return when it accepts clients, or has failed to."""
        if self.pid is not None:
            return
        told, tell = os.pipe()
        end, self._lifeline = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._lifeline)
            be_broker(self.settings, self._directory, self._descriptors_max, tell, end)
        os.close(tell)
        os.close(end)
        is_ready = os.read(told, 1) == READY
        os.close(told)
        self.starts += 1
        if not is_ready:
            self.exit_code = self._reap() or EX_FAILED

    def come_back(self) -> None:
        """Start it again if somebody has killed it, but not by `kill`."""
        if self.pid is None:
            return
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if ended:
            self._ended(os.waitstatus_to_exitcode(status))

    def kill(self) -> None:
        """kill -9. It stays down until `start`."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            self._reap()

    def freeze(self) -> None:
        """Let it do nothing at all, as if its machine stood still. Raises BrokerIsAway."""
        os.kill(self._there(), signal.SIGSTOP)
        self.is_frozen = True

    def resume(self) -> None:
        """Let it go on. Raises BrokerIsAway."""
        os.kill(self._there(), signal.SIGCONT)
        self.is_frozen = False

    def _there(self) -> int:
        if self.pid is None:
            raise BrokerIsAway("the broker was killed, and is down: start it first")
        return self.pid

    def _reap(self) -> int:
        """Wait for its end. Returns its exit code, negative for a signal."""
        assert self.pid is not None
        _, status = os.waitpid(self.pid, 0)
        self._is_down()
        return os.waitstatus_to_exitcode(status)

    def _is_down(self) -> None:
        self.pid, self.is_frozen = None, False
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _ended(self, code: int) -> None:
        self._is_down()
        if code == KILLED:
            self.start()
        else:
            self.exit_code = code if code > 0 else EX_FAILED

    # -- asking it -------------------------------------------------------------------------------------------

    def ask(self, order: str, document: dict[str, Any]) -> Any:
        """Have it carry out an order of its API Faults. Returns the answer. Raises FaircopyError."""
        self.come_back()
        self._there()
        if self.is_frozen:
            raise BrokerIsAway("the broker is frozen: resume it first")
        try:
            return self._ask(order, document)
        except ConnectionFailed:
            # It may be dying by a fault that has happened just now, and forgets what it was asked.
            self.come_back()
            return self._ask(order, document)

    def _ask(self, order: str, document: dict[str, Any]) -> Any:
        with BrokerConnection(self.address, ASK_SECONDS) as connection:
            answer = connection.ask(FAULTS, 0, {"order": order, "document": json.dumps(document)})
        if answer.error_code:
            raise BrokerIsAway(answer.document)
        return json.loads(answer.document)


def reachable(listener: Listener) -> str:
    """The address of a listener for clients on this machine."""
    address = listener.advertised or listener.address
    return str(address._replace(host="127.0.0.1") if address.is_wildcard else address)


# -- in the child --------------------------------------------------------------------------------------------


def be_broker(
    settings: Settings, directory: Path, descriptors_max: int, tell: int, lifeline: int
) -> NoReturn:
    """Be the broker until this process ends. The end of `lifeline` means that nobody keeps it any more."""
    code = EX_FAILED
    try:
        leave_parents_signals()
        with mount(disk := DiskForTests()):
            broker_life = serve(settings, descriptors_max, disk, tell, lifeline)
            code = uvloop.run(broker_life)
        shutil.rmtree(directory, ignore_errors=True)
    except FaircopyError as error:
        sys.stderr.write(f"faircopy: {error}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def leave_parents_signals() -> None:
    """Signals and orders are for the process that keeps this one; it also has the standard output."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)


async def serve(
    settings: Settings, descriptors_max: int, disk: DiskForTests, tell: int, lifeline: int
) -> int:
    """Serve until nobody keeps this process any more. Ends it at once if the disk fails (I10)."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()
    loop.add_reader(lifeline, end, gone)
    broker = BrokerForTests(settings, Environment(descriptors_max=descriptors_max), disk)
    await broker.start()
    os.write(tell, READY)
    os.close(tell)
    ends: tuple[asyncio.Future[Any], ...] = (gone, broker.failed)
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if broker.failed.done():
        os._exit(EX_IOERR)
    return 0


def end(waiting: asyncio.Future[None]) -> None:
    """End a wait."""
    if not waiting.done():
        waiting.set_result(None)

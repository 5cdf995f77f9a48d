"""The processes of a soak: started, killed, stopped, and finally ended, each by its own id."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.broker_process import environment
from tests.soak.broker import IMPORTED

Process = asyncio.subprocess.Process

READY_SECONDS = 60.0
STOP_SECONDS = 60.0
READY = "faircopy is ready on "


class SoakProcess:
    """A Python module in a process of its own. Its errors go to a log, its output is read line by line."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._process: Process | None = None

    @property
    def name(self) -> str:
        return self.log.stem

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def exit_code(self) -> int | None:
        """The exit code if it ended by itself, or None: it is running, or we ended it."""
        return self._process.returncode if self._process is not None else None

    async def spawn(self, module: str, *arguments: str) -> Process:
        """Start a process that runs a module."""
        with self.log.open("a") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", module, *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
                # Ctrl-C is only for us: we end the other processes.
                start_new_session=True,
            )

    def send_signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def end(self, number: signal.Signals = signal.SIGKILL) -> int | None:
        """End it, if it runs. Returns its exit code; None if nothing was running, or it had to be killed."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return None
        process.send_signal(number)
        try:
            return await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def close(self) -> None:
        """End it, and everything that belongs to it."""
        await self.end()


class BrokerProcess(SoakProcess):
    """The broker. It takes a free port at each start: clients know only the proxy's.

    While one broker runs, the next one has already imported its modules, and waits for the word to start.
    """

    def __init__(self, directory: Path, proxy_port: int, mutant: str | None, *settings: str) -> None:
        super().__init__(directory / "broker.log")
        self.full = directory / "full"
        self.data_directory = directory / "data"
        self.port = 0
        self._next: asyncio.Task[Process] | None = None
        self._arguments = [str(self.full), *(["--mutant", mutant] if mutant else [])]
        self._arguments += ["--data-dir", str(self.data_directory), "--listen", "127.0.0.1:0"]
        for setting in (f"advertised.listeners=127.0.0.1:{proxy_port}", *settings):
            self._arguments += ["--set", setting]

    async def _import(self) -> Process:
        process = await self.spawn("tests.soak.broker", *self._arguments)
        line = await next_line(process)
        if line != IMPORTED:
            process.kill()
            raise RuntimeError(f"the broker did not start: see {self.log}")
        return process

    async def begin_start(self) -> asyncio.Task[bool]:
        """Start it. The task tells whether it became ready; if not, it has ended."""
        self._process = process = await (self._next or self._import())
        assert process.stdin is not None
        process.stdin.write(b"start\n")
        self._next = asyncio.create_task(self._import())
        return asyncio.create_task(self._wait_until_ready(process))

    async def _wait_until_ready(self, process: Process) -> bool:
        line = await next_line(process)
        if line.startswith(READY):
            self.port = int(line.rsplit(":", 1)[1])
            return True
        await process.wait()
        return False

    async def close(self) -> None:
        await super().close()
        if self._next is not None:
            self._process = await self._next
            await self.end()


class ClientProcess(SoakProcess):
    """A process with clients of one library. In each of its lives it writes another history."""

    def __init__(self, directory: Path, library: str, proxy_port: int) -> None:
        super().__init__(directory / f"{library}.log")
        self._directory = directory
        self._library = library
        self._proxy_port = proxy_port
        self._lives = 0
        self._reading: asyncio.Task[None] | None = None
        self._counts: list[Counter[str]] = []

    @property
    def ended(self) -> Counter[str]:
        """How transactions of a group ended, and how many plain sends there were, in all lives."""
        return sum(self._counts, Counter[str]())

    async def start(self, seed: int) -> None:
        self._lives += 1
        name = f"{self._library}.{self._lives}"
        history = self._directory / f"{name}.history"
        self._process = await self.spawn(
            "tests.soak.client", self._library, name, f"127.0.0.1:{self._proxy_port}", str(history), str(seed)
        )
        self._counts.append(Counter())
        self._reading = asyncio.create_task(self._read_counts(self._process, len(self._counts) - 1))

    async def _read_counts(self, process: Process, life: int) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            with contextlib.suppress(ValueError):  # half a line of a killed process
                self._counts[life] = Counter(json.loads(line))


async def next_line(process: Process) -> str:
    """The next line of a process's output; empty if it has ended. Raises TimeoutError."""
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), READY_SECONDS)).decode().strip()

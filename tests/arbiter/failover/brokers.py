"""`faircopy start` with an arbiter: processes that take turns to lead one data directory."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.broker_process import environment
from tests.child_process import start_child

SET = "failover"
STOP_SECONDS = 60.0
ASK_SECONDS = 60.0

LEADS = re.compile(r"^(\S+ \S+) \S+ broker (\d+) leads replica set \S+ in epoch (\d+)$", re.MULTILINE)
NEW_LIFE = "this process begins a new life"
LOST = "has lost its lease at the arbiter"
WAITS = f"replica set {SET} is served by"
LOCKED = "This start waits until it is unlocked"


class SetMember:
    """A process that leads, or waits until it may. `ready` counts its lives that have come to serve."""

    def __init__(
        self, directory: Path, number: int, port: int, arbiter: str, settings: Sequence[str]
    ) -> None:
        self.number = number
        self.address = f"127.0.0.1:{port}"
        self.ready = 0
        self._log_path = directory / f"broker-{number}.log"
        self._command = [sys.executable, "-m", "faircopy", "start", "--data-dir", str(directory / "data")]
        self._command += ["--listen", self.address, "--arbiter", arbiter, "--replica-set", SET]
        self._command += ["--broker-id", str(number)]
        for setting in settings:
            self._command += ["--set", setting]
        self.process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str) -> None:
        """Start it; it may have to wait."""
        with self._log_path.open("a") as log:
            log.write("--- a process starts\n")
            log.flush()
            self.process = start_child(
                [*self._command, *arguments], stdout=subprocess.PIPE, stderr=log, env=environment()
            )
        threading.Thread(target=self._count_ready, args=[self.process], daemon=True).start()

    def _count_ready(self, process: subprocess.Popen[str]) -> None:
        """Its lives say on standard output when they are ready."""
        assert process.stdout is not None
        with process.stdout as output:
            for _ in output:
                self.ready += 1

    @property
    def log(self) -> str:
        """What it has logged, in all its lives."""
        return self._log_path.read_text() if self._log_path.exists() else ""

    @property
    def has_ended(self) -> bool:
        """Whether its process is gone."""
        return self.process is None or self.process.poll() is not None

    @property
    def lives(self) -> list[tuple[str, int]]:
        """When it came to lead, and in which epochs."""
        return [(when, int(epoch)) for when, number, epoch in LEADS.findall(self.log)]

    @property
    def is_ready(self) -> bool:
        """Whether its newest life serves."""
        return not self.has_ended and self.ready == len(self.lives) > 0

    @property
    def waits(self) -> bool:
        """Whether it has said, in its newest life, that it waits for its turn."""
        life = max(self.log.rfind("--- a process starts"), self.log.rfind(NEW_LIFE))
        return not self.has_ended and WAITS in self.log[life:]

    def pause(self) -> None:
        """SIGSTOP; returns when it has stopped."""
        self._send(signal.SIGSTOP)
        assert self.process is not None
        while self.process.poll() is None and state_of(self.process.pid) != "T":
            time.sleep(0.005)

    def go_on(self) -> None:
        """SIGCONT."""
        self._send(signal.SIGCONT)

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal that ends it; returns its exit code."""
        if self.process is None:
            return 0
        if not self.has_ended:
            self._send(number)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def _send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def status(self) -> dict[str, Any]:
        """What `faircopy status` says. Raises subprocess.CalledProcessError, TimeoutExpired."""
        command = [sys.executable, "-m", "faircopy", "status", "--json", "-b", self.address]
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, timeout=ASK_SECONDS, check=True
        )
        about: dict[str, Any] = json.loads(done.stdout)
        return about


def state_of(pid: int) -> str:
    """The state of a process: T if it is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

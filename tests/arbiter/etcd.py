"""etcd, run as members of a cluster."""

from __future__ import annotations

import contextlib
import json
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.systems.ports import HeldPorts
from tests.child_process import REAPER
from tests.fetch.etcd import ETCD

READY_SECONDS = 120.0
LOG_CHARACTERS = 4_000
"""The end of each member's log that a failure shows."""


class Guarded(NamedTuple):
    """What lets only some clients in: options of etcd's, and how the tests themselves speak TLS with it."""

    options: Mapping[str, str]
    tls: ssl.SSLContext


class Member:
    """A member of a cluster; it keeps its ports when it is started again."""

    def __init__(
        self, directory: Path, name: str, ports: tuple[int, int], cluster: str, guarded: Guarded | None
    ) -> None:
        self._directory = directory
        self._name = name
        self._log_path = directory / f"{name}.log"
        self._guarded = guarded
        self._client = f"http{'s' if guarded else ''}://127.0.0.1:{ports[0]}"
        self._peer = f"http://127.0.0.1:{ports[1]}"
        self._cluster = cluster
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"127.0.0.1:{ports[0]}"

    def start(self) -> None:
        """Start it. It serves once a majority of the members runs."""
        options = {
            "name": self._name,
            "data-dir": str(self._directory / self._name),
            "listen-client-urls": self._client,
            "advertise-client-urls": self._client,
            "listen-peer-urls": self._peer,
            "initial-advertise-peer-urls": self._peer,
            "initial-cluster": self._cluster,
            "log-level": "error",
        } | dict(self._guarded.options if self._guarded else {})
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [str(ETCD.find() / "etcd"), *(f"--{name}={value}" for name, value in options.items())],
                stdout=log,
                stderr=log,
            )
        REAPER.watch(self._process.pid)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    @property
    def log(self) -> str:
        """The end of what it has logged, in all its lives."""
        return f"--- {self._name}:\n{self._log_path.read_text()[-LOG_CHARACTERS:]}"

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """SIGSTOP."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self._send(signal.SIGCONT)

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def leads(self) -> bool:
        """Whether it leads the others, as it believes itself."""
        asked = urllib.request.Request(f"{self._client}/v3/maintenance/status", b"{}")
        try:
            with urllib.request.urlopen(asked, timeout=5, context=self._tls) as answer:
                status = json.load(answer)
        except OSError:
            return False
        return bool(status.get("leader") == status["header"]["member_id"])

    @property
    def _tls(self) -> ssl.SSLContext | None:
        return self._guarded.tls if self._guarded else None

    def is_healthy(self) -> bool:
        """Whether it serves."""
        try:
            with urllib.request.urlopen(f"{self._client}/health", timeout=5, context=self._tls) as answer:
                return b'"true"' in answer.read()
        except (urllib.error.URLError, OSError):
            return False


class EtcdCluster:
    """So many members on ports of loopback. They keep their ports, which nobody else gets, over restarts."""

    def __init__(self, directory: Path, size: int, guarded: Guarded | None = None) -> None:
        self._ports = HeldPorts(2 * size)
        ports = self._ports.numbers
        names = [f"m{number}" for number in range(size)]
        cluster = ",".join(
            f"{name}=http://127.0.0.1:{ports[2 * number + 1]}" for number, name in enumerate(names)
        )
        self.members = [
            Member(directory, name, (ports[2 * number], ports[2 * number + 1]), cluster, guarded)
            for number, name in enumerate(names)
        ]

    @property
    def addresses(self) -> list[str]:
        """Where clients find the members."""
        return [member.address for member in self.members]

    @property
    def log(self) -> str:
        """The ends of all logs."""
        return "\n".join(member.log for member in self.members)

    @contextlib.contextmanager
    def running(self) -> Iterator[EtcdCluster]:
        """Start all members; end them afterwards. What fails meanwhile shows their logs."""
        try:
            for member in self.members:
                member.start()
            self._wait_until_healthy()
            yield self
        except Exception as error:
            error.add_note(f"the members of etcd have logged:\n{self.log}")
            raise
        finally:
            for member in self.members:
                member.kill()
            self._ports.release()

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not all(member.is_healthy() for member in self.members):
            assert not any(member.has_ended for member in self.members), "a member ended at its start"
            assert time.monotonic() < deadline, f"etcd did not serve within {READY_SECONDS:.0f} s"
            time.sleep(0.05)

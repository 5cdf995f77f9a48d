"""etcd, built from its Go module once, and run as members of a cluster."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from bench.systems.maven import CACHE, Unavailable
from tests.broker_process import eventually

SOURCE = Path(__file__).parent / "etcd_build"
PACKAGE = "go.etcd.io/etcd/server/v3"
BUILD_SECONDS = 600.0
READY_SECONDS = 60.0


def build_etcd() -> Path:
    """The program, built the first time, which takes minutes. Raises Unavailable."""
    built = CACHE / "etcd" / "etcd"
    if built.exists():
        return built
    go = shutil.which("go")
    if go is None:
        raise Unavailable("no go on PATH to build etcd")
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "etcd.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes: one builds, the others wait
        if not built.exists():
            build(go, built)
    return built


def build(go: str, built: Path) -> None:
    """Build the program; its directory appears whole or not at all. Raises Unavailable."""
    with tempfile.TemporaryDirectory(prefix="building-", dir=CACHE) as scratch:
        directory = Path(scratch, "etcd")
        shutil.copytree(SOURCE, directory)
        environment = os.environ | {"GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
        command = [go, "build", "-trimpath", "-ldflags", "-s -w", "-o", "etcd", PACKAGE]
        try:
            run = subprocess.run(
                command, cwd=directory, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"go could not build etcd within {BUILD_SECONDS:.0f} s") from None
        if run.returncode:
            said = run.stderr.strip().splitlines() or ["it did not say why"]
            raise Unavailable(f"go could not build etcd: {said[-1]}")
        directory.rename(built.parent)


class Member:
    """A member of a cluster; it keeps its ports when it is started again."""

    def __init__(self, directory: Path, name: str, ports: tuple[int, int], cluster: str) -> None:
        self._directory = directory
        self._name = name
        self._client, self._peer = (f"http://127.0.0.1:{port}" for port in ports)
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
        }
        with (self._directory / f"{self._name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(build_etcd()), *(f"--{name}={value}" for name, value in options.items())],
                stdout=log,
                stderr=log,
            )

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

    def is_healthy(self) -> bool:
        """Whether it serves."""
        try:
            with urllib.request.urlopen(f"{self._client}/health", timeout=5) as answer:
                return b'"true"' in answer.read()
        except (urllib.error.URLError, OSError):
            return False


class EtcdCluster:
    """So many members on free ports of loopback."""

    def __init__(self, directory: Path, size: int) -> None:
        ports = free_ports(2 * size)
        names = [f"m{number}" for number in range(size)]
        cluster = ",".join(
            f"{name}=http://127.0.0.1:{ports[2 * number + 1]}" for number, name in enumerate(names)
        )
        self.members = [
            Member(directory, name, (ports[2 * number], ports[2 * number + 1]), cluster)
            for number, name in enumerate(names)
        ]

    @property
    def addresses(self) -> list[str]:
        """Where clients find the members."""
        return [member.address for member in self.members]

    def __enter__(self) -> EtcdCluster:
        for member in self.members:
            member.start()
        eventually(lambda: all(member.is_healthy() for member in self.members), READY_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()


def free_ports(count: int) -> list[int]:
    """Free ports of loopback."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports

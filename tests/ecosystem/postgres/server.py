"""A server of PostgreSQL on loopback, which is gone with the test. It refuses to run as root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench.systems.ports import HOST, HeldPorts
from tests.child_process import start_child
from tests.ecosystem.postgres.installed import unpack

USER = "postgres"  # of the database
UNPRIVILEGED = "nobody"
INITIALISE_SECONDS = 300.0
STOP_SECONDS = 120.0


class PostgresServer:
    """It lets anybody in, and writes the log that others can follow. Its files are in a directory that whom
    it runs as can enter, other than pytest's.
    """

    def __init__(self, jars: Path) -> None:
        self._jars = jars
        self._directory = Path(tempfile.mkdtemp(prefix="faircopy-postgres-"))
        self._ports = HeldPorts(1)
        self.port = self._ports.numbers[0]
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """As the driver for Java takes it."""
        return f"jdbc:postgresql://{HOST}:{self.port}/postgres?user={USER}"

    def start(self) -> None:
        """Make a new database, and start it; others try again until it is ready."""
        unpack(self._jars, self._directory)
        self._give_away()
        self._initialise()
        options = {"wal_level": "logical", "listen_addresses": HOST, "port": self.port}
        options["unix_socket_directories"] = ""
        command = [self._program("postgres"), "-D", str(self._data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with self._log_path.open("w") as log:
            self._process = start_child(command, stdin=subprocess.DEVNULL, stderr=log, **self._as_whom())

    def _give_away(self) -> None:
        """The directory belongs to whom the server runs as."""
        if os.geteuid() == 0:
            shutil.chown(self._directory, UNPRIVILEGED)

    def _initialise(self) -> None:
        command = [self._program("initdb"), "-D", str(self._data), "-U", USER, "--auth=trust", "--no-sync"]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, timeout=INITIALISE_SECONDS, **self._as_whom()
        )

    def _as_whom(self) -> dict[str, Any]:
        """What the programs are started with."""
        if os.geteuid() != 0:
            return {"cwd": self._directory}
        found = pwd.getpwnam(UNPRIVILEGED)
        return {"cwd": self._directory, "user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}

    def _program(self, name: str) -> str:
        return str(self._directory / "bin" / name)

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    @property
    def _log_path(self) -> Path:
        return self._directory / "postgres.log"

    @property
    def log(self) -> str:
        """What it has logged."""
        return self._log_path.read_text()

    def stop(self) -> None:
        """Have it end without waiting for clients, and delete all that it has."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(STOP_SECONDS)
            self._process = None
        self._ports.release()
        shutil.rmtree(self._directory)

    def __enter__(self) -> PostgresServer:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

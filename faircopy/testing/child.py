"""The process `faircopy start --ephemeral` of a broker for tests, and the orders that it is given."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any

from faircopy.errors import FaircopyError

END_SECONDS = 10.0
LOG_BYTES_SHOWN = 5_000
COMMAND = (sys.executable, "-P", "-m", "faircopy", "start", "--ephemeral")


class CannotStart(FaircopyError):
    """The broker did not start; the message has what it logged."""


class BrokerEnded(FaircopyError):
    """The broker's process is gone; the message has what it logged."""


class OrderRefused(FaircopyError):
    """The broker did not do what was asked of it, and says why. Nothing was changed."""


class EphemeralProcess:
    """The process, from its start to `close`. It ends with this one, however that ends. Any thread may use
    it.

    `told` is what it has said of itself: `bootstrap_servers`, `pid`, `data_dir`.
    """

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        """Start it, and return when it accepts clients. Raises CannotStart."""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # until `close`
        self._asking = threading.Lock()
        self._process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            env=without_settings(), text=True, bufsize=1,
        )  # fmt: skip
        try:
            self.told: dict[str, Any] = self._line()
        except BrokerEnded as error:
            self.close()
            raise CannotStart(f"the broker did not start: {error}") from None
        except BaseException:
            self.close()
            raise

    @property
    def log(self) -> str:
        """What the broker has logged until now."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors="replace")

    def ask(self, order: str, **document: Any) -> Any:
        """Have an order carried out, and return the answer. Raises OrderRefused, BrokerEnded."""
        with self._asking:
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps({"order": order, **document}) + "\n")
                self._process.stdin.flush()
            except (OSError, ValueError):
                raise self._ended() from None
            answer = self._line()
        if "error" in answer:
            raise OrderRefused(answer["error"])
        return answer["answer"]

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()
        except ValueError:  # it was closed here
            line = ""
        if not line:
            raise self._ended()
        found: dict[str, Any] = json.loads(line)
        return found

    def _ended(self) -> BrokerEnded:
        said = self.log[-LOG_BYTES_SHOWN:].strip() if not self._log.closed else ""
        return BrokerEnded(f"its process has ended. It logged:\n{said}")

    def close(self) -> None:
        """End it, and wait for its end. Its data are removed."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        self._log.close()


def without_settings() -> dict[str, str]:
    """This process's environment without the settings of another broker."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FAIRCOPY_")}

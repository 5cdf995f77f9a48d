"""faircopy with any commit protocol and durability."""

from __future__ import annotations

from pathlib import Path

from bench.results import System
from faircopy import __version__
from tests.broker_process import BrokerProcess

LOCAL_COPY = "local-copy"


class Faircopy:
    """A broker process of this checkout. `protocol` is local-copy, or a rival's name in bench/rival.py."""

    def __init__(
        self, directory: Path, protocol: str = LOCAL_COPY, durability: str = "fsync", *settings: str
    ) -> None:
        # Tables for Spark are measured with Spark; here they would be work that the others do not have.
        # The reserve of a full disk would count among what messages take on disk.
        chosen = [f"durability={durability}", "plain.enabled=false", "disk.reserve.bytes=0", *settings]
        directory.mkdir(parents=True, exist_ok=True)
        self._broker = BrokerProcess(directory, *chosen)
        if protocol != LOCAL_COPY:
            self._broker.program = ("bench.rival", protocol)
        self.about = System(
            f"{protocol} {durability}",
            "faircopy",
            __version__,
            protocol,
            durability,
            dict(setting.split("=", 1) for setting in chosen),
        )

    @property
    def address(self) -> str:
        return self._broker.address

    @property
    def log(self) -> str:
        """The broker's log."""
        return self._broker.log

    @property
    def pid(self) -> int:
        return self._broker.pid

    @property
    def processes(self) -> dict[str, int]:
        return {"broker": self.pid}

    @property
    def data_directory(self) -> Path:
        return self._broker.data_directory

    def log_directories(self, topic: str) -> list[Path]:
        return sorted(self.data_directory.glob(f"log/{topic}.*"))

    def topic_directories(self, topic: str) -> list[Path]:
        return self.log_directories(topic) + sorted(self.data_directory.glob(f"journal/{topic}.*"))

    def start(self) -> None:
        self._broker.start()

    def stop(self) -> None:
        self._broker.stop()

    def kill(self) -> None:
        self._broker.kill()

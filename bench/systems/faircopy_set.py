"""faircopy as a replica set: a leader and two followers, over an arbiter in LMDB."""

from __future__ import annotations

from pathlib import Path

from bench.results import System
from bench.systems.faircopy import LOCAL_COPY
from faircopy import __version__
from tests.broker_process import BrokerProcess, eventually
from tests.child_process import next_line

LEADER, FOLLOWERS = 1, (2, 3)
SET = "bench"
SECRET = "known to all three"


class FaircopySet:
    """Three processes of this checkout. Only the leader serves clients."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        (directory / "secret").write_text(SECRET)
        chosen = {"durability": "fsync", "plain.enabled": "false", "disk.reserve.bytes": "0"}
        self._leader = self._broker(LEADER, chosen)
        self._followers = {number: self._broker(number, chosen) for number in FOLLOWERS}
        self.about = System("replica set fsync", "faircopy", __version__, LOCAL_COPY, "fsync", chosen)

    def _broker(self, number: int, settings: dict[str, str]) -> BrokerProcess:
        place = self._directory / str(number)
        place.mkdir(exist_ok=True)
        broker = BrokerProcess(place, *(f"{name}={value}" for name, value in settings.items()))
        broker.arguments = (
            *("--arbiter", f"lmdb:{self._directory / 'arbiter'}", "--replica-set", SET),
            *("--broker-id", str(number), "--secret-file", str(self._directory / "secret")),
        )
        if number != LEADER:
            broker.arguments += ("--replication-listener", "127.0.0.1:0")
        return broker

    @property
    def address(self) -> str:
        return self._leader.address

    @property
    def processes(self) -> dict[str, int]:
        followers = {f"follower {number}": broker.pid for number, broker in self._followers.items()}
        return {"leader": self._leader.pid, **followers}

    def start(self) -> None:
        try:
            self._begin_leader()
            for follower in self._followers.values():
                follower.begin()
                ensure_follows(follower)
            self._leader.wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def _begin_leader(self) -> None:
        """Start the leader, and return when the set is made: nobody can join before."""
        if self._leader.data_directory.exists():
            self._leader.begin()
            return
        joined = self._leader.arguments
        replicas = ",".join(map(str, (LEADER, *FOLLOWERS)))
        self._leader.arguments = (*joined, "--new-set", "--replicas", replicas)
        self._leader.begin()
        self._leader.arguments = joined
        eventually(lambda: f"broker {LEADER} leads replica set {SET}" in self._leader.log)

    def stop(self) -> None:
        self._leader.stop()
        for follower in self._followers.values():
            follower.stop()

    def kill(self) -> None:
        self._leader.kill()
        for follower in self._followers.values():
            follower.kill()


def ensure_follows(broker: BrokerProcess) -> None:
    """Return when a broker waits for its leader. Raises RuntimeError if it ends instead."""
    assert broker.process is not None
    if not next_line(broker.process).startswith("faircopy follows, and waits for its leader"):
        raise RuntimeError(f"the broker does not follow; it logged:\n{broker.log}")

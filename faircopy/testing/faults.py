"""What goes wrong on request. The faults of commits, by name, and those of any request."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

ALWAYS = -1
When = Literal["before", "before_ack", "after_ack"]


class Faults:
    """What can go wrong in a broker for tests.

    A fault that is planned happens to the next request that it concerns, `times` times, or until faults are
    cleared if that is ALWAYS (-1); the first `skip` of those requests pass. Several are met in the order in
    which they were planned. `transactional_id` and `topic` restrict it to requests that name these. `api` is
    the name of a request in Kafka's protocol, such as "Produce"; `error` is that of an error, or its number.

    Methods raise OrderRefused if such a fault can't be, and BrokerEnded.
    """

    def ask(self, order: str, **document: Any) -> Any:
        """Have an order carried out."""
        raise NotImplementedError

    def _plan(self, api: str, effect: str, **fault: Any) -> None:
        self.ask("install", api=api, effect=effect, **fault)

    def _plan_for_commit(self, effect: str, **fault: Any) -> None:
        self._plan("EndTxn", effect, committed=True, **fault)

    # -- the next commit -------------------------------------------------------------------------------------

    def fail_next_commit(
        self,
        error: str | int = "TRANSACTION_ABORTABLE",
        *,
        transactional_id: str | None = None,
        times: int = 1,
        skip: int = 0,
    ) -> None:
        """The next commit is refused. It has no effect, and the transaction stays open."""
        self._plan_for_commit(
            "refuse", error=error, transactional_id=transactional_id, times=times, skip=skip
        )

    def fence_next_commit(self, *, transactional_id: str | None = None) -> None:
        """Another instance of the producer comes right before its next commit, which is refused."""
        self._plan_for_commit("fence", transactional_id=transactional_id)

    def expire_next_commit(self, *, transactional_id: str | None = None) -> None:
        """The transaction times out right before its next commit, which is refused."""
        self._plan_for_commit("expire", transactional_id=transactional_id)

    def delay_next_commit(
        self, seconds: float, *, takes_effect: bool = True, transactional_id: str | None = None
    ) -> None:
        """The next commit is answered so much later. It takes effect at once, or only then."""
        effect = "delay_ack" if takes_effect else "delay"
        self._plan_for_commit(effect, delay_ms=seconds * 1000, transactional_id=transactional_id)

    def time_out_next_commit(
        self, *, takes_effect: bool = False, transactional_id: str | None = None
    ) -> None:
        """The next commit is never answered, so that the client's own timeout ends its wait."""
        effect = "withhold_ack" if takes_effect else "withhold"
        self._plan_for_commit(effect, transactional_id=transactional_id)

    def lose_next_commit(self, *, transactional_id: str | None = None) -> None:
        """The connection breaks while the next commit is on its way: it has no effect, and no answer."""
        self._plan_for_commit("drop", transactional_id=transactional_id)

    def lose_next_ack(self, *, transactional_id: str | None = None) -> None:
        """The next commit takes effect, and the connection breaks before the client hears of it."""
        self._plan_for_commit("drop_ack", transactional_id=transactional_id)

    def kill_before_commit(self, *, transactional_id: str | None = None) -> None:
        """The broker is killed when the next commit arrives, which has no effect."""
        self._plan_for_commit("kill", transactional_id=transactional_id)

    def kill_before_ack(self, *, transactional_id: str | None = None) -> None:
        """The next commit takes effect, and the broker is killed before the client hears of it."""
        self._plan_for_commit("kill_before_ack", transactional_id=transactional_id)

    def kill_after_ack(self, *, transactional_id: str | None = None) -> None:
        """The next commit is acknowledged, and then the broker is killed."""
        self._plan_for_commit("kill_after_ack", transactional_id=transactional_id)

    # -- the next request of any kind ------------------------------------------------------------------------

    def refuse(self, api: str, error: str | int, **which: Any) -> None:
        """A request is answered with an error, for all that it asks for, and has no effect."""
        self._plan(api, "refuse", error=error, **which)

    def delay(self, api: str, seconds: float, *, takes_effect: bool = True, **which: Any) -> None:
        """A request is answered so much later. It takes effect at once, or only then."""
        self._plan(api, "delay_ack" if takes_effect else "delay", delay_ms=seconds * 1000, **which)

    def time_out(self, api: str, *, takes_effect: bool = False, **which: Any) -> None:
        """A request is never answered, and its connection stays open."""
        self._plan(api, "withhold_ack" if takes_effect else "withhold", **which)

    def drop_connection(self, api: str, *, takes_effect: bool = False, **which: Any) -> None:
        """The connection breaks in place of an answer."""
        self._plan(api, "drop_ack" if takes_effect else "drop", **which)

    def kill_at(self, api: str, when: When = "before", **which: Any) -> None:
        """The broker is killed when a request arrives, or right before or after it is answered."""
        self._plan(api, "kill" if when == "before" else f"kill_{when}", **which)

    def fence_at(self, api: str, **which: Any) -> None:
        """Another instance of the producer comes right before its request."""
        self._plan(api, "fence", **which)

    def expire_at(self, api: str, **which: Any) -> None:
        """The transaction times out right before a request of its producer."""
        self._plan(api, "expire", **which)

    # -- now -------------------------------------------------------------------------------------------------

    def fence(self, transactional_id: str) -> None:
        """Fence a producer, as another instance of it would: what it has open is aborted."""
        self.ask("fence", transactional_id=transactional_id)

    def expire(self, transactional_id: str | None = None) -> list[str]:
        """Abort the open transaction of a producer, or of all, as the timeout would. Returns whose it was."""
        found: list[str] = self.ask("expire", transactional_id=transactional_id)
        return found

    def drop_connections(self) -> int:
        """Break the connections of all clients. Returns how many there were."""
        return int(self.ask("drop_connections"))

    def kill(self) -> None:
        """kill -9. The broker stays down until `start`."""
        self.ask("kill")

    def start(self) -> None:
        """Start the broker that was killed, on the same data, and return when it accepts clients."""
        self.ask("start")

    def restart(self) -> None:
        """Kill the broker, and start it again."""
        self.kill()
        self.start()

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Within the block, the broker does nothing at all; its connections stay open."""
        self.ask("freeze")
        try:
            yield
        finally:
            self.ask("resume")

    @contextlib.contextmanager
    def full_disk(self) -> Iterator[None]:
        """Within the block, the broker's disk is full: it takes no messages, and commits go on."""
        self.ask("fill_disk")
        try:
            yield
        finally:
            self.ask("free_disk")

    # -- what has happened -----------------------------------------------------------------------------------

    def clear_faults(self) -> None:
        """Plan nothing more and count requests anew; a broker that is down, frozen or full goes on."""
        self.ask("clear")

    def planned_faults(self) -> list[dict[str, Any]]:
        """The faults that have not happened yet."""
        found: list[dict[str, Any]] = self.ask("planned")
        return found

    def requests(self, api: str) -> int:
        """How many requests of this kind have come since faults were cleared, or since the last start."""
        return int(self.ask("requests").get(api, 0))

    @property
    def starts(self) -> int:
        """How often the broker was started: once, and once more after each kill."""
        return int(self.ask("broker")["starts"])

    @property
    def pid(self) -> int | None:
        """The id of the broker's process as it is now; None while it is down."""
        found: int | None = self.ask("broker")["pid"]
        return found

"""One case: an application, to which one thing happens. What it is told, and what is in the log."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from faircopy.api.describe_transactions import SCHEMA as DESCRIBE_TRANSACTIONS
from faircopy.cli.outcome import outcome_of
from faircopy.client.connection import BrokerConnection
from faircopy.testing import Broker
from tests.broker_process import eventually
from tests.clients.errors.application import Application, Error
from tests.clients.errors.situations import PATIENCE_MS, Effect, Situation

VALUE = "1"
STEPS = ("begin", "send", "commit")


class Remedy(StrEnum):
    """What the application does then. Each ends with the message in the log once."""

    NOTHING = "nothing"
    COMMIT_AGAIN = "commit again"
    ABORT = "abort, write it again"
    NEW_PRODUCER = "new producer, write it again"
    ASK = "ask `faircopy txn outcome`"


class Told(NamedTuple):
    """What a library tells in a situation: at which step, and as which error."""

    step: str
    error: Error


class Trial:
    """One case with one application."""

    def __init__(self, broker: Broker, application: Application, situation: Situation) -> None:
        self._broker = broker
        self._application = application
        self._situation = situation
        self.topic = broker.create_topic()

    def told(self) -> Told | None:
        """Run the transaction, in which the situation comes about. Returns the first error."""
        self._open(self._situation.patience_ms)
        try:
            return self._transaction(is_provoked=True)
        finally:
            if self._situation.effect is Effect.MAYBE:
                self.close()  # a library may go on trying as long as its producer is there
            self._situation.ends_with(self._broker)

    def _transaction(self, *, is_provoked: bool = False) -> Told | None:
        for step in STEPS:
            if is_provoked and step == self._situation.step:
                self._situation.provoke(self._broker, self.topic)
            error = self._do(step)
            if error is not None:
                return Told(step, error)
        return None

    def ensure_effect(self, told: Told | None) -> None:
        """The log has what the page says after that was told, and the broker knows the outcome."""
        eventually(lambda: self._broker.planned_faults() == [])
        assert self.is_applied == (self.outcome() == "committed")
        if told is None:
            assert self.is_applied
        elif self._situation.effect is not Effect.YES:
            assert self.is_applied == self._situation.is_applied

    @property
    def is_applied(self) -> bool:
        """Whether the message is in the log, once."""
        values = self._broker.values(self.topic)
        assert values in ([], [VALUE.encode()])
        return bool(values)

    def apply(self, remedy: Remedy) -> None:
        """Do what the page advises. The message is then in the log, once."""
        if remedy is Remedy.COMMIT_AGAIN:
            ensure_nothing(self._do("commit"))
        elif remedy is Remedy.ABORT:
            ensure_nothing(self._do("abort"))
            ensure_nothing(self._transaction())
        elif remedy is Remedy.NEW_PRODUCER or (remedy is Remedy.ASK and self.outcome() != "committed"):
            self._start_anew()
        assert self.is_applied

    def _start_anew(self) -> None:
        self.close()
        self._open(PATIENCE_MS)
        ensure_nothing(self._transaction())

    def outcome(self) -> str:
        """What `faircopy txn outcome` says."""
        with BrokerConnection(self._broker.bootstrap_servers) as connection:
            answer = connection.ask(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [self.topic]})
        state = answer.transaction_states[0]
        return outcome_of(state.error_code, state.transaction_state).outcome

    def _open(self, patience_ms: int) -> None:
        servers = self._broker.bootstrap_servers
        ensure_nothing(
            self._do("open", servers=servers, transactional_id=self.topic, patience_ms=patience_ms)
        )

    def _do(self, step: str, **arguments: object) -> Error | None:
        if step == "send":
            arguments = {"topic": self.topic, "value": VALUE}
        return self._application.do(step, **arguments)

    def close(self) -> None:
        """Close the producer, if there is one."""
        self._do("close")


def ensure_nothing(told: Told | Error | None) -> None:
    """Nothing was told: it went well."""
    assert told is None, told

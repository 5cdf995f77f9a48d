"""`faircopy produce`: write lines from standard input as messages."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from confluent_kafka import KafkaError, KafkaException, Producer

from faircopy.cli.columns import printable
from faircopy.cli.output import broker_option
from faircopy.cli.topics import raise_if_stopped
from faircopy.client.connection import ensure_reachable
from faircopy.errors import FaircopyError

FLUSH_SECONDS = 30.0


class ProduceFailed(FaircopyError):
    """Messages could not be produced."""


@click.command()
@click.argument("topic")
@click.option("-K", "--key-separator", metavar="TEXT", help="The part of a line before TEXT is the key.")
@click.option(
    "-p", "--partition", type=int, default=-1, help="Write to this partition.  [default: by key, or spread]"
)
@click.option("--transactional-id", metavar="ID", help="Write in transactions; ID before a / is the group.")
@click.option(
    "--commit-every",
    type=click.IntRange(1),
    metavar="N",
    help="Lines per transaction.  [default: all in one]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@broker_option
def produce(
    topic: str, key_separator: str | None, partition: int, transactional_id: str | None,
    commit_every: int | None, as_json: bool, broker: str,
) -> None:  # fmt: skip
    """Write each line of standard input to TOPIC as a message.

    With --transactional-id, readers see all lines of a transaction or none. Ctrl-C aborts the open one.

    \b
    Examples:
      seq 1000 | faircopy produce numbers
      faircopy produce orders -K : --transactional-id loader/1 --commit-every 500 < orders.txt
    """
    if commit_every is not None and transactional_id is None:
        raise click.UsageError("--commit-every needs --transactional-id")
    ensure_reachable(broker)
    written = None if partition < 0 else {partition}
    try:
        writer = Writer(broker, topic, partition, transactional_id, commit_every)
    except KafkaException as error:
        raise failure(topic, error.args[0]) from error
    try:
        for line in sys.stdin.buffer:
            writer.write(*split(line.rstrip(b"\r\n"), key_separator))
        writer.finish()
    except KeyboardInterrupt:
        writer.give_up()
        raise click.Abort from None
    except ProduceFailed:
        raise_if_stopped(broker, topic, written)
        raise
    except KafkaException as error:
        raise_if_stopped(broker, topic, written)
        raise failure(topic, error.args[0]) from error
    report(topic, writer, as_json)


def split(line: bytes, separator: str | None) -> tuple[bytes | None, bytes]:
    """Key and value of a line."""
    if separator is None or separator.encode() not in line:
        return None, line
    key, _, value = line.partition(separator.encode())
    return key, value


def failure(topic: str, error: KafkaError) -> ProduceFailed:
    """The error to raise when librdkafka could not deliver a message."""
    return ProduceFailed(f"writing to {topic!r}: {error.str()} ({error.name()})")


def report(topic: str, writer: Writer, as_json: bool) -> None:
    """Print how much was written: as JSON on standard output, or in words on standard error."""
    if as_json:
        click.echo(json.dumps({"topic": topic, "messages": writer.written, "transactions": writer.committed}))
    else:
        ending = f" in {writer.committed:,} transaction(s)" if writer.is_transactional else ""
        click.echo(f"wrote {writer.written:,} message(s) to {printable(topic)}{ending}", err=True)


class Writer:
    """A producer that commits after a given number of lines."""

    def __init__(
        self, broker: str, topic: str, partition: int, transactional_id: str | None, commit_every: int | None
    ) -> None:
        self.is_transactional = transactional_id is not None
        self.written = 0
        self.committed = 0
        self._topic = topic
        self._partition = partition
        self._commit_every = commit_every
        self._in_transaction = 0
        self._failed: KafkaError | None = None
        config: dict[str, Any] = {
            "bootstrap.servers": broker,
            "client.id": "faircopy-cli",
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": int(FLUSH_SECONDS * 1000),
            "error_cb": self._error,
            "log_level": 0,
        }
        if transactional_id is not None:
            config["transactional.id"] = transactional_id
        self._producer = Producer(config)
        if self.is_transactional:
            self._producer.init_transactions(FLUSH_SECONDS)
            self._producer.begin_transaction()

    def _error(self, error: KafkaError) -> None:
        if error.fatal():
            self._failed = error

    def _delivered(self, error: KafkaError | None, _message: Any) -> None:
        if error is not None:
            self._failed = error

    def _raise_failure(self) -> None:
        if self._failed is not None:
            raise failure(self._topic, self._failed)

    def write(self, key: bytes | None, value: bytes) -> None:
        """Write one message; wait while the producer's queue is full. Raises ProduceFailed."""
        while True:
            self._raise_failure()
            try:
                self._producer.produce(
                    self._topic, value, key, partition=self._partition, on_delivery=self._delivered
                )
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)
        self.written += 1
        self._in_transaction += 1
        if self.is_transactional and self._in_transaction == self._commit_every:
            self._commit()
            self._producer.begin_transaction()

    def _commit(self) -> None:
        self._producer.commit_transaction(FLUSH_SECONDS)
        self._in_transaction = 0
        self.committed += 1

    def finish(self) -> None:
        """Commit or flush the rest. Raises ProduceFailed."""
        if self.is_transactional:
            if self._in_transaction:
                self._commit()
            else:
                self._producer.abort_transaction(FLUSH_SECONDS)
            return
        left = self._producer.flush(FLUSH_SECONDS)
        self._raise_failure()
        if left:
            raise ProduceFailed(
                f"writing to {self._topic!r}: {left} message(s) were not acknowledged in time"
            )

    def give_up(self) -> None:
        """Abort the open transaction."""
        if self.is_transactional:
            self._producer.abort_transaction(FLUSH_SECONDS)

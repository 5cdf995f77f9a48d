"""`faircopy consume`: print the messages of a topic."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, TopicPartition

from faircopy.cli.headers import HeaderSource
from faircopy.cli.message_format import as_it_is, as_json_line, compile_format, for_terminal
from faircopy.cli.output import broker_option
from faircopy.cli.topics import raise_if_stopped
from faircopy.client.connection import ensure_reachable
from faircopy.errors import FaircopyError

METADATA_SECONDS = 10.0
SILENCE_SECONDS = 3.0


class ConsumeFailed(FaircopyError):
    """Messages could not be read."""


@click.command()
@click.argument("topic")
@click.option("--from-beginning", is_flag=True, help="Start with the first message instead of the next one.")
@click.option("-o", "--offset", type=int, help="Start at this offset; a negative one counts from the end.")
@click.option("-p", "--partition", type=int, help="Only this partition.")
@click.option("-n", "--max", "count", type=click.IntRange(0), metavar="N", help="Stop after N messages.")
@click.option("-e", "--exit", "stop_at_end", is_flag=True, help="Stop at the end of the topic.")
@click.option("-g", "--group", metavar="GROUP", help="Read as a member of a consumer group, and commit.")
@click.option(
    "-f", "--format", "form", default="%s\\n", show_default=True, help="Output format, with kcat's letters."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per message.")
@broker_option
def consume(
    topic: str, from_beginning: bool, offset: int | None, partition: int | None, count: int | None,
    stop_at_end: bool, group: str | None, form: str, as_json: bool, broker: str,
) -> None:  # fmt: skip
    """Print the messages of TOPIC.

    \b
    Letters of --format:
      %t topic   %p partition   %o offset   %k key   %s value   %T time (ms)
      %h headers   %K key length   %S value length   \\n \\t \\xNN as in C

    On a terminal, control characters in messages are escaped; pipes and files get every byte unchanged. With
    --json, bytes that are not UTF-8 are in base64: the row then has "value_encoding": "base64", or
    "key_encoding". In names of headers, such bytes become U+FFFD. If the reader of the output closes it, as
    head does, the command ends silently with exit code 141.

    \b
    Examples:
      faircopy consume orders --from-beginning --exit
      faircopy consume orders -o -10 -f '%p:%o %k=%s\\n'
      faircopy consume orders --group reports --max 100
      faircopy consume orders --from-beginning --json | jq -r 'select(.value_encoding == null) | .value'
    """
    if group is not None and (offset is not None or partition is not None):
        raise click.UsageError(
            "--group takes offsets and partitions from the group: leave out --offset and --partition"
        )
    shown = for_terminal if sys.stdout.isatty() else as_it_is
    headers = HeaderSource(broker)
    write = partial(as_json_line, headers.of) if as_json else compile_format(form, headers.of, shown)
    ensure_reachable(broker)
    consumer = ConsoleConsumer(broker, topic, group, from_beginning)
    try:
        consumer.begin(partition, offset)
        for message in consumer.messages(count, stop_at_end):
            sys.stdout.buffer.write(write(message))
        sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        sys.stdout.buffer.flush()
    finally:
        headers.close()
        consumer.close()


class ConsoleConsumer:
    """A consumer of one topic, in a group or on its own."""

    def __init__(self, broker: str, topic: str, group: str | None, from_beginning: bool) -> None:
        self._broker = broker
        self._topic = topic
        self._group = group
        self._from_beginning = from_beginning
        self._failed: KafkaError | None = None
        self._at_end: set[int] = set()
        self._partitions = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker,
                "client.id": "faircopy-cli",
                "group.id": group or "faircopy-cli",
                "enable.auto.commit": group is not None,
                "auto.offset.reset": "earliest" if from_beginning else "latest",
                "enable.partition.eof": True,
                "allow.auto.create.topics": False,
                "error_cb": self._error,
                "log_level": 0,
            }
        )

    def _error(self, error: KafkaError) -> None:
        if error.fatal():
            self._failed = error

    def begin(self, partition: int | None, offset: int | None) -> None:
        """Join the group, or take partitions. Raises ConsumeFailed."""
        if self._group is not None:
            self._consumer.subscribe([self._topic], on_assign=self._assigned)
            return
        numbers = self._numbers(partition)
        self._partitions = len(numbers)
        self._consumer.assign(
            [TopicPartition(self._topic, number, self._first(number, offset)) for number in numbers]
        )

    def _assigned(self, _consumer: Any, partitions: list[TopicPartition]) -> None:
        self._partitions = len(partitions)
        self._at_end.clear()

    def _numbers(self, partition: int | None) -> list[int]:
        found = self._ask(lambda: self._consumer.list_topics(self._topic, METADATA_SECONDS)).topics[
            self._topic
        ]
        if found.error is not None:
            raise ConsumeFailed(
                f"reading {self._topic!r}: {found.error.str()}: faircopy topics list shows what there is"
            )
        if partition is not None and partition not in found.partitions:
            raise ConsumeFailed(
                f"topic {self._topic!r} has partitions 0 to {len(found.partitions) - 1}, not {partition}"
            )
        return sorted(found.partitions) if partition is None else [partition]

    def _ask(self, question: Callable[[], Any]) -> Any:
        from confluent_kafka import KafkaException

        try:
            return question()
        except KafkaException as error:
            raise ConsumeFailed(
                f"reading {self._topic!r}: {error.args[0].str()}. Is a broker running there?"
            ) from error

    def _first(self, number: int, offset: int | None) -> int:
        if offset is None:
            return OFFSET_BEGINNING if self._from_beginning else OFFSET_END
        if offset >= 0:
            return offset
        low, high = self._ask(
            lambda: self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, number), METADATA_SECONDS
            )
        )
        return max(int(low), int(high) + offset)

    def messages(self, count: int | None, stop_at_end: bool) -> Iterator[Any]:
        """Messages as they arrive. Raises ConsumeFailed; PartitionsStopped when no more messages arrive."""
        given = 0
        heard = time.monotonic()
        while count is None or given < count:
            message: Any = self._consumer.poll(0.1)
            if self._failed is not None:
                raise ConsumeFailed(f"reading {self._topic!r}: {self._failed.str()}")
            if message is None:
                sys.stdout.buffer.flush()
                if time.monotonic() - heard > SILENCE_SECONDS:
                    raise_if_stopped(self._broker, self._topic, self._own_partitions())
                    heard = time.monotonic()
            elif message.error() is None:
                heard = time.monotonic()
                given += 1
                self._at_end.discard(message.partition())
                yield message
            elif message.error().code() == KafkaError._PARTITION_EOF:
                self._at_end.add(message.partition())
            else:
                raise ConsumeFailed(f"reading {self._topic!r}: {message.error().str()}")
            if stop_at_end and self._partitions and len(self._at_end) == self._partitions:
                return

    def _own_partitions(self) -> set[int]:
        return {each.partition for each in self._consumer.assignment()}

    def close(self) -> None:
        """If in a group, commit the offsets of what was read, and leave."""
        self._consumer.close()

"""A job of Flink that copies a topic, its broker and its input: run, disturbed, and checked at the end."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from faircopy.api.list_transactions import SCHEMA as LIST_TRANSACTIONS
from faircopy.client.connection import BrokerConnection
from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic
from tests.crash.test_kill import PARTITIONS, read_all
from tests.finding import a_finding_if_not
from tests.flink.feed import Feed
from tests.flink.job import CHECKPOINT_MS, FlinkJob
from tests.java.compiled import Installed
from tests.seeds import seed_for

MESSAGES = 12_000
SHOWN = 10
SETTINGS = ("plain.enabled=false",)


class Copying:
    """What belongs together: `job` copies from and to `broker` what `feed` writes."""

    def __init__(self, broker: BrokerProcess, job: FlinkJob, feed: Feed) -> None:
        self.broker, self.job, self.feed = broker, job, feed

    def disturbed(self, times: int, disturb: Callable[[], None], messages: int = MESSAGES) -> None:
        """Copy so many messages, and call `disturb` so many times in the middle of the work."""
        chance = random.Random(seed_for("Flink is disturbed"))
        for number in range(times):
            self.feed.until_visible(messages * (number + 1) // (times + 1))
            # The end of a partition grows when a transaction is committed, which alone is too regular.
            self.feed.during(chance.uniform(0, 1.5 * CHECKPOINT_MS / 1000), messages)
            disturb()
        self.feed.until_visible(messages)

    def check(self) -> None:
        """Stop the job, and see that each message was copied once, whoever reads, and nothing is open."""
        self.job.stop_with_savepoint()
        with a_finding_if_not():
            assert self._open_transactions() == []
            for isolation in ("read_committed", "read_uncommitted"):
                ensure_each_once(self._read("from", isolation), self.feed.written, "")
                ensure_each_once(self._read("to", isolation), self.feed.written, " copied")
        self.broker.ensure_no_traceback()

    def _open_transactions(self) -> list[str]:
        with BrokerConnection(self.broker.address) as connection:
            asked = {"state_filters": ["Ongoing"], "producer_id_filters": []}
            answer = connection.ask(LIST_TRANSACTIONS, 0, asked)
        return [each.transactional_id for each in answer.transaction_states]

    def _read(self, topic: str, isolation: str) -> list[bytes]:
        partitions = read_all(self.broker.address, topic, isolation)
        return [value for values in partitions for value in values]

    @property
    def transactions_gone_on(self) -> int:
        """How many open transactions the broker has found after kills, and not aborted."""
        return sum(map(int, re.findall(r"(\d+) go on", self.broker.log)))


def ensure_each_once(values: Sequence[bytes], messages: int, suffix: str) -> None:
    """Raise AssertionError unless they are the first numbers, each once, in any order."""
    times = Counter(values)
    expected = {f"{number}{suffix}".encode() for number in range(messages)}
    wrong = {
        "missing": expected - times.keys(),
        "nobody's": times.keys() - expected,
        "repeated": {value for value, count in times.items() if count > 1},
    }
    said = [f"{len(found)} {name}: {sorted(found)[:SHOWN]}" for name, found in wrong.items() if found]
    assert not said, "; ".join(said)


@contextmanager
def copying(installed: Installed, directory: Path, naming: str, *settings: str) -> Iterator[Copying]:
    """A job that runs. `naming` is the name of a TransactionNamingStrategy of Flink's; the broker has more
    `settings`.
    """
    with BrokerProcess(directory, *SETTINGS, *settings) as broker:
        for topic in ("from", "to"):
            create_topic(broker.address, topic, PARTITIONS)
        with FlinkJob(installed, directory, broker.address, naming) as job:
            feed = Feed(broker.address, job, PARTITIONS)
            yield Copying(broker, job, feed)
            feed.close()

"""The word count, its broker and its input: run, disturbed, and checked at the end."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic
from tests.ecosystem.ends import Ends, read_all_of
from tests.ecosystem.streams.installed import INPUT, JAVA, OUTPUT, PROGRAM, STREAMS
from tests.ecosystem.streams.words import Words
from tests.fetch.needed import needed
from tests.finding import a_finding_if_not
from tests.java.compiled import compiled
from tests.java.jvm import Jvm
from tests.seeds import seed_for

PARTITIONS = 2
AHEAD = 3000
"""So many words the application may have before it, in its transactions, or counted and not seen yet."""
ROUND = 1500
"""So many words it counts between two disturbances, at least."""
COMMIT_SECONDS = 0.1  # the default of commit.interval.ms for exactly once


class Counting:
    """What belongs together: `application` counts, by `broker`, the `words` that are written."""

    def __init__(self, broker: BrokerProcess, application: Jvm, state: Path) -> None:
        self.broker, self.application = broker, application
        self._state = state
        self._chance = random.Random(seed_for("Kafka Streams is disturbed"))
        self.words = Words(broker.address, self._chance)
        self.ends = Ends(broker.address, OUTPUT, PARTITIONS)

    def disturbed(self, disturbances: Sequence[Callable[[], None]]) -> None:
        """Count, and call each of them in the middle of the work; then count all that was written."""
        for disturb in disturbances:
            self.ends.until_visible(self.ends.visible + ROUND, self._meanwhile)
            self.ends.during(self._chance.uniform(0, 2 * COMMIT_SECONDS), self._meanwhile)
            disturb()
        with a_finding_if_not():
            self.ends.until_visible(self.words.written, self.application.ensure_it_runs)

    def _meanwhile(self) -> None:
        self.application.ensure_it_runs()
        if self.words.written < self.ends.visible + AHEAD:
            self.words.write()

    def kill_both(self) -> None:
        """The application comes back while the broker is away."""
        self.broker.kill()
        self.application.restart()
        self.broker.start()

    def lose_the_state(self) -> None:
        """Kill the application, delete all it has on the disk, and start it again."""
        self.application.kill()
        if self._state.exists():  # with stores in memory it has nothing there
            shutil.rmtree(self._state)
        self.application.start()

    def check(self) -> None:
        """Each word was counted up to the true number, one by one, whoever reads."""
        expected = {word: list(range(1, count + 1)) for word, count in self.words.counts.items()}
        with a_finding_if_not():
            for isolation in ("read_committed", "read_uncommitted"):
                assert counts_of(self.broker.address, isolation) == expected
        self.broker.ensure_no_traceback()


def counts_of(broker: str, isolation: str) -> dict[str, list[int]]:
    """The counts of each word, in the order in which they are in the output."""
    counts = defaultdict[str, list[int]](list)
    for message in read_all_of(broker, OUTPUT, PARTITIONS, isolation):
        word, count = message.key(), message.value()
        assert isinstance(word, bytes) and count is not None
        counts[word.decode()].append(int.from_bytes(count))
    return dict(counts)


@contextmanager
def counting(directory: Path, settings: dict[str, str]) -> Iterator[Counting]:
    """An application that runs, with these settings besides those of the quick start."""
    classes = directory / "classes"
    classes.mkdir()
    installed = needed(lambda: compiled(STREAMS, JAVA, classes))
    with BrokerProcess(directory) as broker:
        for topic in (INPUT, OUTPUT):
            create_topic(broker.address, topic, PARTITIONS)
        state, properties = directory / "state", directory / "streams.properties"
        settings = {
            "bootstrap.servers": broker.address,
            "processing.guarantee": "exactly_once_v2",
            "state.dir": str(state),
            **settings,
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        arguments = [PROGRAM, str(properties)]
        with Jvm(installed.java, installed.class_path, arguments, directory / "streams.log") as application:
            work = Counting(broker, application, state)
            yield work
            work.ends.close()

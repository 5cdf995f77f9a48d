"""A program that counts words, its broker, its input, and the counts that it has come to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Message

from tests.broker_process import BrokerProcess
from tests.clients.talk import create_topic
from tests.ecosystem.program import ForeignProgram
from tests.ecosystem.reader import TopicReader
from tests.ecosystem.sentences import Sentences
from tests.finding import a_finding_if_not

PARTITIONS = 2
CountOf = Callable[[Message], tuple[str, int]]
"""The word and its count, as a message of the program has them."""


class CountingProgram:
    """What belongs together: `program` counts the words of `sentences`, and `reader` sees each new count."""

    def __init__(
        self, broker: BrokerProcess, program: ForeignProgram, reader: TopicReader, count_of: CountOf
    ) -> None:
        self.broker, self.program = broker, program
        self.sentences = Sentences(broker.address)
        self._reader, self._count_of = reader, count_of

    def counts(self) -> dict[str, list[int]]:
        """All counts of each word, as the program came to them."""
        found: dict[str, list[int]] = {}
        for word, count in map(self._count_of, self._reader.messages):
            found.setdefault(word, []).append(count)
        return found

    def until_counting(self) -> None:
        """Return when the program has its topics and counts: some programs ask for a topic only once."""
        self._reader.until_there_are(1, self.program)

    def until_complete(self, other: ForeignProgram | None = None) -> None:
        """Return when none of the counts is too low. The program must run, or the other one."""
        self._reader.until(self._is_complete, other or self.program)

    def _is_complete(self) -> bool:
        counts = self.counts()
        return all(max(counts.get(word, [0])) >= right for word, right in self.sentences.counts.items())

    def ensure_each_counted_once(self) -> None:
        """Raise Finding unless each word was counted up from 1 by ones, to the right count."""
        with a_finding_if_not():
            expected = {word: [*range(1, right + 1)] for word, right in self.sentences.counts.items()}
            counts = self.counts()
            assert counts.keys() == expected.keys()
            for word, right in expected.items():
                assert counts[word] == right, (
                    f"{word} was counted {shown(counts[word])}, not up to {right[-1]}"
                )
        self.broker.ensure_no_traceback()

    def ensure_none_is_lost(self) -> None:
        """Raise Finding unless each word has all its counts, some perhaps more than once."""
        with a_finding_if_not():
            for word, right in self.sentences.counts.items():
                lost = set(range(1, right + 1)) - set(self.counts()[word])
                assert not lost, f"{word} was never counted {sorted(lost)[:10]}"
        self.broker.ensure_no_traceback()


def shown(counts: list[int]) -> str:
    """The places where counts do not go up by one."""
    jumps = [f"{before} {after}" for before, after in itertools.pairwise(counts) if after != before + 1]
    return f"{len(counts)} times up to {max(counts)}, with {len(jumps)} jumps: {jumps[:10]}"


@contextmanager
def counting(
    directory: Path, program_for: Callable[[str], ForeignProgram], topic: str, count_of: CountOf
) -> Iterator[CountingProgram]:
    """A program that counts at a new broker. `topic` is the one that it writes its counts to."""
    with BrokerProcess(directory) as broker:
        create_topic(broker.address, "sentences", PARTITIONS)
        with program_for(broker.address) as program, TopicReader(broker.address, topic) as reader:
            yield CountingProgram(broker, program, reader, count_of)

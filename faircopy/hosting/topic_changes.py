"""What one request changes of topics: each is changed, or refused for a reason of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from faircopy.catalogue.topics import Topic
from faircopy.errors import FaircopyError
from faircopy.storage.failures import WriteFailure


class NewTopic(NamedTuple):
    """What is asked of a new topic."""

    partitions: int
    configs: Mapping[str, str]


DecideNew = Callable[[], NewTopic]
"""Says what is asked of a new topic; it may raise FaircopyError."""
DecideCount = Callable[[int], int]
"""Makes the new number of partitions of a topic from the present one; it may raise FaircopyError."""


class TopicChanges:
    """The topics of one request, by what the request calls them. `topics` has them as they shall be, or as
    they were when they were deleted, and `refused` why one was not made, changed or deleted. `partitions` are
    new.
    """

    def __init__(self, asked: Iterable[Hashable]) -> None:
        self.topics: dict[Hashable, Topic] = {}
        self.refused: dict[Hashable, FaircopyError] = {}
        self.partitions = 0
        self._open = dict.fromkeys(asked)

    @contextlib.contextmanager
    def refusing(self, key: Hashable) -> Iterator[None]:
        """Note an error in the block as the reason why this topic is refused. Raises WriteFailure, which
        concerns all.
        """
        try:
            yield
        except WriteFailure:
            raise
        except FaircopyError as error:
            self.refused[key] = error

    @contextlib.contextmanager
    def carrying_out(self, key: Hashable) -> Iterator[None]:
        """The same. Without an error the topic is done after the block."""
        with self.refusing(key):
            yield
            self._open.pop(key)

    def refuse_the_rest(self, error: FaircopyError) -> None:
        """Refuse all topics that are neither done nor refused."""
        self.refused = dict.fromkeys(self._open, error) | self.refused

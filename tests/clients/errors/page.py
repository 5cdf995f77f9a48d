"""docs/ERRORS.md, made from what the tests check."""

from __future__ import annotations

from pathlib import Path

from tests.clients.errors.situations import SITUATIONS, Effect
from tests.clients.errors.told import TOLD, Seen
from tests.compatibility.page import table

PAGE = Path(__file__).parents[3] / "docs" / "ERRORS.md"

HEAD = """\
# Errors of transactions

A transaction went wrong: is it in the log, and what now? First find what happened, then what
[your library](#by-library) says of it. `python -m tests.clients.errors` makes this page from the cases that
tests provoke with the [testing library](TESTING.md): each is run with each library listed, the log is
compared with what is said here, and what is advised is done, after which the message is in the log once.
"""
RULES = """\
* A commit without an answer is the only case in doubt. Nothing is to be written again before it is known.
* An error before the commit means no: nothing of an open transaction is in the log.
* An error that says `txn_requires_abort` is over with an abort, and the producer goes on. One that says
  `fatal` ends the producer.
"""
OUTCOME = """\
## Was my last commit applied?

```sh
faircopy txn outcome loader
```

says `committed`, `aborted`, `open` or `not known` of the last transaction of a transactional id, also with
`--json`. The exit code is 0 if it is known, 1 if not. Two things to mind:

* Ask before a new producer starts with this id. That aborts an open transaction, and its next transaction
  takes the place of the one in question.
* The answer is about the last transaction that reached the broker. If no message of yours did, it is about
  the one before. An id is known until `transactional.id.expiration.ms` after its last use.
"""
LIBRARIES = """\
## By library

What the application is told, at which step, and what is done about it in the tests. *Nothing* means that the
library tries again by itself, and the application is told nothing. *New producer* is advised where going on
with the same one failed, or was not tried.

The steps are those of the tests: `send` waits until a message is delivered. Patience is confluent-kafka's
argument of `commit_transaction`, `max.block.ms` of Java, `max_block_ms` and `request_timeout_ms` of
kafka-python; for aiokafka and KafkaJS, the application's own timer; for franz-go, its context. kafka-python
says `KafkaError` both of a commit that was refused and of one without an answer: if in doubt, ask.
"""


def rendered() -> str:
    """The page."""
    parts = [HEAD, RULES, "## What happened\n", situations(), OUTCOME, LIBRARIES]
    for library, seen in TOLD.items():
        parts += [f"### {library}\n", of_library(seen)]
    return "\n".join(parts)


def situations() -> str:
    """What can go wrong, whether it took effect, and what to do."""
    rows = [
        (each.name, codes(each.error), each.happened, f"**{each.effect}**", each.advice)
        for each in SITUATIONS
    ]
    return table(["situation", "Kafka's error", "what happened", "took effect?", "what to do"], rows)


def codes(error: str) -> str:
    """Kafka's names of errors, as code."""
    return ", ".join(f"`{name}`" for name in error.split(", ")) if error else "none"


def of_library(seen: dict[str, Seen]) -> str:
    """What a library tells in each situation."""
    rows = [(name, *words(each), effect(name, each), each.remedy.value) for name, each in seen.items()]
    rows.sort(key=lambda row: row[3] == Effect.YES)
    return table(["situation", "at", "error", "took effect?", "what to do"], rows)


def effect(situation: str, seen: Seen) -> str:
    """What the application can conclude: nothing, if it is told of what other libraries mend themselves."""
    if seen.told is None:
        return Effect.YES.value
    effects = {each.name: each.effect for each in SITUATIONS}
    return (Effect.MAYBE if effects[situation] is Effect.YES else effects[situation]).value


def words(seen: Seen) -> tuple[str, str]:
    """The step and the error, with what it says."""
    if seen.told is None:
        return "", "nothing"
    said = "".join(f", {each}" for each in seen.told.error.says)
    return seen.told.step, f"`{seen.told.error.name}`{said}"

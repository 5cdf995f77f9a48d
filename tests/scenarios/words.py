"""How scripts write what they have in common."""

from __future__ import annotations

from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition

TOPIC_ID = bytes(15) + b"t"
NOTHING = "nothing"


def transaction_of(word: str) -> TransactionId:
    """The transaction written as `producer.epoch.number`."""
    return TransactionId(*map(int, word.split(".")))


def participant_of(word: str) -> TopicIdPartition:
    """The partition written as `t-number`: there is one topic."""
    return TopicIdPartition(TOPIC_ID, int(word.removeprefix("t-")))


def word_of(participant: TopicIdPartition) -> str:
    """The inverse of `participant_of`."""
    return f"t-{participant.partition}"


def counted(number: int, what: str) -> str:
    """A number of things."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def options_of(words: list[str]) -> tuple[list[str], dict[str, int]]:
    """The words without `name=number`, and these."""
    plain = [word for word in words if "=" not in word]
    pairs = (word.split("=") for word in words if "=" in word)
    return plain, {name: int(number) for name, number in pairs}


def difference(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What has changed in a state that is written as lines, each with a name."""
    gone = [f"{name}: forgotten" for name in before if name not in after]
    return gone + [f"{name}: {line}" for name, line in after.items() if before.get(name) != line]

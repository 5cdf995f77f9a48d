"""docs/COMPATIBILITY.md, made from the code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from faircopy.catalogue.topic_configs import CONFIGS, WITHOUT_EFFECT
from faircopy.settings.kafka_names import OURS
from faircopy.settings.kafka_names import WITHOUT_EFFECT as BROKERS_WITHOUT_EFFECT
from tests.compatibility.apis import REASONS, served
from tests.compatibility.programs import PROGRAMS

PAGE = Path(__file__).parents[2] / "docs" / "COMPATIBILITY.md"

HEAD = """\
# Compatibility

What of Kafka works with faircopy: programs, APIs and their versions, settings of topics and of the broker.
`python -m tests.compatibility` makes this page from the code, and a test fails while the two differ.
[Limits](../README.md#limits-today) has what behaves otherwise than in Kafka.
"""
PROGRAMS_ABOUT = """\
Each runs unmodified, with its defaults, against a real broker with its own; most as their quick start has
it. `make test JOB=ecosystem` runs what is quick, and `JOB=ecosystem-long` what takes minutes: programs and
brokers that are killed, and state that is lost.
"""
APIS_ABOUT = """\
Versions are those that clients are offered; a library takes the newest that it knows as well. The last column
says what newer versions are for, where Kafka has some.
"""
NOT_SERVED_ABOUT = "Not offered, so that a library refuses the call and says so:"
TOPIC_ABOUT = """\
All settings of Kafka's topics are taken, kept and shown; those without effect say why. `faircopy topics
describe` shows them for one topic.
"""
BROKER_ABOUT = """\
Tools may use Kafka's names of these settings; `faircopy settings` explains ours.
"""
BROKER_UNUSED_ABOUT = """\
These have no effect. They are taken and shown, unless they are fixed: then another value is refused, since it
would promise what does not happen.
"""


def rendered() -> str:
    """The page."""
    parts = [
        HEAD,
        "## Programs\n", PROGRAMS_ABOUT, programs(),
        "## APIs\n", APIS_ABOUT, apis(), NOT_SERVED_ABOUT + "\n", not_served(),
        "## Settings of a topic\n", TOPIC_ABOUT, topic_settings(),
        "## Settings of the broker\n", BROKER_ABOUT, broker_settings(),
        BROKER_UNUSED_ABOUT, unused_settings(),
    ]  # fmt: skip
    return "\n".join(parts)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def programs() -> str:
    """The programs that tests run."""
    rows = [(each.name, each.version, each.shown, f"`{each.test}`") for each in PROGRAMS]
    return table(["program", "version", "what is shown", "by"], rows)


def apis() -> str:
    """The APIs that are served."""
    rows = [(str(api_key), *words) for api_key, *words in served()]
    return table(["key", "API", "versions", "here", "newer"], rows)


def not_served() -> str:
    """The APIs that are not."""
    return table(["why", "APIs"], [(reason, ", ".join(names)) for reason, names in REASONS.items()])


def topic_settings() -> str:
    """The settings of a topic: first those with an effect."""
    rows = sorted(CONFIGS.values(), key=lambda each: each.about.startswith(WITHOUT_EFFECT))
    return table(
        ["setting", "default", "what it does"],
        [(f"`{each.name}`", f"`{each.default}`" if each.default else "empty", each.about) for each in rows],
    )


def broker_settings() -> str:
    """Kafka's names of settings that have an effect here."""
    return table(["Kafka's name", "ours"], [(f"`{theirs}`", f"`{ours}`") for theirs, ours in OURS.items()])


def unused_settings() -> str:
    """Kafka's settings of a broker that have no effect here."""
    rows = [
        (f"`{name}`", f"`{each.default}`", "yes" if each.is_fixed else "", each.why)
        for name, each in BROKERS_WITHOUT_EFFECT.items()
    ]
    return table(["Kafka's name", "default", "fixed", "why"], rows)

"""The results of the proof: the newest of each stage, kept as JSON, and the page that shows them. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date

from tests.proof.stages import STAGES
from tests.quarantine.entries import Entry


@dataclass(frozen=True)
class Result:
    """What came of a stage: `said` is its last line, `date` an ISO date, `commit` what was tried."""

    stage: str
    is_good: bool
    said: str
    seconds: float
    date: str
    commit: str


def from_json(text: str) -> dict[str, Result]:
    """The newest result of each stage."""
    return {name: Result(**each) for name, each in json.loads(text).items()}


def to_json(results: dict[str, Result]) -> str:
    """What `from_json` reads."""
    return json.dumps({name: asdict(each) for name, each in results.items()}, indent=2) + "\n"


HEAD = """\
# Results of the proof

`make proof` wrote this page. It has the newest result of each stage; [RELIABILITY.md](RELIABILITY.md) says
what the stages are. What a run finds becomes a file in [tests/found](../tests/found).

| stage | what it tries | outcome | said | took | when | of commit |
|---|---|---|---|---|---|---|
"""


def page_of(results: dict[str, Result], quarantined: Sequence[Entry], today: date) -> str:
    """The page, in Markdown."""
    lines = [HEAD + "".join(f"{row_of(stage.name, stage.about, results)}\n" for stage in STAGES)]
    lines.append("\n## Quarantine\n\n")
    if not quarantined:
        lines.append("No test is in quarantine.\n")
    lines += [
        f"* `{each.file}`, since {each.since} ({each.days(today)} days): {each.cause}\n"
        for each in quarantined
    ]
    return "".join(lines)


def row_of(name: str, about: str, results: dict[str, Result]) -> str:
    """A row of the table; empty where a stage has not run yet."""
    if name not in results:
        return f"| {name} | {about} | not run yet | | | | |"
    found = results[name]
    outcome = "good" if found.is_good else "**something was found**"
    minutes = f"{found.seconds / 60:,.0f} min"
    said = found.said.replace("|", "\\|")  # or it would begin another cell
    return f"| {name} | {about} | {outcome} | {said} | {minutes} | {found.date} | {found.commit} |"

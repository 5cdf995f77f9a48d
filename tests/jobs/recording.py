"""A pytest plugin that writes down how each item ended: `-p tests.jobs.recording --record FILE`.

The file is the JSON of an `Outcome`. pytest's own last line counts items, but does not tell which ones
failed, how long each took, and which failures must not be tried again.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.finding import Finding
from tests.jobs.outcome import Ending, Item, Outcome

MARK = "is_finding"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--record`."""
    parser.addoption("--record", type=Path, help="Where to write how each item ended, as JSON.")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that sees all reports; a worker of pytest-xdist only sends its own."""
    file = config.getoption("--record")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(file))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark the report of a failure that shows a fault of the product."""
    report = yield
    is_finding = call.excinfo is not None and isinstance(call.excinfo.value, Finding)
    # An attribute of its own goes from a worker to the process that records.
    setattr(report, MARK, is_finding)
    return report


class Recorder:
    """Collects the reports of a run, and writes them when the run ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._items: dict[str, Item] = {}
        self._errors: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that can't be collected."""
        if report.failed:
            self._errors.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of an item: its setup, its call or its teardown."""
        item = self._items.get(report.nodeid, Item(Ending.PASSED, 0.0))
        ending = item.ending
        if report.failed:
            ending = Ending.FAILED
        elif report.skipped:
            ending = Ending.SKIPPED
        is_finding = item.is_finding or getattr(report, MARK, False)
        self._items[report.nodeid] = Item(ending, item.seconds + report.duration, is_finding)

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self._file.write_text(Outcome(self._items, self._errors).to_json())

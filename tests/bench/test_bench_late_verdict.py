"""What counts as torn, lost, undead and repeated, and how the table shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.late.results import LateResults, Row, load, save
from bench.late.table import markdown
from bench.late.verdict import Attempt, Told, Verdict, judge
from bench.late.weather import CHANCES, LateWeather
from bench.results import System
from faircopy.wire.api_keys import ApiKey
from tests.soak.weather import Fate

MESSAGES = ["a", "b"]


@pytest.mark.parametrize(
    ("told", "log", "fault"),
    [
        (Told.COMMITTED, ["a", "b"], None),
        (Told.COMMITTED, ["b"], "torn"),
        (Told.COMMITTED, [], "lost"),
        (Told.COMMITTED, ["a", "b", "a"], "repeated"),
        (Told.ABORTED, [], None),
        (Told.ABORTED, ["a"], "torn"),
        (Told.ABORTED, ["a", "b"], "undead"),
        (Told.UNKNOWN, [], None),
        (Told.UNKNOWN, ["b", "a"], None),
        (Told.UNKNOWN, ["b"], "torn"),
    ],
)
def test_a_transaction_is_whole_and_as_its_client_was_told(
    told: Told, log: list[str], fault: str | None
) -> None:
    verdict = judge([Attempt(MESSAGES, told)], log)
    assert verdict.transactions == getattr(verdict, told) == 1
    assert verdict.broken == (fault is not None)
    assert fault is None or getattr(verdict, fault) == 1


def test_a_transaction_without_messages_breaks_nothing() -> None:
    assert judge([Attempt([], told) for told in Told], []).broken == 0


def test_requests_come_late_in_bad_weather_and_only_those_of_transactions() -> None:
    weather = LateWeather(seed=1)
    assert {weather.fate_of(ApiKey.END_TXN) for _ in range(1000)} == {None}
    weather.is_calm = False
    fates = [weather.fate_of(key) for key in CHANCES for _ in range(1000)]
    assert {*fates} == {None, Fate.LATE, Fate.DELAYED}
    assert fates.count(Fate.LATE) == sum(weather.late.values())
    assert {weather.fate_of(ApiKey.FETCH) for _ in range(1000)} == {None}


def test_a_result_file_has_all_of_a_run(tmp_path: Path) -> None:
    system = System("Apache Kafka", "kafka", "4.4.0", "markers", "os", {})
    verdict = Verdict(committed=900, aborted=90, unknown=10, torn=4, lost=3, undead=2, repeated=1)
    results = LateResults({"seed": 1}, [Row(system, 60.0, {"EndTxn": 7, "Produce": 1}, verdict)])
    save(results, tmp_path / "late.json")
    assert load(tmp_path / "late.json") == results
    assert markdown(results).splitlines()[-1] == "| Apache Kafka 4.4.0 | 1,000 | 8 | 10 | 4 | 3 | 2 | 1 |"

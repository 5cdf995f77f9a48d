"""What follows from how items ended."""

from __future__ import annotations

from tests.jobs.outcome import RETRIED_MAX, Ending, Item, Outcome, slowest, summary

PASSED = Item(Ending.PASSED, 1.0)
FAILED = Item(Ending.FAILED, 2.0)
SKIPPED = Item(Ending.SKIPPED, 0.0)


def test_the_summary_counts_over_all_jobs() -> None:
    outcomes = [Outcome({"a": PASSED, "b": FAILED}), Outcome({"c": PASSED, "d": SKIPPED}, ["no such file"])]
    assert summary(outcomes) == "2 passed, 2 failed, 1 skipped"


def test_a_run_is_good_if_something_passed_and_nothing_failed() -> None:
    assert Outcome({"a": PASSED, "b": SKIPPED}).is_good
    assert not Outcome().is_good
    assert not Outcome({"a": SKIPPED}).is_good
    assert not Outcome({"a": PASSED, "b": FAILED}).is_good
    assert not Outcome({"a": PASSED}, ["a worker died"]).is_good


def test_what_passes_alone_is_unsteady_and_the_rest_stays_red() -> None:
    first = Outcome({"a": PASSED, "b": FAILED, "c": FAILED})
    second = Outcome({"b": PASSED, "c": FAILED})
    outcome = first.tried_again(second)
    assert outcome.unsteady == ["b"]
    assert outcome.failed == ["c"]
    assert not outcome.is_good
    assert first.tried_again(Outcome({"b": PASSED, "c": PASSED})).is_good


def test_a_second_run_that_does_not_come_to_an_item_proves_nothing() -> None:
    first = Outcome({"a": PASSED, "b": FAILED})
    for second in (Outcome(), Outcome({"b": SKIPPED}), Outcome({"b": PASSED}, ["pytest died"])):
        assert not first.tried_again(second).is_good


def test_only_what_a_busy_machine_can_cause_is_tried_again() -> None:
    assert Outcome({"a": FAILED}).may_be_tried_again
    assert not Outcome({"a": PASSED}).may_be_tried_again
    assert not Outcome({"a": FAILED}, ["no such file"]).may_be_tried_again
    assert not Outcome({"a": FAILED, "b": Item(Ending.FAILED, 1.0, is_finding=True)}).may_be_tried_again
    assert not Outcome({str(number): FAILED for number in range(RETRIED_MAX + 1)}).may_be_tried_again


def test_an_outcome_survives_its_file() -> None:
    outcome = Outcome({"a[x::y]": FAILED, "b": Item(Ending.FAILED, 1.0, is_finding=True)}, ["c"], ["d"])
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_the_slowest_come_first() -> None:
    assert slowest([Outcome({"a": PASSED}), Outcome({"b": FAILED, "c": SKIPPED})], 2) == [
        (2.0, "b"),
        (1.0, "a"),
    ]

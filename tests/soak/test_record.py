"""What a history says about a process that was killed."""

from __future__ import annotations

from pathlib import Path

from tests.checker.history import Poll, Read, Result, Send, Transaction
from tests.soak.record import Attempt, Recorder, read_recorded


def recorded(path: Path) -> list[Transaction]:
    return [operation for operation in read_recorded([path]) if isinstance(operation, Transaction)]


def test_a_transaction_is_certain_until_its_commit_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "history"
    recorder = Recorder(path)
    attempt = Attempt(recorder, "p", "g", [Send("t-0", "a")])
    assert [each.result for each in recorded(path)] == [Result.FAILED]
    attempt.ask_commit()
    assert [each.result for each in recorded(path)] == [Result.UNKNOWN]
    attempt.end(Result.OK, [Send("t-0", "a", 7)])
    assert [(each.result, each.sends) for each in recorded(path)] == [(Result.OK, [Send("t-0", "a", 7)])]
    recorder.close()


def test_half_a_line_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "history"
    recorder = Recorder(path)
    attempt = Attempt(recorder, "p", None)
    attempt.ask_commit()
    recorder.write(Poll("c", 0, 1.0, [Read("t-0", 0, "a")]))
    recorder.close()
    with path.open("a") as file:
        file.write('{"kind": "transaction", "pro')
    assert [type(operation) for operation in read_recorded([path])] == [Transaction, Poll]
    assert recorded(path)[0].result is Result.UNKNOWN

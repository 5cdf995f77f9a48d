"""The guard of `make check`: a test that starts a process or sleeps fails, whoever does it for the test."""

from __future__ import annotations

import pytest

# What the runs import must be here before, or each imports it anew.
from tests import deterministic
from tests.mutants import in_child  # noqa: F401
from tests.simulation import loop  # noqa: F401

pytest_plugins = ["pytester"]

WITHOUT = [word for name in ("benchmark", "cacheprovider", "xdist") for word in ("-p", f"no:{name}")]
PRELUDE = """
import asyncio, contextlib, multiprocessing, os, subprocess, threading, time
import pytest, uvloop
from tests.mutants import in_child
from tests.simulation.loop import VirtualLoop

"""
STARTS = {
    "subprocess": "subprocess.run(['true'])",
    "a shell": "os.system('true')",
    "asyncio": "asyncio.run(asyncio.create_subprocess_exec('true'))",
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "exec": "os.execv('/no/such/program', ['program'])",
    "fork": "os.fork() or os._exit(0)",
    "multiprocessing, fork": "multiprocessing.get_context('fork').Process(target=print).start()",
    "multiprocessing, spawn": "multiprocessing.get_context('spawn').Process(target=print).start()",
}
SLEEPS = {
    "time": "time.sleep(0.001)",
    "a thread": "t = threading.Thread(target=time.sleep, args=(0.001,)); t.start(); t.join()",
    "asyncio": "asyncio.run(asyncio.sleep(0.001))",
    "uvloop": "uvloop.run(asyncio.sleep(0.001))",
}
ALLOWED = {
    "turns": "time.sleep(0); asyncio.run(asyncio.sleep(0))",
    "virtual time": "loop = VirtualLoop(); loop.run(asyncio.sleep(1000)); loop.close()",
    "a mutant": "assert in_child.is_found('trust_drafts', lambda: True)",
}


@pytest.fixture
def guarded(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Runs of pytest in this process, with the guard."""
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    return pytester


def outcome_of(guarded: pytest.Pytester, source: str) -> pytest.RunResult:
    guarded.makepyfile(PRELUDE + source)
    return guarded.runpytest_inprocess(*WITHOUT, "-p", deterministic.__name__)


@pytest.mark.parametrize("name", STARTS)
def test_no_process_is_started(guarded: pytest.Pytester, name: str) -> None:
    result = outcome_of(guarded, f"def test():\n    {STARTS[name]}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*NotDeterministic: a test of `make check` starts a process*"])


@pytest.mark.parametrize("name", SLEEPS)
def test_nobody_sleeps(guarded: pytest.Pytester, name: str) -> None:
    result = outcome_of(guarded, f"def test():\n    {SLEEPS[name]}\n")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["E*NotDeterministic: a test of `make check` sleeps for 0.001 s*"])


@pytest.mark.parametrize("name", ALLOWED)
def test_what_depends_on_the_code_alone_is_allowed(guarded: pytest.Pytester, name: str) -> None:
    outcome_of(guarded, f"def test():\n    {ALLOWED[name]}\n").assert_outcomes(passed=1)


def test_to_swallow_it_does_not_help(guarded: pytest.Pytester) -> None:
    source = "def test():\n    with contextlib.suppress(BaseException):\n        time.sleep(1)\n"
    outcome_of(guarded, source).assert_outcomes(failed=1)


@pytest.mark.parametrize("fixture", ["time.sleep(1); yield", "yield; time.sleep(1)"])
def test_fixtures_are_guarded(guarded: pytest.Pytester, fixture: str) -> None:
    source = f"@pytest.fixture\ndef made():\n    {fixture}\n\ndef test(made):\n    pass\n"
    assert outcome_of(guarded, source).parseoutcomes()["errors"] == 1


def test_what_comes_after_is_not_blamed(guarded: pytest.Pytester) -> None:
    outcome_of(guarded, "def test_a():\n    time.sleep(1)\n\ndef test_b():\n    pass\n").assert_outcomes(
        failed=1, passed=1
    )

"""The jobs, and which test files belong to each.

A path is a file or a folder. The longest path that contains a test file decides which job runs it, so a
folder belongs to one job and a file in it may belong to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Job:
    """A list of tests that one run of pytest executes.

    `paths` are relative to the root of the checkout. A *deterministic* job starts no process and waits for no
    clock, so it runs under the guard of `tests/deterministic.py` and its failures are never tried again.
    `commands` are modules of Python, with their arguments, that must succeed as well.
    `workers` and `distribution` are pytest-xdist's: how many processes, and who of them gets which test.
    """

    name: str
    about: str
    paths: tuple[str, ...]
    workers: int = 3
    distribution: str = "worksteal"
    is_deterministic: bool = False
    commands: tuple[str, ...] = ()
    is_in_gate: bool = True


CHECK = Job(
    "check",
    "all that is deterministic: units, scenarios, scenes, crash states, mutants, kept inputs",
    (
        "tests/test_layout.py",
        "tests/unit",
        "tests/scenarios",
        "tests/checker",
        "tests/simulation",
        "tests/crash_states",
        "tests/mutants",
        "tests/fuzz",
        "tests/found",
        "tests/models/test_runs.py",
        "tests/jobs",
        "tests/proof/test_results.py",
        "tests/compatibility",
        "tests/soak/test_record.py",
        "tests/backup/test_backup.py",
        "tests/flink/test_page.py",
        "tests/client_library/test_outgoing.py",
        "tests/client_library/test_protocol.py",
        "tests/client_library/test_whole_batches.py",
        "tests/arbiter/failover/test_verdict.py",
        "tests/arbiter/test_memory_backend.py",
        "tests/arbiter/test_etcd_tokens.py",
        "tests/arbiter/test_session.py",
        "tests/arbiter/test_session_trouble.py",
        "tests/arbiter/test_membership.py",
        "tests/arbiter/test_registration.py",
        "tests/arbiter/test_lock_of_a_process.py",
        "tests/bench/test_aborted_transactions.py",
        "tests/bench/test_bench_correctness.py",
        "tests/bench/test_bench_figures.py",
        "tests/bench/test_bench_kafka_tools.py",
        "tests/bench/test_bench_late_verdict.py",
        "tests/bench/test_bench_micro.py",
        "tests/bench/test_bench_ports.py",
        "tests/bench/test_bench_readme.py",
        "tests/bench/test_bench_comparison.py",
    ),
    workers=2,
    is_deterministic=True,
    commands=("ruff check .", "ruff format --check .", "codespell_lib", "mypy"),
)
JOBS = (
    CHECK,
    Job(
        "worlds",
        "seeds of the simulation, also with an arbiter, mutants of seeds, all pairs of admin requests",
        (
            "tests/simulation/test_simulation.py",
            "tests/simulation/test_same_history.py",
            "tests/simulation/test_strangers.py",
            "tests/simulation/test_society.py",
            "tests/simulation/test_replica_sets.py",
            "tests/simulation/test_with_an_arbiter.py",
            "tests/simulation/test_all_admin_pairs.py",
            "tests/mutants/test_by_seeds.py",
        ),
        workers=2,
    ),
    Job(
        "kills",
        "kill -9, rot, old directories, backups, a soak",
        ("tests/crash", "tests/rot", "tests/upgrade", "tests/backup", "tests/soak"),
    ),
    Job(
        "clients",
        "three foreign client libraries, and ours; the testing library",
        ("tests/clients", "tests/client_library", "tests/joint", "tests/admin", "tests/testing_library"),
    ),
    Job(
        "hostile",
        "hostile input, limits of the machine, fuzzing",
        ("tests/wire_abuse", "tests/limits", "tests/fuzz/test_campaigns.py"),
    ),
    Job(
        "cli",
        "the command line, the demo, processes of the product and of the tests",
        ("tests/cli", "tests/processes", "tests/jobs/test_runs.py", "tests/proof"),
    ),
    Job(
        "cluster",
        "the arbiter's store: processes that share it, etcd; models of the protocol",
        ("tests/arbiter", "tests/fetch", "tests/models"),
    ),
    Job(
        "spark",
        "Spark, both ways",
        ("tests/spark", "tests/cli/test_spark_demo.py"),
        workers=2,
        distribution="loadfile",
    ),
    Job(
        "flink",
        "Flink's source and sink, exactly once: it or the broker is killed",
        ("tests/flink",),
        workers=2,
    ),
    Job(
        "ecosystem",
        "programs of the Kafka ecosystem, unmodified",
        ("tests/ecosystem",),
        workers=2,
        distribution="loadfile",
    ),
    Job("bench", "the benchmark, in small; Apache Kafka", ("tests/bench",)),
    Job(
        "flink-both",  # for minutes: a stage of the proof runs it
        "Flink and the broker are killed",
        ("tests/flink/test_both_killed.py",),
        workers=2,
        is_in_gate=False,
    ),
    Job(
        "ecosystem-long",  # for minutes, most of them of waiting: a group waits for a member that was killed
        "programs of the Kafka ecosystem, killed more often, as the broker is",
        (
            "tests/ecosystem/test_connect_long.py",
            "tests/ecosystem/test_debezium_long.py",
            "tests/ecosystem/test_faust_killed.py",
            "tests/ecosystem/test_node_killed.py",
            "tests/ecosystem/test_pathway_long.py",
            "tests/ecosystem/test_quix_killed.py",
            "tests/ecosystem/test_streams_long.py",
        ),
        workers=2,
        distribution="loadfile",
        is_in_gate=False,
    ),
    Job("quarantine", "tests that fail by accident", ("tests/quarantine",), is_in_gate=False),
)
BY_NAME = {job.name: job for job in JOBS}


def files_with_tests() -> list[str]:
    """All test files of the checkout, as paths relative to its root."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))


def job_of(file: str) -> Job | None:
    """The job that runs this test file, or None if no job does."""
    found = [(len(path), job) for job in JOBS for path in job.paths if is_in(file, path)]
    return max(found, key=lambda each: each[0])[1] if found else None


def is_in(file: str, path: str) -> bool:
    """Whether a path is this file or a folder that contains it."""
    return file == path or file.startswith(f"{path}/")


def files_of(job: Job) -> list[str]:
    """The test files that a job runs, in alphabetical order."""
    return [file for file in files_with_tests() if job_of(file) == job]

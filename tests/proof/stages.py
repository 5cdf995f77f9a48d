"""The stages of the proof: each is a command, whose last line says what was tried and what was found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """A part of the proof.

    `command` is a module of Python with its arguments; `small` replaces the arguments, to try the stage.
    """

    name: str
    about: str
    command: str
    small: str

    def arguments(self, *, is_small: bool) -> list[str]:
        """What to run, without the interpreter."""
        module, *arguments = self.command.split()
        return [module, *(self.small.split() if is_small else arguments)]


STAGES = (
    Stage("simulation", "new seeds, each a simulated world", "tests.simulation --seeds 1000", "--seeds 2"),
    Stage(
        "simulation-arbiter",
        "the same, with a broker that is a replica set of one",
        "tests.simulation --arbiter --seeds 1000",
        "--arbiter --seeds 2",
    ),
    Stage(
        "crash-states",
        "every crash point of all workloads of up to 3 operations, in every state of the disk",
        "tests.crash_states",
        "--length 1 --states 1 --part 1/20",
    ),
    Stage(
        "crash-states-3-shards",
        "the same, with 3 shards",
        "tests.crash_states --shards 3",
        "--shards 3 --length 1 --states 1 --part 1/20",
    ),
    Stage(
        "mutants",
        "all mutants, and what finds each",
        "pytest -q -n 2 tests/mutants",
        "-q tests/mutants/test_by_scenarios.py -k apply_twice",
    ),
    Stage(
        "models",
        "all models, with each rule on and off",
        "tests.models all",
        "mutants --only ElectInSyncOnly",
    ),
    Stage("soak", "a real broker under three client libraries", "tests.soak --minutes 30", "--minutes 0.2"),
    Stage(
        "fuzz",
        "decoders, recovery and a broker under atheris",
        "tests.fuzz --minutes 30 --found tests/found/fuzz",
        "--minutes 0.1 --target spark-log",
    ),
    Stage(
        "flink",
        "Flink copies exactly once, while it, the broker, or both are killed",
        "pytest -q -n 2 tests/flink",
        "-q -n 0 tests/flink/test_savepoint.py -k POOLING",
    ),
    Stage(
        "ecosystem",
        "Kafka Streams, Connect, Debezium, Quix, Faust and others, while they or the broker are killed",
        "pytest -q -n 2 --dist loadfile tests/ecosystem",
        "-q -n 0 tests/ecosystem/test_kcat.py",
    ),
    Stage("quarantine", "tests that fail by accident", "tests.jobs quarantine", "quarantine"),
)
BY_NAME = {stage.name: stage for stage in STAGES}

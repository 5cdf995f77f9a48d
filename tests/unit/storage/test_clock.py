"""The steady clock over restarts, boots, and whatever is done to the wall clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faircopy.storage.clock import SteadyClock, SteadyNote
from tests.many import many

INTERVAL_MS = 1_000
DAY_MS = 86_400_000
KINDS = ["wait", "note", "jump", "restart", "boot", "move", "turn back"]
STEPS = many(st.tuples(st.sampled_from(KINDS), st.integers(1, 900)), 40)


class Machine:
    """A machine's clocks, which the test moves."""

    def __init__(self) -> None:
        self.now_ms = 1_790_000_000_000
        self.up_ms = 5_000
        self.jump_ms = 0
        self.boots = 0

    def wait(self, milliseconds: int) -> None:
        """Time passes, and the machine is up."""
        self.now_ms += milliseconds
        self.up_ms += milliseconds

    def wall_ms(self) -> int:
        return self.now_ms + self.jump_ms

    def uptime_ms(self) -> int:
        return self.up_ms

    def monotonic_ms(self) -> float:
        return self.uptime_ms()


@given(STEPS)
def test_it_never_goes_back_and_counts_what_is_known_to_have_passed(steps: list[tuple[str, int]]) -> None:
    machine = Machine()
    clock = SteadyClock(machine, "boot 0")
    note = clock.note(INTERVAL_MS)
    shown_ms, early_ms = clock.steady_ms(), 0
    began_ms, start_ms = machine.now_ms, clock.steady_ms()
    for step, milliseconds in steps:
        match step:
            case "wait":
                machine.wait(milliseconds)
                if machine.up_ms > note.uptime_ms + INTERVAL_MS:
                    note = clock.note(INTERVAL_MS)
            case "note":
                note = clock.note(INTERVAL_MS)
            case "jump":
                machine.jump_ms += (milliseconds - 450) * 10**7
            case "restart":
                machine.wait(milliseconds)
                expected = clock.steady_ms()
                clock = SteadyClock(machine, f"boot {machine.boots}", SteadyNote.decode(note.encode()))
                assert clock.steady_ms() == expected, "the machine was up, and knows how long"
                note = clock.note(INTERVAL_MS)
            case "boot" | "move" | "turn back":
                machine.now_ms += milliseconds
                match step:
                    case "boot":
                        machine.boots += 1
                        machine.up_ms = 7
                    case "move":  # to a machine that has been up for long
                        machine.boots += 1
                        machine.up_ms = milliseconds * DAY_MS
                    case "turn back":  # a snapshot of a virtual machine, or a time namespace
                        machine.up_ms = note.uptime_ms - milliseconds
                early_ms += INTERVAL_MS
                clock = SteadyClock(machine, f"boot {machine.boots}", SteadyNote.decode(note.encode()))
                note = clock.note(INTERVAL_MS)
        assert clock.steady_ms() >= shown_ms
        shown_ms = clock.steady_ms()
        assert shown_ms - start_ms <= machine.now_ms - began_ms + early_ms


def test_another_machine_may_have_been_up_for_long() -> None:
    """Its uptime says nothing about how long the directory has lain there."""
    machine = Machine()
    note = SteadyClock(machine, "one machine").note(INTERVAL_MS)
    machine.up_ms += 30 * DAY_MS
    assert SteadyClock(machine, "another machine", note).steady_ms() == note.limit_ms


def test_it_goes_on_where_boots_can_not_be_told_apart() -> None:
    machine = Machine()
    note = SteadyClock(machine, "").note(INTERVAL_MS)
    machine.wait(10**9)
    assert SteadyClock(machine, "", note).steady_ms() == note.limit_ms

"""What finds each mutant. Many are found in several ways, from the fastest to the most thorough."""

from __future__ import annotations

from tests.crash_states import scenarios
from tests.crash_states.scenarios import Step

BY_SCENARIOS = {
    "abort_and_fence_in_two_entries": "coordinator/zombies",
    "ack_a_repeated_commit_at_once": "coordinator/repeated_commit",
    "ack_without_the_participants": "coordinator/commit",
    "apply_again_in_any_order": "coordinator/order_after_a_crash",
    "apply_in_any_order": "coordinator/order_of_a_group",
    "apply_twice": "data_journal/transaction",
    "believe_a_decision_at_once": "coordinator/repeated_commit",
    "commit_members_that_were_aborted": "metadata_journal/joint_commit",
    "commit_what_was_lost": "coordinator/power_lost_before_the_promises",
    "end_only_the_lead": "metadata_journal/joint_commit",
    "keep_a_decision_that_was_taken_back": "metadata_journal/joint_runs",
    "leave_nothing_behind": "metadata_journal/joint_commit",
    "let_former_runs_go_on": "metadata_journal/joint_runs",
    "let_zombies_in": "coordinator/zombies",
    "reclaim_too_much": "data_journal/transaction",
    "remember_the_forgotten": "coordinator/expired_id",
    "reuse_transaction_numbers": "coordinator/power_lost_before_the_promises",
    "take_late_requests": "coordinator/late_request",
    "tell_nobody_of_aborts": "coordinator/killed_while_open",
    "write_into_what_is_folded": "coordinator/commit",
}
"""The script that says something else of each."""

BY_CRASH_STATES: dict[str, tuple[tuple[Step, ...], int]] = {
    "abort_and_fence_in_two_entries": ((scenarios.time_out,), 0),
    "ack_a_repeated_commit_at_once": ((scenarios.commit_repeated,), 2),
    "ack_a_repeated_plain_batch_at_once": ((scenarios.plain_repeated,), 0),
    "believe_a_decision_at_once": ((scenarios.commit_jointly_twice,), 2),
    "commit_what_was_lost": ((scenarios.commit,), 0),
    "remember_the_forgotten_after_a_crash": ((scenarios.commit, scenarios.forget), 4),
}
"""The workload whose crash states find each, and the sweep (below 10) that is tried first."""

BY_SEEDS = {
    "ack_without_the_participants": 18,
    "age_by_the_wall_clock": 5,
    "apply_twice": 0,
}
"""A seed of the simulation (below 60) that finds each, and is tried first. What is here is found by nothing
that takes less, or by a script that is told more of it than the simulation is.
"""

BY_TESTS: dict[str, str] = {}

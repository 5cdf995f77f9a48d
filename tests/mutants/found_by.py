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

BY_TESTS = {
    "cut_damage_like_a_torn_tail": "tests/unit/journal/test_damage.py",
    "leave_the_torn_tail": "tests/unit/journal/test_torn_tails.py",
    "apply_in_any_order": "tests/unit/transactions/test_failed_participant.py",
    "forget_sequences_in_checkpoints": "tests/unit/copier/test_partition.py",
    "skip_the_crc": "tests/unit/journal/test_damage.py",
    "go_on_after_a_failed_fsync": "tests/crash_states/test_failures.py",
    "believe_the_page_cache": "tests/crash_states/test_failures.py",
    "recover_what_may_be_lost": "tests/crash_states/test_failures.py",
    "trust_drafts": "tests/unit/copier/test_partition.py",
    "lead_again_under_an_old_epoch": "tests/unit/copier/test_leader_epochs.py",
    "apply_again_in_any_order": "tests/unit/transactions/test_ranks.py",
    "take_a_fresh_rank_for_an_older_place": "tests/unit/transactions/test_ranks.py",
    "lose_spans_at_a_checkpoint": "tests/unit/copier/test_spans.py",
    "trim_spans_of_the_log": "tests/unit/copier/test_spans.py",
    "divide_what_does_not_fit": "tests/unit/hosting/test_largest_cut.py",
    "cut_at_the_high_watermarks": "tests/unit/hosting/test_cuts.py",
    "divide_a_batch": "tests/unit/hosting/test_batch_ends.py",
    "forget_what_is_finished_early": "tests/unit/transactions/test_finished.py",
    "forget_what_was_missed": "tests/simulation/test_led_anew.py",
    "tell_what_was_missed_in_any_order": "tests/simulation/test_led_anew.py",
    "forget_what_is_half_applied": "tests/simulation/test_led_anew.py",
    "forget_who_is_open": "tests/simulation/test_led_anew.py",
    "discard_what_others_may_know": "tests/simulation/test_led_anew.py",
    "leave_nothing_behind": "tests/unit/transactions/test_joint_groups.py",
    "let_former_runs_go_on": "tests/unit/transactions/test_joint_groups.py",
    "write_after_another_leads": "tests/unit/transactions/test_deposed.py",
}
"""The tests of which one fails with each."""

BY_SEEDS = {
    "ack_without_the_participants": 18,
    "age_by_the_wall_clock": 5,
    "apply_twice": 0,
    "bear_the_epoch_of_who_copies": 0,
    "believe_every_duplicate_is_new": 0,
    "checkpoint_epoch_0": 0,
    "checkpoint_without_leader_epochs": 0,
    "checkpoint_without_syncing_the_log": 0,
    "commit_members_that_were_aborted": 0,
    "count_the_uptime_of_another_machine": 0,
    "drop_previous": 0,
    "drop_the_first_draft": 0,
    "end_only_the_lead": 0,
    "forget_committed_keys": 0,
    "forget_open_transactions_in_checkpoints": 0,
    "forget_the_directory_fsync": 0,
    "forget_who_is_joined": 7,
    "hand_out_epochs_at_once": 9,
    "keep_a_decision_that_was_taken_back": 14,
    "leave_drafts_of_the_unknown": 1,
    "leave_the_log_after_its_checkpoint": 5,
    "let_zombies_in": 5,
    "promise_for_the_lead_only": 15,
    "publish_in_the_middle": 8,
    "reclaim_too_much": 0,
    "release_before_durable": 0,
    "remember_members": 0,
    "remember_the_forgotten": 0,
    "reuse_transaction_numbers": 0,
    "skip_the_journals_fsync": 0,
    "take_any_sequence_of_the_unknown": 0,
    "take_late_requests": 14,
    "tell_ends_at_once": 0,
    "tell_nobody_of_aborts": 2,
    "tell_offsets_at_once": 1,
    "trim_before_the_checkpoint": 1,
    "write_into_what_is_folded": 0,
    "write_the_segment_header_without_fsync": 1,
}
"""A seed of the simulation (below 60) that finds each, and is tried first."""
